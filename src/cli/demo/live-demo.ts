import type { Clock } from "../../contracts/clock.ts";
import type { Log } from "../../contracts/telemetry.ts";
import { FleetTally } from "../../sim/fleet-tally.ts";
import type { ModelApi } from "../../sim/model-api.ts";
import type { BoardNews, BoardState } from "./board-state.ts";
import { runControllerOn, startFleet } from "./demo-run.ts";
import { FleetNews } from "./fleet-news.ts";
import { boardNodes } from "./fleet-picture.ts";

export interface LiveDemoOptions {
  readonly clock: Clock;
  readonly seed: number;
  readonly nodes: number;
  readonly log: Log;
  readonly onNews: (news: BoardNews) => void;
}

export interface LiveDemo {
  /** The cluster that Lastcall works on, for the HTTP face. */
  readonly api: ModelApi;
  /** What there is to see now, but for where it is seen. */
  picture(): Omit<BoardState, "kubeconfig" | "speed">;
  /** Rejects if the controller fails; resolves when it has let go. */
  readonly running: Promise<void>;
  close(): Promise<void>;
}

/** Two fleets of one fate on one clock: Lastcall works on the one, nobody on the other. */
export function startLiveDemo(options: LiveDemoOptions): LiveDemo {
  const { clock, seed } = options;
  const startedAt = clock.now();
  const cluster = startFleet(options);
  const shadow = startFleet(options);
  const [tally, shadowTally] = [new FleetTally(cluster), new FleetTally(shadow)];
  const over = new AbortController();
  const { api, cloud } = cluster;
  const { fleet, running } = runControllerOn(
    { ...options, api, releaser: cloud },
    options.log,
    over.signal,
  );
  const news = new FleetNews(options.onNews);
  cloud.subscribe((event) => news.seeCloud(event));
  fleet.onChange(() => news.seeDepartures(fleet.view().departures, clock.now()));
  return {
    api,
    running,
    picture: () => {
      const now = clock.now();
      return {
        now,
        startedAt,
        seed,
        nodes: boardNodes(cloud.machines(), fleet.view(), now),
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
