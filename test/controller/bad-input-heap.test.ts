import { afterEach, describe, expect, it } from "vitest";
import { SqsFeed } from "../../src/cloud/aws/queue/sqs-client.ts";
import { seededRng } from "../../src/core/chance/chance.ts";
import { instant, plus, seconds } from "../../src/core/time/time.ts";
import { eventLoopTurn } from "../../src/runtime/real-clock.ts";
import { VirtualClock } from "../../src/sim/time/virtual-clock.ts";
import { FakeQueue } from "../support/fake-queue.ts";
import { stage } from "../support/feed-stage.ts";
import { heldBytes } from "../support/heap.ts";
import { launchAction, spotWarning, terminateAction } from "../support/queue-body.ts";
import { QueueListener } from "../support/queue-listener.ts";

/** A hundred bytes retained for each of the ten thousand messages would be twice this. */
const growthLimit = 500_000;
const rounds = 10;
const perRound = 1000;

/** Growth of the heap over ten rounds; the first two rounds, which fill caches, do not count. */
async function growthOf(round: (place: number) => Promise<void>): Promise<number> {
  for (let place = 0; place < 2; place += 1) await round(place);
  const before = heldBytes();
  for (let place = 2; place < 2 + rounds; place += 1) await round(place);
  return heldBytes() - before;
}

function idOf(place: number): string {
  return `i-0${String(place).padStart(16, "0")}`;
}

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

describe("ten thousand irrelevant messages retain no memory", () => {
  it.each([
    ["garbage", (place: number) => `<html>${place}</html>`],
    ["notices for instances of other clusters", (place: number) => spotWarning(about(place))],
    ["hooks of instances of other clusters", (place: number) => terminateAction(about(place))],
    ["launch hooks that others complete", (place: number) => launchAction(about(place))],
  ])("in a queue feed: %s", async (_, body) => {
    const clock = new VirtualClock({ startAt: dawn, settle: eventLoopTurn });
    const queue = new FakeQueue(clock);
    const cluster = new QueueListener({});
    cluster.hookFate = "LeftAlone";
    const ending = new AbortController();
    const tools = { client: queue, receivers: 2, clock, rng: seededRng(1) };
    const running = new SqsFeed({ ...tools, unknown: "Delete" }).run(cluster, ending.signal);
    ends.push(async () => {
      ending.abort();
      await clock.runUntil(plus(clock.now(), seconds(5)));
      await running;
    });
    const growth = await growthOf(async (round) => {
      for (let one = 0; one < perRound; one += 1) queue.send(body(round * perRound + one));
      await clock.runUntil(plus(clock.now(), seconds(30)));
      // What the fakes of this test record is not the feed's.
      for (const list of [queue.calls, cluster.words, cluster.troubles, cluster.hooks]) {
        list.length = 0;
      }
      expect(queue.size).toBe(0);
    });
    expect(growth).toBeLessThan(growthLimit);
  });

  it("in the controller: notices for machines without a node", async () => {
    const { world, feed, word, stop } = await stage();
    ends.push(stop);
    const growth = await growthOf(async (round) => {
      const fates = Array.from({ length: perRound }, (_, one) =>
        feed.listener.onNotice({ ...word("n1"), machine: idOf(round * perRound + one) }),
      );
      await world.pass(seconds(1));
      expect(new Set(await Promise.all(fates))).toEqual(new Set(["NoNode"]));
    });
    expect(growth).toBeLessThan(growthLimit);
  });

  it("in the controller: repetitions of one notice", async () => {
    const { world, feed, word, tell, stop } = await stage();
    ends.push(stop);
    const told = word("n1");
    expect(await tell(told)).toBe("Taken");
    await world.pass(seconds(20));
    const growth = await growthOf(async () => {
      const fates = Array.from({ length: perRound }, () => feed.listener.onNotice(told));
      expect(new Set(await Promise.all(fates))).toEqual(new Set(["Taken"]));
    });
    expect(growth).toBeLessThan(growthLimit);
  });
});

const dawn = instant(Date.UTC(2026, 10, 20, 12));

function about(place: number) {
  return { instanceId: idOf(place), time: "2026-11-20T12:00:00Z", id: `event-${place}` };
}
