import type { FleetState } from "../../board/stream.ts";
import { readClusterPolicy } from "../../config/policy/cluster-policy.ts";
import { cronProblem } from "../../core/limits/cron-window.ts";
import { KubeFleet } from "../../kube/fleet.ts";
import { PermittedApi } from "../../kube/watch/permitted-api.ts";
import { openBrowser } from "../../runtime/open-browser.ts";
import { loopbackOf } from "../../server/page-server.ts";
import { openHistory } from "../board/board-history.ts";
import { type CallerRights, callerRights, unknownRights } from "../board/caller-rights.ts";
import { ConnectionWatch } from "../board/connection-watch.ts";
import { PrometheusOutcomes } from "../board/prometheus-outcomes.ts";
import { type ServedBoard, startBoard } from "../board/start-board.ts";
import { connect } from "../cluster/connect.ts";
import type { CommandRun } from "../command-line/command-spec.ts";

/** The departures board in a browser, until it is interrupted. */
export const runBoard: CommandRun<"board"> = async ({ options, io }) => {
  const { clock, rng } = io;
  // Before anything is asked of a file or a cluster.
  loopbackOf(options.address);
  const history =
    options.history === undefined ? undefined : await openHistory(options.history, io);
  const { prometheus: url } = options;
  const counted =
    url === undefined ? undefined : new PrometheusOutcomes({ url, fetch: io.fetch, clock });
  const { api, access, close } = await connect({ ...options, probesConnections: true }, io);
  let board: ServedBoard | undefined;
  let known: CallerRights = unknownRights;
  const refresh = () => board?.refresh();
  const seen = new PermittedApi({ api, clock, onMissing: refresh });
  const connection = new ConnectionWatch({ api, clock, onChange: refresh });
  const fleet = new KubeFleet({
    ...{ api: seen, clock, rng },
    readPolicy: (object) => readClusterPolicy(object, { cronProblem }),
    onTrouble: (error) => connection.onTrouble(error),
  });
  const state = (): Omit<FleetState, "days"> => ({
    cluster: options.context ?? new URL(access.server).host,
    isDemo: false,
    connection: connection.state(),
    missing: [...seen.missing(), ...known.missing],
    rights: known.rights,
    isCounted: counted !== undefined,
  });
  const askRights = async (): Promise<void> => {
    known = (await callerRights(api)) ?? known;
    refresh();
  };
  try {
    const { address } = options;
    const ended = history?.ended;
    const parts = {
      address,
      command: "lastcall board",
      api,
      fleet,
      clusterClock: clock,
      rate: () => 1,
      state,
      rng,
      io,
      ended,
      countedDays: counted === undefined ? undefined : () => counted.days(),
    };
    board = await startBoard(parts);
    io.out(`${board.url}\n`);
    if (!options.quiet) io.err("lastcall: serving the board; press Ctrl-C to stop\n");
    const problem = options.open ? await openBrowser(board.url) : undefined;
    if (problem !== undefined) io.err(`lastcall: Cannot open a browser: ${problem}\n`);
    const watching = Promise.all([
      fleet.run(io.signal),
      connection.run(fleet, askRights, io.signal),
    ]);
    await Promise.race([watching, board.running.then(() => watching)]);
    return 130;
  } finally {
    await board?.close();
    await history?.written();
    close();
  }
};
