import { describe, expect, it } from "vitest";
import { formatInstant, minutes, plus, seconds } from "../../src/core/time/time.ts";
import { LastcallError } from "../../src/errors.ts";
import { type Stage, stage } from "../support/feed-stage.ts";
import { departures, ModelWorld, nodes, spotPolicy, webWorkload } from "../support/model-world.ts";

const machine = "gce://demo/a/n1";

/** A stage on which notices release the machine as soon as its node is empty. */
async function releasing(spec: object = {}, lifetime: Readonly<Record<string, string>> = {}) {
  const on = await stage(lifetime);
  const onNotice = { spotInterruption: "Release", rebalance: "Release", maintenance: "Release" };
  on.world.patchPolicy({ spec: { onNotice, ...spec } });
  await on.world.pass(seconds(1));
  return on;
}

function maintenance({ world, word }: Stage, lead = minutes(10)) {
  const deadlineAt = plus(world.clock.now(), lead);
  return word("n1", { cause: "ScheduledMaintenance", deadlineAt });
}

function advice({ word }: Stage) {
  return word("n1", { cause: "RebalanceRecommendation", deadlineAt: undefined });
}

function failRelease({ world }: Stage): void {
  world.releaser.release = () => {
    throw new LastcallError("CLOUD_REFUSED", "Cannot release: a test has it fail");
  };
}

function takeMachine({ world }: Stage): void {
  world.api.handle({ method: "DELETE", path: `${nodes}/n1` });
}

describe("a notice with the reaction Release", () => {
  it.each([
    ["maintenance", maintenance],
    ["a recommendation", advice],
  ])(
    "releases the machine when the last pod has left, long before the cloud takes it: %s",
    async (_, told) => {
      const on = await releasing();
      const { world, tell, stop } = on;
      expect(await tell(told(on))).toBe("Taken");
      await world.pass(seconds(30));
      expect(world.released).toEqual([machine]);
      const steps = world.stepsOf("n1");
      expect(steps[0]).toBe("cordon");
      expect(steps.slice(1)).toEqual(["evict", "evict", "release", "remove"]);
      expect(world.statusOf("n1")).toMatchObject({ phase: "Ended", outcome: "Preempted" });
      await stop();
    },
  );

  it("leaves the machine to the cloud if the policy releases none", async () => {
    const on = await releasing({ instance: { release: "None" } });
    const { world, tell, stop } = on;
    await tell(maintenance(on));
    await world.pass(minutes(2));
    expect(world.released).toEqual([]);
    expect(world.statusOf("n1")).toMatchObject({ phase: "Releasing", reason: "AwaitingMachine" });
    await stop();
  });

  it("releases the machine of a node with a planned departure, too", async () => {
    const on = await releasing({}, { max: "24h", reserve: "30m" });
    const { world, word, tell, stop } = on;
    await tell(word("n1", { cause: "SpotInterruption" }));
    await world.pass(seconds(20));
    expect(world.podsOn("n1")).toEqual([]);
    expect(world.released).toEqual([machine]);
    await stop();
  });

  it("keeps the node cordoned if the release fails", async () => {
    const on = await releasing();
    const { world, tell, stop } = on;
    failRelease(on);
    await tell(maintenance(on));
    await world.pass(minutes(2));
    expect(world.marksOf("n1")).toContain("unschedulable");
    expect(world.statusOf("n1")).toMatchObject({ phase: "Releasing", reason: "ReleaseFailed" });
    takeMachine(on);
    await world.pass(seconds(5));
    expect(world.statusOf("n1")).toMatchObject({ phase: "Ended", outcome: "Preempted" });
    await stop();
  });

  it("uncordons the node if it is withdrawn after a failed release", async () => {
    const on = await releasing();
    const { world, tell, stop } = on;
    failRelease(on);
    const told = maintenance(on);
    await tell(told);
    await world.pass(minutes(2));
    await tell({ ...told, notice: { ...told.notice, withdrawn: true } });
    await world.pass(minutes(1));
    expect(world.marksOf("n1")).toEqual([]);
    expect(world.statusOf("n1")).toMatchObject({ phase: "Ended", outcome: "Cancelled" });
    await stop();
  });

  it("of a recommendation uncordons the node an hour after a failed release", async () => {
    const on = await releasing();
    const { world, tell, stop } = on;
    failRelease(on);
    await tell(advice(on));
    await world.pass(minutes(59));
    expect(world.marksOf("n1")).toContain("unschedulable");
    await world.pass(minutes(2));
    expect(world.marksOf("n1")).toEqual([]);
    await stop();
  });

  it("leaves the machine to the cloud under the next leader, too, after a failed release", async () => {
    const on = await releasing();
    const { world, feed, tell, stop } = on;
    failRelease(on);
    await tell(maintenance(on));
    await world.pass(minutes(1));
    await stop();
    const again = new AbortController();
    const running = world.startController(again.signal, { feeds: [feed] });
    await world.pass(seconds(10));
    takeMachine(on);
    await world.pass(seconds(5));
    expect(world.statusOf("n1")).toMatchObject({ phase: "Ended", outcome: "Preempted" });
    again.abort();
    await running;
  });

  it.each([
    ["for as long as the policy sets", "2m", minutes(10), 120],
    ["no longer than until the cloud takes it", "20m", minutes(5), 300],
  ])(
    "keeps the machine for load balancers %s",
    async (_, loadBalancerDelay, lead, afterSeconds) => {
      const on = await releasing({ instance: { loadBalancerDelay } });
      const { world, tell, stop } = on;
      await tell(maintenance(on, lead));
      await world.pass(seconds(afterSeconds - 10));
      expect(world.podsOn("n1")).toEqual([]);
      expect(world.released).toEqual([]);
      await world.pass(seconds(20));
      expect(world.released).toEqual([machine]);
      await stop();
    },
  );

  it("ends without a release if the cloud takes the machine first", async () => {
    const on = await releasing();
    const { world, tell, stop } = on;
    world.patchBudget("web", { spec: { maxUnavailable: 0 } });
    await tell(maintenance(on));
    await world.pass(seconds(30));
    takeMachine(on);
    await world.pass(seconds(10));
    expect(world.released).toEqual([]);
    expect(world.statusOf("n1")).toMatchObject({ phase: "Ended", outcome: "Expired" });
    await stop();
  });

  it("uncordons the node if it is withdrawn during the drain", async () => {
    const on = await releasing();
    const { world, tell, stop } = on;
    world.patchBudget("web", { spec: { maxUnavailable: 0 } });
    const told = maintenance(on);
    await tell(told);
    await tell({ ...told, notice: { ...told.notice, withdrawn: true } });
    await world.pass(seconds(10));
    expect(world.marksOf("n1")).toEqual([]);
    expect(world.released).toEqual([]);
    await stop();
  });
});

describe("a notice that arrives before the watch shows its node", () => {
  it("is acted on at once, and by the node's own policy once the node is known", async () => {
    const world = new ModelWorld();
    for (const name of ["n0", "n2"]) world.addNode(name, "a");
    webWorkload(world, { replicas: 4, maxUnavailable: 4 });
    spotPolicy(world, { lifetime: {}, onNotice: { spotInterruption: "Release" } });
    const watch = world.watched.watch.bind(world.watched);
    const seen = Promise.withResolvers<void>();
    world.watched.watch = async function* (request) {
      for await (const event of watch(request)) {
        if (request.path === nodes && event.object.metadata?.name === "n1") await seen.promise;
        yield event;
      }
    };
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    await world.pass(seconds(5));
    world.addNode("n1", "a");
    const uid = world.get(`${nodes}/n1`)?.metadata?.uid ?? "";
    const noticedAt = formatInstant(world.clock.now());
    world.create(departures, {
      apiVersion: "lastcall.dev/v1alpha1",
      kind: "Departure",
      metadata: { name: "n1-noticed" },
      spec: {
        ...{ node: { name: "n1", uid, providerID: machine }, cause: "SpotInterruption" },
        ...{ source: "agent/gcp/test", noticedAt },
        deadlineAt: formatInstant(plus(world.clock.now(), minutes(2))),
      },
    });
    await world.pass(seconds(10));
    expect(world.marksOf("n1")).toContain("unschedulable");
    expect(world.statusOf("n1")).toMatchObject({ reason: "AwaitingMachine" });
    expect(world.released).toEqual([]);

    seen.resolve();
    await world.pass(seconds(10));
    expect(world.released).toEqual([machine]);
    stop.abort();
    await running;
  });
});
