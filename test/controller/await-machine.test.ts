import { afterEach, describe, expect, it } from "vitest";
import { hours, minutes, seconds } from "../../src/core/time/time.ts";
import { LastcallError } from "../../src/errors.ts";
import {
  departures,
  ModelWorld,
  nodes,
  policies,
  spotPolicy,
  webWorkload,
} from "../support/model-world.ts";

const running: { stop: AbortController; done: Promise<void> }[] = [];

afterEach(async () => {
  for (const { stop, done } of running.splice(0)) {
    stop.abort();
    await done;
  }
});

/** Three nodes with a lifetime of four hours, under a policy that may drain one at a time. */
async function fleet(spec: Readonly<Record<string, unknown>>): Promise<ModelWorld> {
  const world = new ModelWorld();
  for (const name of ["n0", "n1", "n2"]) world.addNode(name, name);
  webWorkload(world, { replicas: 6, maxUnavailable: 6 });
  spotPolicy(world, { lifetime: { max: "4h" }, budgets: [{ nodes: 1 }], ...spec });
  await world.pass(seconds(5));
  start(world);
  await world.pass(seconds(5));
  return world;
}

function start(world: ModelWorld): void {
  const stop = new AbortController();
  running.push({ stop, done: world.startController(stop.signal) });
}

interface Status {
  readonly phase: string;
  readonly outcome?: string;
  readonly reason?: string;
  readonly message?: string;
}

function statuses(world: ModelWorld): readonly Status[] {
  return world.list(departures).map(({ status }) => status as unknown as Status);
}

function cordonsOf(world: ModelWorld, name: string): number {
  return world.stepsOf(name).filter((step) => step === "cordon").length;
}

function marked(world: ModelWorld): readonly string[] {
  return ["n0", "n1", "n2"].filter((name) => world.marksOf(name).length > 0);
}

describe("a drained node that nothing terminates", () => {
  const stays = { instance: { release: "None" } };

  it("is uncordoned after half an hour, with advice on what to do", async () => {
    const world = await fleet(stays);
    const isAwaiting = () => statuses(world).some(({ phase }) => phase === "Releasing");
    await world.passUntil(isAwaiting, hours(4));
    const [first = ""] = marked(world);
    await world.pass(minutes(29));
    expect(marked(world)).toEqual([first]);
    await world.pass(minutes(2));
    expect(world.marksOf(first)).toEqual([]);
    expect(statuses(world).find(({ phase }) => phase === "Ended")).toMatchObject({
      ...{ outcome: "RolledBack", reason: "MachineNotTaken" },
      message: expect.stringContaining("let another tool delete drained machines"),
    });
    const event = world.events.find(({ reason }) => reason === "DepartureEnded");
    expect(event).toMatchObject({ type: "Warning", about: { name: first } });
    expect(event?.message).toContain("nothing terminated its machine");
  });

  it("gives up its place in the budget, and other nodes leave", async () => {
    const world = await fleet(stays);
    await world.pass(hours(6));
    for (const name of ["n0", "n1", "n2"]) expect(cordonsOf(world, name)).toBeGreaterThan(0);
  });

  it("is uncordoned by the next controller if its policy has been deleted", async () => {
    const world = await fleet(stays);
    const isAwaiting = () => statuses(world).some(({ phase }) => phase === "Releasing");
    await world.passUntil(isAwaiting, hours(4));
    for (const { stop, done } of running.splice(0)) {
      stop.abort();
      await done;
    }
    world.api.handle({ method: "DELETE", path: `${policies}/spot` });
    start(world);
    await world.pass(minutes(1));
    expect(marked(world)).toEqual([]);
    expect(statuses(world).find(({ outcome }) => outcome !== undefined)).toMatchObject({
      ...{ outcome: "RolledBack", reason: "PlanChanged" },
      message: expect.stringContaining("its policy spot is deleted"),
    });
    expect(world.steps.filter((step) => step.startsWith("release"))).toEqual([]);
  });

  it("is uncordoned after instance.awaitMachine", async () => {
    const world = await fleet({ instance: { release: "None", awaitMachine: "2h" } });
    const isAwaiting = () => statuses(world).some(({ phase }) => phase === "Releasing");
    await world.passUntil(isAwaiting, hours(4));
    const [first = ""] = marked(world);
    await world.pass(minutes(119));
    expect(marked(world)).toContain(first);
    await world.pass(minutes(2));
    expect(marked(world)).not.toContain(first);
  });

  it("is uncordoned no later if another controller takes over", async () => {
    const world = await fleet(stays);
    const isAwaiting = () => statuses(world).some(({ phase }) => phase === "Releasing");
    await world.passUntil(isAwaiting, hours(4));
    await world.pass(minutes(20));
    const [former] = running.splice(0);
    former?.stop.abort();
    await former?.done;
    start(world);
    await world.pass(minutes(9));
    expect(marked(world)).toHaveLength(1);
    await world.pass(minutes(2));
    expect(statuses(world).some(({ reason }) => reason === "MachineNotTaken")).toBe(true);
  });

  it("counts as planned if something terminates it in time", async () => {
    const world = await fleet(stays);
    const isAwaiting = () => statuses(world).some(({ phase }) => phase === "Releasing");
    await world.passUntil(isAwaiting, hours(4));
    const [first = ""] = marked(world);
    await world.pass(minutes(20));
    world.machines.delete(`gce://demo/${first}/${first}`);
    world.api.handle({ method: "DELETE", path: `${nodes}/${first}` });
    await world.pass(minutes(1));
    expect(world.statusOf(first)).toMatchObject({ phase: "Ended", outcome: "Planned" });
  });

  it("is drained at most seven times in three days", async () => {
    const world = await fleet(stays);
    await world.pass(hours(72));
    // First after three hours; then after pauses of 1, 2, 4, 8, 16 and 24 hours, each of which
    // follows a wait of half an hour.
    for (const name of ["n0", "n1", "n2"]) {
      expect(cordonsOf(world, name)).toBeGreaterThan(1);
      expect(cordonsOf(world, name)).toBeLessThanOrEqual(7);
    }
  });
});

describe("a node whose release fails", () => {
  it("is drained at most seven times in three days, although the check passes", async () => {
    const world = await fleet({});
    world.releaser.release = () =>
      Promise.reject(new LastcallError("CLOUD_REFUSED", "Cannot recreate: the quota is used up"));
    await world.pass(hours(72));
    expect(world.released).toEqual([]);
    for (const name of ["n0", "n1", "n2"]) {
      expect(cordonsOf(world, name)).toBeGreaterThan(1);
      expect(cordonsOf(world, name)).toBeLessThanOrEqual(7);
    }
  });

  it("is drained at once at a person's request", async () => {
    const world = await fleet({});
    const { release } = world.releaser;
    world.releaser.release = () =>
      Promise.reject(new LastcallError("CLOUD_REFUSED", "Cannot recreate: the quota is used up"));
    const hasFailed = () => statuses(world).some(({ outcome }) => outcome === "Failed");
    await world.passUntil(hasFailed, hours(4));
    const { spec } = world
      .list(departures)
      .find(({ status }) => (status as unknown as Status).outcome === "Failed") as {
      spec: { node: { name: string; uid: string } };
    };
    world.releaser.release = release;
    world.create(departures, {
      apiVersion: "lastcall.dev/v1alpha1",
      kind: "Departure",
      metadata: { name: "by-hand" },
      spec: { node: spec.node, cause: "Manual", source: "person" },
    });
    await world.passUntil(() => world.released.length > 0, minutes(10));
    expect(world.stepsOf(spec.node.name)).toContain("release");
  });
});
