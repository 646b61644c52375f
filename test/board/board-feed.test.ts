import { expect, it } from "vitest";
import { BoardFeed } from "../../src/board/board-feed.ts";
import { noRights, type StreamMessage } from "../../src/board/stream.ts";
import type { FleetView } from "../../src/contracts/cluster.ts";
import { realClock } from "../../src/runtime/real-clock.ts";
import { boardContract } from "../contract/board.contract.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { modelClusterApi } from "../support/model-cluster-api.ts";

boardContract("a model cluster", async () => {
  const api = await modelClusterApi(realClock);
  return { api, close: () => Promise.resolve() };
});

/** A fleet without nodes whose view takes `looks.tookMs` to build. */
function slowFeed() {
  const clock = new ManualClock();
  /** The time that building views has taken. */
  let lookedMs = 0;
  const view: FleetView = { nodes: [], departures: [], policies: [], badPolicies: [] };
  const looks = { tookMs: 0, count: 0 };
  const feed = new BoardFeed({
    fleet: {
      onChange: () => () => {},
      view: () => {
        looks.count += 1;
        lookedMs += looks.tookMs;
        return view;
      },
    },
    clock: {
      now: () => clock.now(),
      monotonic: () => clock.monotonic() + lookedMs,
      sleep: (span, signal) => clock.sleep(span, signal),
      sleepUntil: (at, signal) => clock.sleepUntil(at, signal),
    },
    ...{ cluster: { now: () => clock.now(), rate: () => 1 }, hasReleaser: () => true },
    state: () => ({
      ...{ cluster: "c", isDemo: false, connection: { kind: "Live" }, missing: [] },
      ...{ rights: noRights, isCounted: false },
    }),
    run: "r",
  });
  const over = new AbortController();
  const running = feed.run(over.signal);
  const stop = async (): Promise<void> => {
    over.abort();
    await running;
  };
  const heard: StreamMessage[] = [];
  feed.subscribe((message) => heard.push(message));
  /** How often the view is built within a span in which something changes all the time. */
  const looksWithin = async (spanMs: number): Promise<number> => {
    const before = looks.count;
    const untilMs = clock.monotonic() + spanMs;
    while (clock.monotonic() < untilMs) {
      feed.refresh();
      await clock.advance(50);
    }
    return looks.count - before;
  };
  return { looks, looksWithin, stop };
}

it("A fleet whose view takes long to build is viewed less often", async () => {
  const { looks, looksWithin, stop } = slowFeed();
  expect(await looksWithin(10_000)).toBeGreaterThan(30);
  looks.tookMs = 500;
  await looksWithin(5_000);
  expect(await looksWithin(10_000)).toBeLessThan(6);
  await stop();
});

it("A single slow view delays only the next one", async () => {
  const { looks, looksWithin, stop } = slowFeed();
  await looksWithin(1000);
  looks.tookMs = 20_000;
  expect(await looksWithin(300)).toBe(1);
  looks.tookMs = 0;
  expect(await looksWithin(1000)).toBeGreaterThan(1);
  await stop();
});
