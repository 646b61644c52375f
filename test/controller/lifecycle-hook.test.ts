import { describe, expect, it } from "vitest";
import type { LifecycleHook } from "../../src/core/notice/instance-notice.ts";
import { hours, type Millis, minutes, seconds } from "../../src/core/time/time.ts";
import { FakeHooks } from "../support/fake-hooks.ts";
import { type Stage, stage } from "../support/feed-stage.ts";

/** A stage with a group that holds a machine. */
async function heldBack(
  transition: LifecycleHook["transition"],
  name = "n1",
  joinWithinMs?: Millis,
) {
  const hooks = new FakeHooks();
  const on = await stage({}, { hooks, ...(joinWithinMs && { joinWithinMs }) });
  const machine = `gce://demo/a/${name}`;
  const hook = { transition, machine, group: "spot-asg", name: "drain", at: on.world.clock.now() };
  hooks.hold(hook);
  return { ...on, hooks, hook, machine };
}

function wordOfHook({ word }: Stage) {
  return word("n1", { cause: "LifecycleHook", deadlineAt: undefined });
}

describe("a group that terminates a machine", () => {
  it("is told to continue when the last pod has left, and not before", async () => {
    const on = await heldBack("Terminating");
    const { world, feed, hooks, hook, tell, stop } = on;
    expect(await tell(wordOfHook(on))).toBe("Taken");
    let podsThen: number | undefined;
    hooks.onTold = () => {
      podsThen = world.podsOn("n1").length;
    };
    const ended = feed.listener.onHook(hook);
    expect(hooks.told).toEqual([]);
    await world.pass(seconds(20));
    expect(await ended).toBe("Ended");
    expect(hooks.told).toEqual([`CONTINUE ${hook.machine}`]);
    expect(podsThen).toBe(0);
    await stop();
  });

  it("is told to continue only after the drain of a node that an earlier notice had only cordoned", async () => {
    const on = await heldBack("Terminating");
    const { world, word, feed, hooks, hook, tell, stop } = on;
    world.patchPolicy({ spec: { onNotice: { rebalance: "Cordon" } } });
    await world.pass(seconds(1));
    await tell(word("n1", { cause: "RebalanceRecommendation", deadlineAt: undefined }));
    await world.pass(seconds(5));
    expect(world.podsOn("n1").length).toBeGreaterThan(0);
    let podsThen = 0;
    hooks.onTold = () => {
      podsThen = world.podsOn("n1").length;
    };
    const told = word("n1", { cause: "LifecycleHook", deadlineAt: undefined, eventId: "hook-1" });
    const ended = feed.listener.onNotice(told).then(() => feed.listener.onHook(hook));
    await world.pass(seconds(30));
    expect(await ended).toBe("Ended");
    expect([hooks.told.length, podsThen]).toEqual([1, 0]);
    await stop();
  });

  it("waits as long as a budget holds a pod", async () => {
    const on = await heldBack("Terminating");
    const { world, feed, hooks, hook, tell, stop } = on;
    world.patchBudget("web", { spec: { maxUnavailable: 0 } });
    expect(await tell(wordOfHook(on))).toBe("Taken");
    const ended = feed.listener.onHook(hook);
    await world.pass(minutes(30));
    expect(hooks.told).toEqual([]);
    world.patchBudget("web", { spec: { maxUnavailable: 6 } });
    await world.pass(seconds(30));
    expect(await ended).toBe("Ended");
    expect(hooks.told).toHaveLength(1);
    await stop();
  });

  it("gets a heartbeat each half of its timeout, up to its maximum", async () => {
    const on = await heldBack("Terminating");
    const { world, feed, hooks, hook, tell, stop } = on;
    hooks.waits = { heartbeatMs: minutes(20), longestMs: minutes(35) };
    world.patchBudget("web", { spec: { maxUnavailable: 0 } });
    await tell(wordOfHook(on));
    const ended = feed.listener.onHook(hook);
    await world.pass(minutes(9));
    expect(hooks.told).toEqual([]);
    await world.pass(minutes(1));
    expect(hooks.told).toEqual([`HEARTBEAT ${hook.machine}`]);
    await world.pass(minutes(27));
    expect(await ended).toBe("Ended");
    expect(hooks.told).toEqual(Array(3).fill(`HEARTBEAT ${hook.machine}`));
    await stop();
  });

  it("is told to abandon after the drain if the policy says Abandon", async () => {
    const on = await heldBack("Terminating");
    const { world, feed, hooks, hook, tell, stop } = on;
    world.patchPolicy({ spec: { instance: { lifecycleHook: "Abandon" } } });
    await world.pass(seconds(1));
    await tell(wordOfHook(on));
    let podsThen: number | undefined;
    hooks.onTold = () => {
      podsThen = world.podsOn("n1").length;
    };
    const ended = feed.listener.onHook(hook);
    await world.pass(seconds(20));
    expect(await ended).toBe("Ended");
    expect(hooks.told).toEqual([`ABANDON ${hook.machine}`]);
    expect(podsThen).toBe(0);
    await stop();
  });

  it.each(["the same", "the next"])(
    "is told by %s leader what the policy says, if the node is gone before the hook is completed",
    async (leader) => {
      const on = await heldBack("Terminating");
      const { world, feed, hooks, hook, tell, stop } = on;
      world.patchPolicy({ spec: { instance: { lifecycleHook: "Abandon" } } });
      await world.pass(seconds(1));
      await tell(wordOfHook(on));
      await world.pass(seconds(20));
      world.api.handle({ method: "DELETE", path: "/api/v1/nodes/n1" });
      await world.pass(seconds(20));
      const again = new AbortController();
      if (leader === "the next") {
        await stop();
        world.startController(again.signal, { feeds: [feed], hooks }).catch(() => undefined);
        await world.pass(seconds(30));
      }
      expect(await feed.listener.onHook(hook)).toBe("Ended");
      expect(hooks.told).toEqual([`ABANDON ${hook.machine}`]);
      again.abort();
      await stop();
    },
  );

  it("gets no heartbeat once it was told to continue", async () => {
    const on = await heldBack("Terminating");
    const { world, feed, hooks, hook, tell, stop } = on;
    hooks.waits = { heartbeatMs: minutes(1), longestMs: hours(1) };
    await tell(wordOfHook(on));
    const ended = feed.listener.onHook(hook);
    await world.pass(seconds(20));
    expect(await ended).toBe("Ended");
    await world.pass(minutes(5));
    expect(hooks.told).toEqual([`CONTINUE ${hook.machine}`]);
    await stop();
  });

  it("is told to continue after the drain even if its heartbeats failed", async () => {
    const on = await heldBack("Terminating");
    const { world, feed, hooks, hook, tell, stop } = on;
    hooks.waits = { heartbeatMs: seconds(4), longestMs: hours(1) };
    world.patchBudget("web", { spec: { maxUnavailable: 0 } });
    await tell(wordOfHook(on));
    hooks.fault = "CLOUD_RIGHT_MISSING";
    const ended = feed.listener.onHook(hook);
    await world.pass(seconds(30));
    hooks.fault = undefined;
    world.patchBudget("web", { spec: { maxUnavailable: 6 } });
    await world.pass(seconds(30));
    expect(await ended).toBe("Ended");
    expect(hooks.told).toEqual([`CONTINUE ${hook.machine}`]);
    await stop();
  });

  it("is told to continue by the next leader if the first one stopped during the drain", async () => {
    const on = await heldBack("Terminating");
    const { world, feed, hooks, hook, tell, stop } = on;
    await tell(wordOfHook(on));
    const interrupted = expect(feed.listener.onHook(hook)).rejects.toThrow();
    await stop();
    await interrupted;
    expect(hooks.told).toEqual([]);
    const again = new AbortController();
    const running = world.startController(again.signal, { feeds: [feed], hooks });
    await world.pass(seconds(30));
    expect(await feed.listener.onHook(hook)).toBe("Ended");
    expect(hooks.told).toEqual([`CONTINUE ${hook.machine}`]);
    again.abort();
    await running;
  });

  it("gets heartbeats from the next leader, too, the first at once if half of the timeout is over", async () => {
    const on = await heldBack("Terminating");
    const { world, feed, hooks, hook, tell, stop } = on;
    hooks.waits = { heartbeatMs: minutes(4), longestMs: hours(2) };
    world.patchBudget("web", { spec: { maxUnavailable: 0 } });
    await tell(wordOfHook(on));
    const interrupted = expect(feed.listener.onHook(hook)).rejects.toThrow();
    await world.pass(minutes(1));
    await stop();
    await interrupted;
    await world.pass(minutes(2));
    expect(hooks.told).toEqual([]);
    const again = new AbortController();
    const running = world.startController(again.signal, { feeds: [feed], hooks });
    await world.pass(seconds(5));
    const ended = feed.listener.onHook(hook).catch(() => undefined);
    await world.pass(seconds(1));
    expect(hooks.told).toEqual([`HEARTBEAT ${hook.machine}`]);
    await world.pass(minutes(2));
    expect(hooks.told).toEqual(Array(2).fill(`HEARTBEAT ${hook.machine}`));
    again.abort();
    await ended;
    await running;
  });

  it("is told nothing if a person has cancelled the departure", async () => {
    const on = await heldBack("Terminating");
    const { world, feed, hooks, hook, tell, stop } = on;
    world.patchBudget("web", { spec: { maxUnavailable: 0 } });
    await tell(wordOfHook(on));
    const ended = feed.listener.onHook(hook);
    const name = world.departureOf("n1")?.metadata?.name;
    const path = `/apis/lastcall.dev/v1alpha1/departures/${name}`;
    world.api.handle({ method: "DELETE", path });
    await world.pass(seconds(30));
    expect(await ended).toBe("LeftAlone");
    expect(hooks.told).toEqual([]);
    await stop();
  });

  it("is told again by the feed after an error", async () => {
    const on = await heldBack("Terminating");
    const { world, feed, hooks, hook, tell, stop } = on;
    await tell(wordOfHook(on));
    await world.pass(seconds(20));
    hooks.fault = "CLOUD_RIGHT_MISSING";
    await expect(feed.listener.onHook(hook)).rejects.toMatchObject({ code: hooks.fault });
    hooks.fault = undefined;
    expect(await feed.listener.onHook(hook)).toBe("Ended");
    expect(hooks.told).toHaveLength(1);
    await stop();
  });
});

function becomes({ api }: Stage["world"], ready: "True" | "False"): void {
  const path = "/api/v1/nodes/n9/status";
  const patchType = "application/merge-patch+json";
  const body = { status: { conditions: [{ type: "Ready", status: ready }] } };
  expect(api.handle({ method: "PATCH", path, patchType, body }).status).toBe(200);
}

describe("a group that launches a machine", () => {
  it("is told to continue when the node is ready", async () => {
    const { world, feed, hooks, hook, machine, stop } = await heldBack("Launching", "n9");
    expect(await feed.listener.onHook(hook)).toBe("NoNode");
    world.addNode("n9", "a");
    becomes(world, "False");
    await world.pass(seconds(1));
    const ended = feed.listener.onHook(hook);
    await world.pass(minutes(3));
    expect(hooks.told).toEqual([]);
    becomes(world, "True");
    await world.pass(seconds(1));
    expect(await ended).toBe("Ended");
    expect(hooks.told).toEqual([`CONTINUE ${machine}`]);
    await stop();
  });

  it("is told to abandon a machine that has no ready node in time", async () => {
    const { world, feed, hooks, hook, machine, stop } = await heldBack(
      "Launching",
      "n9",
      minutes(10),
    );
    await world.pass(minutes(9));
    expect(await feed.listener.onHook(hook)).toBe("NoNode");
    await world.pass(minutes(2));
    expect(await feed.listener.onHook(hook)).toBe("Ended");
    expect(hooks.told).toEqual([`ABANDON ${machine}`]);
    await stop();
  });
});

it("a controller without hooks leaves every hook alone", async () => {
  const { world, feed, stop } = await stage();
  const machine = "gce://demo/a/n1";
  const hook = { transition: "Launching", machine, group: "spot-asg", name: "drain" } as const;
  expect(await feed.listener.onHook({ ...hook, at: world.clock.now() })).toBe("LeftAlone");
  await stop();
});
