import type { CommandPlace } from "../../board/act/act.ts";
import { OperatorActs } from "../../board/act/operator-acts.ts";
import { BoardFeed } from "../../board/board-feed.ts";
import { type BoardRoutesOptions, boardRoutes } from "../../board/board-routes.ts";
import { DrainLog } from "../../board/node-page.ts";
import type { EndedDepartures } from "../../board/outcome/ended-departures.ts";
import type { FleetState } from "../../board/stream.ts";
import type { Clock } from "../../contracts/clock.ts";
import type { Fleet } from "../../contracts/fleet.ts";
import type {
  PageFile,
  PageRoute,
  PageRoutes,
  PageServer,
  PageText,
} from "../../contracts/http-route.ts";
import type { KubeApi } from "../../contracts/kube-api.ts";
import type { Rng } from "../../core/chance/rng.ts";
import { LastcallError, messageOf } from "../../errors.ts";
import { KubeDepartureStore, KubeOperatorWrites } from "../../kube/departure-store.ts";
import { KubeNodePods } from "../../kube/node/node-pods.ts";
import { policiesPath } from "../../kube/object/paths.ts";
import { listAll } from "../../kube/watch/list.ts";
import { servePage } from "../../server/page-server.ts";
import type { CommandFiles, CommandIo } from "../command-line/command.ts";
import { hasReleaser } from "../commands/plan.ts";

export interface BoardServerOptions {
  readonly address: string;
  /** How pages get their address; `PageServerOptions` has more. */
  readonly entry: PageText;
  readonly api: KubeApi;
  readonly fleet: Fleet;
  /** The cluster's time, which in the demo is not wall-clock time. */
  readonly clusterClock: Clock;
  readonly rate: () => number;
  /** How a command copied from the board reaches the same cluster. */
  readonly place: CommandPlace;
  readonly state: () => Omit<FleetState, "days">;
  readonly rng: Rng;
  readonly io: Pick<CommandIo, "clock" | "files">;
  readonly ended?: EndedDepartures | undefined;
  readonly counted?: BoardRoutesOptions["counted"];
  /** Called whenever a page requests something. */
  readonly onLook?: (() => void) | undefined;
  /** Further routes of this board. */
  readonly moreRoutes?: PageRoutes | undefined;
}

export interface ServedBoard {
  /** A one-time address that lets one browser in; replaced each time it has been used. */
  url(): string;
  /** Rejects if the fleet can no longer be watched; resolves when the board is closed. */
  readonly running: Promise<void>;
  /** Refreshes everything that is not part of the fleet. */
  refresh(): void;
  close(): Promise<void>;
}

/** Serves the board for a fleet. Throws PORT_TAKEN, USAGE and INPUT_UNREADABLE. */
export async function startBoard(options: BoardServerOptions): Promise<ServedBoard> {
  const { address, entry, place, api, fleet, clusterClock, rate, state, rng, io } = options;
  const files = await pageFiles(io.files);
  const now = () => clusterClock.now();
  const feed = new BoardFeed({
    ...{ fleet, state, hasReleaser, clock: io.clock, ended: options.ended },
    cluster: { now, rate },
    run: Math.floor(rng() * 2 ** 32).toString(36),
  });
  const pods = new KubeNodePods({ api, clock: clusterClock, rng });
  const acts = new OperatorActs({
    ...{ fleet, pods, now, place },
    store: new KubeDepartureStore(api),
    writes: new KubeOperatorWrites(api),
  });
  const policyObjects = () => listAll(api, policiesPath);
  const drainLog = new DrainLog({ fleet, pods, now, clock: io.clock, rng });
  const { get, post } = boardRoutes({
    ...{ feed, acts, fleet, pods, now, policyObjects, hasReleaser, drainLog },
    counted: options.counted,
  });
  const { moreRoutes, onLook } = options;
  const routes = {
    get: looking({ ...get, ...moreRoutes?.get }, onLook),
    post: looking({ ...post, ...moreRoutes?.post }, onLook),
  };
  const server: PageServer = await servePage({ address, entry, routes, files });
  const over = new AbortController();
  drainLog.follow(over.signal);
  const running = feed.run(over.signal);
  // The caller awaits it later; until then its rejection must not count as unhandled.
  running.catch(() => undefined);
  return {
    running,
    url: () => server.url(),
    refresh: () => feed.refresh(),
    close: async () => {
      over.abort();
      await Promise.allSettled([running, server.close()]);
    },
  };
}

function looking(routes: PageRoutes["get"], onLook: (() => void) | undefined): PageRoutes["get"] {
  if (onLook === undefined) return routes;
  const told = Object.entries(routes).map(([path, route]): [string, PageRoute] => [
    path,
    (request) => {
      onLook();
      return route(request);
    },
  ]);
  return Object.fromEntries(told);
}

/** The page's files, which tools/bundle.ts creates, by the path at which they are served. */
const served: Readonly<Record<string, readonly [name: string, type: string]>> = {
  "/": ["index.html", "text/html; charset=utf-8"],
  "/board.js": ["board.js", "text/javascript; charset=utf-8"],
  "/what-if.js": ["what-if.js", "text/javascript; charset=utf-8"],
  "/board.css": ["board.css", "text/css; charset=utf-8"],
  "/icon.svg": ["icon.svg", "image/svg+xml"],
};

/** Next to the bundle; sources use the page of the last bundle. Throws INPUT_UNREADABLE. */
async function pageFiles(
  files: Pick<CommandFiles, "readText">,
): Promise<ReadonlyMap<string, PageFile>> {
  const isSource = import.meta.url.endsWith(".ts");
  const folder = new URL(isSource ? "../../../dist/board/" : "./board/", import.meta.url);
  const read = Object.entries(served).map(async ([path, [name, type]]) => {
    const text = await readPart(files, new URL(name, folder).pathname);
    return [path, { type, bytes: new TextEncoder().encode(text) }] as const;
  });
  return new Map(await Promise.all(read));
}

async function readPart(files: Pick<CommandFiles, "readText">, path: string): Promise<string> {
  try {
    return await files.readText(decodeURIComponent(path));
  } catch (error) {
    throw new LastcallError(
      "INPUT_UNREADABLE",
      `Cannot serve the board: its page is not built (${messageOf(error)}); run npm run prepare`,
      { cause: error },
    );
  }
}
