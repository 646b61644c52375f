import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SqsFeed } from "../../../src/cloud/aws/sqs-feed.ts";
import type { WordFate } from "../../../src/contracts/notice-feed.ts";
import { seededRng } from "../../../src/core/rng.ts";
import {
  formatInstant,
  hours,
  instant,
  type Millis,
  minutes,
  plus,
  seconds,
} from "../../../src/core/time.ts";
import { eventLoopTurn } from "../../../src/runtime/event-loop-turn.ts";
import { VirtualClock } from "../../../src/sim/virtual-clock.ts";
import { FakeQueue, queueFault } from "../../support/fake-queue.ts";
import {
  directHook,
  inSns,
  launchAction,
  spotWarning,
  terminateAction,
} from "../../support/queue-body.ts";
import { QueueListener } from "../../support/queue-listener.ts";

const dawn = instant(Date.UTC(2026, 10, 20, 12));
const ours = "i-00000000000000001";
const theirs = "i-00000000000000002";

describe("the message of a group that waits", () => {
  let clock: VirtualClock;
  let queue: FakeQueue;
  let cluster: QueueListener;
  let feed: SqsFeed;
  let ending: AbortController;
  let running: Promise<void>;

  beforeEach(() => {
    clock = new VirtualClock({ startAt: dawn, settle: eventLoopTurn });
    queue = new FakeQueue(clock);
    cluster = new QueueListener({ [ours]: "Taken" });
    ending = new AbortController();
    running = Promise.resolve();
  });
  afterEach(async () => {
    ending.abort();
    await pass(seconds(5));
    await running;
  });

  function start(unknown: "Leave" | "Delete" = "Leave"): void {
    feed = new SqsFeed({ client: queue, receivers: 2, unknown, clock, rng: seededRng(1) });
    running = feed.run(cluster, ending.signal);
  }

  /** The Lease is lost and won again: the same feed listens anew. */
  async function startAgain(): Promise<void> {
    ending.abort();
    await pass(seconds(1));
    await running;
    ending = new AbortController();
    running = feed.run(cluster, ending.signal);
    await pass(seconds(1));
  }

  function pass(span: Millis): Promise<void> {
    return clock.runUntil(plus(clock.now(), span));
  }

  function about(instanceId: string) {
    return { instanceId, time: formatInstant(clock.now()) };
  }

  it("stays until the drain is over, hidden for minutes at a time", async () => {
    cluster.holdHooks();
    queue.send(terminateAction(about(ours)));
    start();
    await pass(minutes(60));
    expect(cluster.words).toHaveLength(1);
    expect(cluster.hooks).toMatchObject([{ machine: ours, transition: "Terminating" }]);
    expect([queue.size, queue.shown, queue.given]).toEqual([1, 0, 1]);
    const asked = queue.calls.filter((call) => call.startsWith("hide ")).length;
    expect(asked).toBeLessThan(45);
    cluster.letHooksEnd();
    await pass(seconds(1));
    expect(queue.size).toBe(0);
    expect(cluster.troubles).toEqual([]);
  });

  it("keeps nobody from hearing a Spot warning, however many groups wait", async () => {
    cluster.holdHooks();
    for (let count = 0; count < 1500; count += 1) {
      queue.send(terminateAction({ ...about(ours), token: `token-${count}` }));
    }
    start();
    await pass(seconds(30));
    expect(cluster.hooks).toHaveLength(1500);
    queue.send(spotWarning(about(ours)));
    await pass(seconds(1));
    expect(cluster.words.at(-1)?.notice.cause).toBe("SpotInterruption");
    expect(queue.given).toBe(1501);
    cluster.letHooksEnd();
  });

  it("is kept once for each hook, in whatever ways and however often that speaks", async () => {
    cluster.holdHooks();
    for (let count = 0; count < 50; count += 1) {
      queue.send(terminateAction(about(ours)));
      queue.send(inSns(directHook(about(ours))));
    }
    start();
    await pass(seconds(5));
    expect([cluster.hooks.length, queue.size]).toEqual([1, 1]);
    cluster.letHooksEnd();
    await pass(seconds(1));
    expect([queue.size, cluster.troubles]).toEqual([0, []]);
  });

  it("is given back when the feed ends, so that the next leader tells the group", async () => {
    cluster.holdHooks();
    queue.send(terminateAction(about(ours)));
    start();
    await pass(minutes(5));
    ending.abort();
    await pass(seconds(1));
    await running;
    expect([queue.size, queue.shown]).toEqual([1, 1]);
    cluster.letHooksEnd();
  });

  it("is heard anew by a feed that listens again, while what it was told before has no end", async () => {
    cluster.holdHooks();
    queue.send(terminateAction(about(ours)));
    start();
    await pass(seconds(5));
    await startAgain();
    expect([cluster.hooks.length, queue.size]).toEqual([2, 1]);
    cluster.letHooksEnd();
    await pass(seconds(1));
    expect(queue.size).toBe(0);
  });

  it("is removed soon by a feed that listens again, though one of before ends late", async () => {
    cluster.holdHooks();
    queue.send(terminateAction(about(ours)));
    start();
    await pass(seconds(5));
    ending.abort();
    await pass(seconds(3));
    await running;
    cluster.letHooksEnd();
    await pass(seconds(1));
    expect(queue.size).toBe(1);
    await startAgain();
    expect(queue.size).toBe(0);
  });

  it("is received once more at the most where it could not be hidden", async () => {
    cluster.holdHooks();
    queue.send(terminateAction(about(ours)));
    start();
    await pass(seconds(5));
    queue.fault = queueFault();
    await pass(seconds(30));
    queue.fault = undefined;
    await pass(minutes(30));
    expect(queue.given).toBeLessThanOrEqual(2);
    cluster.letHooksEnd();
  });

  it("stays until the group could be told", async () => {
    cluster.onHook = async () => {
      throw queueFault();
    };
    queue.send(launchAction(about(ours)));
    start();
    await pass(minutes(2));
    expect(queue.size).toBe(1);
    expect(cluster.codes()).toEqual(["CLOUD_UNREACHABLE"]);
    cluster.onHook = async () => "Ended";
    await pass(minutes(1));
    expect(queue.size).toBe(0);
  });

  it.each<WordFate>(["NoNode", "NotOwned", "Stale"])(
    "has the group told nothing of an instance whose notice is %s: it may be another cluster's",
    async (fate) => {
      cluster.fates = { [theirs]: fate };
      queue.send(terminateAction(about(theirs)));
      start("Delete");
      await pass(minutes(5));
      expect(cluster.words).toHaveLength(1);
      expect(cluster.hooks).toEqual([]);
      expect(queue.size).toBe(0);
    },
  );

  it.each(["Leave", "Delete"] as const)(
    "comes again every ten seconds until a new instance has joined: %s",
    async (unknown) => {
      cluster.hookFate = "NoNode";
      queue.send(launchAction(about(ours)));
      start(unknown);
      await pass(seconds(95));
      expect(cluster.hooks).toHaveLength(10);
      cluster.hookFate = "Ended";
      await pass(seconds(10));
      expect(cluster.hooks).toHaveLength(11);
      expect([queue.size, cluster.words, cluster.troubles]).toEqual([0, [], []]);
    },
  );

  it("comes each five minutes after the first five, until the hook is over", async () => {
    cluster.hookFate = "NoNode";
    queue.send(launchAction(about(theirs)));
    start("Delete");
    await pass(hours(1));
    const soon = 30;
    const late = (60 - 5) / 5;
    expect(cluster.hooks).toHaveLength(soon + late);
    expect(queue.size).toBe(1);
    cluster.hookFate = "Ended";
    await pass(minutes(5));
    expect(queue.size).toBe(0);
  });

  it.each([
    ["Leave", 1],
    ["Delete", 0],
  ] as const)(
    "is like an unknown one where the group is not ours to tell: %s",
    async (unknown, left) => {
      cluster.hookFate = "LeftAlone";
      queue.send(launchAction(about(ours)));
      start(unknown);
      await pass(seconds(30));
      expect(queue.size).toBe(left);
    },
  );
});
