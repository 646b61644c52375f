import type { Clock } from "../../contracts/clock.ts";
import type { Log } from "../../contracts/telemetry.ts";
import { hours } from "../../core/time/time.ts";
import { policiesPath } from "../../kube/paths.ts";
import { FleetTally } from "../../sim/fleet-tally.ts";
import type { ModelApi } from "../../sim/model-api.ts";
import { ClusterAuditor } from "../cluster-auditor.ts";
import type { BoardNews, BoardState } from "./board-state.ts";
import { controllerOn, startFleet } from "./demo-run.ts";
import { FleetNews } from "./fleet-news.ts";
import { fleetPicture } from "./fleet-picture.ts";

export interface LiveDemoOptions {
  readonly clock: Clock;
  readonly seed: number;
  readonly nodes: number;
  readonly log: Log;
}

export interface LiveDemo {
  /** The cluster that Lastcall works on, for the HTTP face. */
  readonly api: ModelApi;
  /**
   * Sets the controller to work and tells the news. Rejects if the controller fails; resolves when
   * it has let go.
   */
  run(onNews: (news: BoardNews) => void): Promise<void>;
  /** What there is to see now, but for where it is seen. */
  picture(): Omit<BoardState, "kubeconfig" | "speed">;
  /** Ends everything, the run too. */
  close(): Promise<void>;
}

/** Two fleets of one fate on one clock: Lastcall is to work on the one, nobody on the other. */
export function startLiveDemo(options: LiveDemoOptions): LiveDemo {
  const { clock, seed, log } = options;
  const startedAt = clock.now();
  const cluster = startFleet(options);
  const shadow = startFleet(options);
  const [tally, shadowTally] = [new FleetTally(cluster), new FleetTally(shadow)];
  const over = new AbortController();
  const { api, cloud } = cluster;
  // Without a pause: nothing is more urgent in virtual time, and the same seed gives the same board.
  const audit = { auditor: new ClusterAuditor(api, () => Promise.resolve()), everyMs: hours(6) };
  const { fleet, controller } = controllerOn(
    { ...options, api, releaser: cloud, births: cloud, audit },
    log,
  );
  const news = new FleetNews();
  let running: Promise<void> = Promise.resolve();
  return {
    api,
    run: (onNews) => {
      cloud.subscribe((event) => news.seeCloud(event, onNews));
      fleet.onChange(() => news.seeDepartures(fleet.view().departures, clock.now(), onNews));
      running = controller.run(over.signal);
      return running;
    },
    picture: () => {
      const now = clock.now();
      return {
        now,
        startedAt,
        seed,
        ...fleetPicture(cloud.machines(), { ...fleet.view(), audits: auditSentences(api) }, now),
        news: news.endings(),
        withLastcall: tally.counts(),
        without: shadowTally.counts(),
      };
    },
    close: async () => {
      over.abort();
      await Promise.allSettled([running]);
      cluster.stop();
      shadow.stop();
    },
  };
}

/** What the condition SpotReady of each policy says, by the policy's name. */
function auditSentences(api: ModelApi): ReadonlyMap<string, string> {
  const { body } = api.handle({ method: "GET", path: policiesPath });
  const { items } = body as { readonly items: readonly PolicyObject[] };
  return new Map(
    items.flatMap(({ metadata, status }) => {
      const said = status?.conditions?.find(({ type }) => type === "SpotReady");
      return said === undefined ? [] : [[metadata.name, said.message] as const];
    }),
  );
}

interface PolicyObject {
  readonly metadata: { readonly name: string };
  readonly status?: {
    readonly conditions?: readonly { readonly type: string; readonly message: string }[];
  };
}
