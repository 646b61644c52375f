import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { NoticeDelivery } from "../../../../src/contracts/cloud.ts";
import { hours, minutes, seconds } from "../../../../src/core/time/time.ts";
import { queueFault } from "../../../support/fake-queue.ts";
import {
  directHook,
  inSns,
  launchAction,
  spotWarning,
  terminateAction,
} from "../../../support/queue-body.ts";
import { ours, QueueStage, theirs } from "../../../support/queue-stage.ts";

describe("the message of a waiting lifecycle hook", () => {
  let stage: QueueStage;
  let queue: QueueStage["queue"];
  let cluster: QueueStage["cluster"];

  beforeEach(() => {
    stage = new QueueStage();
    ({ queue, cluster } = stage);
  });
  afterEach(() => stage.end());

  it("stays in the queue until the drain is over, hidden for minutes at a time", async () => {
    cluster.holdHooks();
    queue.send(terminateAction(stage.about(ours)));
    stage.start();
    await stage.pass(minutes(60));
    expect(cluster.words).toHaveLength(1);
    expect(cluster.hooks).toMatchObject([{ machine: ours, transition: "Terminating" }]);
    expect([queue.size, queue.shown, queue.given]).toEqual([1, 0, 1]);
    const asked = queue.calls.filter((call) => call.startsWith("hide ")).length;
    expect(asked).toBeLessThan(45);
    cluster.letHooksEnd();
    await stage.pass(seconds(1));
    expect(queue.size).toBe(0);
    expect(cluster.troubles).toEqual([]);
  });

  it("does not delay a Spot warning, however many hooks wait", async () => {
    cluster.holdHooks();
    for (let count = 0; count < 1500; count += 1) {
      queue.send(terminateAction({ ...stage.about(ours), token: `token-${count}` }));
    }
    stage.start();
    await stage.pass(seconds(30));
    expect(cluster.hooks).toHaveLength(1500);
    queue.send(spotWarning(stage.about(ours)));
    await stage.pass(seconds(1));
    expect(cluster.words.at(-1)?.notice.cause).toBe("SpotInterruption");
    expect(queue.given).toBe(1501);
    cluster.letHooksEnd();
  });

  it("is kept once per hook, however often and in whatever form it arrives", async () => {
    cluster.holdHooks();
    for (let count = 0; count < 50; count += 1) {
      queue.send(terminateAction(stage.about(ours)));
      queue.send(inSns(directHook(stage.about(ours))));
    }
    stage.start();
    await stage.pass(seconds(5));
    expect([cluster.hooks.length, queue.size]).toEqual([1, 1]);
    cluster.letHooksEnd();
    await stage.pass(seconds(1));
    expect([queue.size, cluster.troubles]).toEqual([0, []]);
  });

  it("is kept for each of several hooks of one termination, and each is completed", async () => {
    cluster.holdHooks();
    const names = ["drain", "logs", "volumes"];
    for (const LifecycleHookName of names) {
      const body = { ...directHook(stage.about(ours)), LifecycleHookName, Destination: "WarmPool" };
      queue.send(body);
      queue.send(inSns(body));
    }
    stage.start();
    await stage.pass(seconds(5));
    expect(cluster.hooks.map(({ name }) => name).toSorted()).toEqual(names);
    expect(cluster.hooks.every(({ returnsToWarmPool }) => returnsToWarmPool)).toBe(true);
    expect(queue.size).toBe(3);
    cluster.letHooksEnd();
    await stage.pass(seconds(1));
    expect([queue.size, cluster.troubles]).toEqual([0, []]);
  });

  it("is returned to the queue when the feed ends, for the next leader", async () => {
    cluster.holdHooks();
    queue.send(terminateAction(stage.about(ours)));
    stage.start();
    await stage.pass(minutes(5));
    await stage.end();
    expect([queue.size, queue.shown]).toEqual([1, 1]);
    cluster.letHooksEnd();
  });

  it("is received again by a restarted feed while its first handling has not ended", async () => {
    cluster.holdHooks();
    queue.send(terminateAction(stage.about(ours)));
    stage.start();
    await stage.pass(seconds(5));
    await stage.startAgain();
    expect([cluster.hooks.length, queue.size]).toEqual([2, 1]);
    cluster.letHooksEnd();
    await stage.pass(seconds(1));
    expect(queue.size).toBe(0);
  });

  it("is removed by a restarted feed although its first handling ended late", async () => {
    cluster.holdHooks();
    queue.send(terminateAction(stage.about(ours)));
    stage.start();
    await stage.pass(seconds(5));
    await stage.end();
    cluster.letHooksEnd();
    await stage.pass(seconds(1));
    expect(queue.size).toBe(1);
    await stage.startAgain();
    expect(queue.size).toBe(0);
  });

  it("is received again only while it cannot be hidden", async () => {
    cluster.holdHooks();
    queue.send(terminateAction(stage.about(ours)));
    stage.start();
    await stage.pass(seconds(5));
    queue.fault = queueFault();
    await stage.pass(seconds(30));
    queue.fault = undefined;
    await stage.pass(minutes(1));
    // Twenty seconds after each receipt.
    const { given } = queue;
    expect(given).toBeLessThanOrEqual(3);
    await stage.pass(minutes(30));
    expect(queue.given).toBe(given);
    cluster.letHooksEnd();
  });

  it("stays until its hook could be completed", async () => {
    cluster.onHook = async () => {
      throw queueFault();
    };
    queue.send(launchAction(stage.about(ours)));
    stage.start();
    await stage.pass(minutes(2));
    expect(queue.size).toBe(1);
    expect(cluster.codes()).toEqual(["CLOUD_UNREACHABLE"]);
    cluster.onHook = async () => "Ended";
    await stage.pass(minutes(1));
    expect(queue.size).toBe(0);
  });

  it.each<NoticeDelivery>(["NoNode", "NotOwned", "Stale"])(
    "completes no hook of an instance whose notice is %s, which may be another cluster's",
    async (delivery) => {
      cluster.deliveries = { [theirs]: delivery };
      queue.send(terminateAction(stage.about(theirs)));
      stage.start("Delete");
      await stage.pass(minutes(5));
      expect(cluster.words).toHaveLength(1);
      expect(cluster.hooks).toEqual([]);
      expect(queue.size).toBe(0);
    },
  );

  it.each(["Leave", "Delete"] as const)(
    "is received every ten seconds until a new instance has joined: %s",
    async (unknown) => {
      cluster.hookFate = "NoNode";
      queue.send(launchAction(stage.about(ours)));
      stage.start(unknown);
      await stage.pass(seconds(95));
      expect(cluster.hooks).toHaveLength(10);
      cluster.hookFate = "Ended";
      await stage.pass(seconds(10));
      expect(cluster.hooks).toHaveLength(11);
      expect([queue.size, cluster.words, cluster.troubles]).toEqual([0, [], []]);
    },
  );

  it("is completed for an instance that is terminated in its warm pool, which is no node", async () => {
    queue.send({ ...directHook(stage.about(theirs)), Origin: "WarmPool" });
    stage.start("Delete");
    await stage.pass(seconds(5));
    expect(cluster.hooks).toMatchObject([{ machine: theirs, inWarmPool: true }]);
    expect([queue.size, cluster.troubles]).toEqual([0, []]);
  });

  it("is left to others in a shared queue, if the instance is no node here", async () => {
    queue.send({ ...directHook(stage.about(theirs)), Origin: "WarmPool" });
    stage.start();
    await stage.pass(seconds(5));
    expect([cluster.hooks, queue.size]).toEqual([[], 1]);
  });

  describe("of a launch into a warm pool", () => {
    const body = () => ({
      ...directHook(stage.about(theirs), "LAUNCHING"),
      Destination: "WarmPool",
    });

    it.each(["Leave", "Delete"] as const)("is completed at once: %s", async (unknown) => {
      queue.send(body());
      stage.start(unknown);
      await stage.pass(seconds(5));
      expect([cluster.hooks.length, queue.size]).toEqual([1, 0]);
    });

    it("is returned to a shared queue if its hook cannot be completed, for its own cluster", async () => {
      cluster.onHook = async () => {
        throw queueFault();
      };
      queue.send(body());
      stage.start("Leave");
      await stage.pass(seconds(30));
      expect(queue.given).toBeGreaterThan(2);
      expect(cluster.codes()).toContain("CLOUD_UNREACHABLE");
      cluster.onHook = async () => "Ended";
      await stage.pass(minutes(2));
      expect(queue.size).toBe(0);
    });
  });

  it("is received every five minutes after the first five, until the hook is over", async () => {
    cluster.hookFate = "NoNode";
    queue.send(launchAction(stage.about(theirs)));
    stage.start("Delete");
    await stage.pass(hours(1));
    const soon = 30;
    const late = (60 - 5) / 5;
    expect(cluster.hooks).toHaveLength(soon + late);
    expect(queue.size).toBe(1);
    cluster.hookFate = "Ended";
    await stage.pass(minutes(5));
    expect(queue.size).toBe(0);
  });

  it.each([
    ["Leave", 1],
    ["Delete", 0],
  ] as const)("is handled as unknown if its hook is left to others: %s", async (unknown, left) => {
    cluster.hookFate = "LeftAlone";
    queue.send(launchAction(stage.about(ours)));
    stage.start(unknown);
    await stage.pass(seconds(30));
    expect(queue.size).toBe(left);
  });
});
