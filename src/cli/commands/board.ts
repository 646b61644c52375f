import { resolve } from "node:path";
import { BoardFeed } from "../../board/board-feed.ts";
import type { BoardRights, FleetFacts } from "../../board/stream.ts";
import { clusterPolicyReader } from "../../config/policy/parse-policy-object.ts";
import type { Fleet } from "../../contracts/cluster.ts";
import type { PageText } from "../../contracts/http-route.ts";
import { cronProblem } from "../../core/limits/windows.ts";
import type { Millis } from "../../core/time/time.ts";
import { LastcallError } from "../../errors.ts";
import { KubeFleet } from "../../kube/fleet.ts";
import { departuresPath } from "../../kube/object/api-call.ts";
import { PermittedApi } from "../../kube/watch/collection.ts";
import { openBrowser } from "../../runtime/child-process.ts";
import { loopbackOf } from "../../server/page-server.ts";
import { ConnectionWatch, RightsWatch, watchPauseMs } from "../board/connection-watch.ts";
import { departureSteps, showTerminalBoard } from "../board/show-terminal-board.ts";
import { openHistory, PrometheusOutcomes, startBoard } from "../board/start-board.ts";
import { ClusterClock, connect } from "../cluster/connect.ts";
import { OperationWatch } from "../cluster/operation-watch.ts";
import type { CommandInput, CommandIo, CommandRun } from "../command-line/command.ts";
import { hasReleaser } from "./plan.ts";

/** Serves the departures board, or shows it on this terminal, until it is interrupted. */
export const runBoard: CommandRun<"board"> = async ({ options, io }) => {
  const { clock, rng } = io;
  // Before any file is read or the cluster is contacted.
  if (options.tui) checkTerminal(options, io);
  else loopbackOf(options.address);
  const history =
    options.history === undefined ? undefined : await openHistory(options.history, io);
  const { prometheus: url } = options;
  const counted =
    url === undefined ? undefined : new PrometheusOutcomes({ url, fetch: io.fetch, clock });
  let connection: ConnectionWatch | undefined;
  const onSilent = (silentMs: Millis) => connection?.onSilent(silentMs);
  const connected = await connect({ ...options, probesConnections: true, onSilent }, io);
  const { api, access, close } = connected;
  let shown: ShownBoard | undefined;
  let feed: BoardFeed | undefined;
  const refresh = () => feed?.refresh();
  const seen = new PermittedApi({ api, clock, onMissing: refresh });
  const rights = new RightsWatch({ api, clock, onChange: refresh });
  const clusterClock = new ClusterClock(api, clock);
  await clusterClock.find(io.signal);
  const watched = new ConnectionWatch({ api, clock: clusterClock, onChange: refresh });
  connection = watched;
  const fleet = new KubeFleet({
    ...{ api: seen, clock, rng },
    readPolicy: clusterPolicyReader({ cronProblem }),
    onError: (error) => watched.onError(error),
    longestPauseMs: watchPauseMs,
  });
  const namespace = options.namespace ?? connected.namespace;
  const operation = new OperationWatch({ api, namespace, clock: clusterClock, onChange: refresh });
  const state = (): FleetFacts => {
    const known = rights.known();
    return {
      cluster: access.context ?? new URL(access.server).host,
      isDemo: false,
      connection: watched.state(),
      missing: [...seen.missing(), ...known.missing],
      rights: seen.isMissing(departuresPath) ? withoutDepartures(known.rights) : known.rights,
      isCounted: counted !== undefined,
      operation: operation.known(),
    };
  };
  // The terminal board has neither acts nor drain plans.
  const onLive = async (): Promise<void> => {
    await clusterClock.find(io.signal);
    if (!options.tui) await rights.ask();
  };
  let stopReading: (() => void) | undefined;
  const over = new AbortController();
  const signal = AbortSignal.any([io.signal, over.signal]);
  const ended = history?.ended;
  try {
    const counting = counted === undefined ? undefined : () => counted.ask();
    feed = new BoardFeed({
      ...{ fleet, state, hasReleaser, clock, ended },
      cluster: { now: () => clusterClock.now(), rate: () => clusterClock.rate() },
      run: Math.floor(rng() * 2 ** 32).toString(36),
    });
    const { kubeconfig } = options;
    const place = {
      kubeconfig: kubeconfig === undefined ? undefined : resolve(kubeconfig),
      context: access.context,
    };
    const printNext = (): void => {
      if (shown?.url !== undefined) io.out(`${shown.url()}\n`);
    };
    if (!options.tui) stopReading = io.onLine?.(printNext);
    const hasKeys = stopReading !== undefined;
    const served = { address: options.address, entry: entryOf(hasKeys), place };
    shown = options.tui
      ? showOnTerminal({ fleet, feed, io, signal, clusterClock })
      : await startBoard({
          ...{ ...served, api, fleet, feed, rng, io },
          ...{ clusterClock, counted: counting, onLook: () => rights.look() },
        });
    if (!options.tui) tell(shown.url?.() ?? "", { options, io, hasKeys });
    const watching = Promise.all([
      fleet.run(signal),
      watched.run(fleet, onLive, signal),
      clusterClock.run(refresh, signal),
      operation.run(signal),
      feed.run(signal),
    ]).then(() => 130);
    return await Promise.race([watching, shown.ended ?? watching]);
  } finally {
    over.abort();
    stopReading?.();
    await shown?.close();
    await history?.written();
    close();
  }
};

/** Only a caller who may see departures can request one, and only if the resource exists. */
function withoutDepartures(rights: BoardRights): BoardRights {
  return {
    ...rights,
    createDepartures: false,
    patchDepartures: false,
    deleteDepartures: false,
  };
}

/** The board in a browser, or the terminal. */
interface ShownBoard {
  /** The page's address. It admits one browser, and is then replaced. */
  url?(): string;
  /** Resolves with the exit code once the user has quit. */
  readonly ended?: Promise<number>;
  close(): Promise<void>;
}

type BoardOptions = CommandInput<"board">["options"];

/** Throws USAGE. */
function checkTerminal({ open }: BoardOptions, io: CommandIo): void {
  if (open) {
    throw new LastcallError(
      "USAGE",
      "Cannot use --open with --tui: the board is shown in this terminal, remove one of the two",
    );
  }
  if (io.openScreen === undefined) {
    throw new LastcallError(
      "USAGE",
      "Cannot show the board with --tui: stdout is not an interactive terminal, run it in one or remove --tui",
    );
  }
}

interface TerminalOptions {
  readonly fleet: Fleet;
  readonly feed: BoardFeed;
  readonly io: CommandIo;
  readonly signal: AbortSignal;
  readonly clusterClock: ClusterClock;
}

function showOnTerminal({ fleet, feed, io, signal, clusterClock }: TerminalOptions): ShownBoard {
  const { colour, openScreen } = io;
  const screen = openScreen?.();
  if (screen === undefined) throw new Error("unreachable: checkTerminal found a terminal");
  const departuresOf = departureSteps(fleet, () => clusterClock.now());
  const shownIo = { clock: clusterClock, colour };
  const showing = showTerminalBoard({ feed, screen, departuresOf, io: shownIo }, signal);
  return {
    ended: showing.then(() => (io.signal.aborted ? 130 : 0)),
    close: async () => {
      await Promise.allSettled([showing]);
    },
  };
}

/** How to get in with a browser that has no cookie, once the address has been used. */
function entryOf(hasKeys: boolean): PageText {
  return hasKeys
    ? {
        en: "press Enter where lastcall board runs, and open the address that it prints",
        ja: "lastcall board を実行中の端末で Enter を押し、表示されたアドレスを開いてください",
      }
    : {
        en: "run lastcall board again, and open the address that it prints",
        ja: "lastcall board をもう一度実行し、表示されたアドレスを開いてください",
      };
}

interface Telling {
  readonly options: BoardOptions;
  readonly io: CommandIo;
  /** Whether the user can press a key for another address. */
  readonly hasKeys: boolean;
}

function tell(url: string, { options, io, hasKeys }: Telling): void {
  io.out(`${url}\n`);
  const keys = hasKeys
    ? "press Enter for an address for another browser, Ctrl-C to stop"
    : "press Ctrl-C to stop";
  if (!options.quiet) io.err(`lastcall: serving the board; ${keys}\n`);
  if (!options.open) return;
  // The board is served in the meantime.
  void openBrowser(url).then((problem) => {
    if (problem !== undefined)
      io.err(`lastcall: Cannot open a browser: ${problem}; open the address yourself\n`);
  });
}
