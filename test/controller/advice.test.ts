import { describe, expect, it } from "vitest";
import {
  formatInstant,
  hours,
  type Millis,
  minutes,
  plus,
  seconds,
} from "../../src/core/time/time.ts";
import { departures, ModelWorld, nodes, spotPolicy, webWorkload } from "../support/model-world.ts";

const names = ["n0", "n1", "n2", "n3", "n4", "n5"];

/** Six nodes under a budget of one, with the controller running. */
async function fleet(spec: object = {}) {
  const world = new ModelWorld();
  for (const name of names) world.addNode(name, "a");
  webWorkload(world, { replicas: 6, maxUnavailable: 6 });
  const onNotice = { rebalance: "Drain" };
  const replacement = { when: "None" };
  spotPolicy(world, {
    ...{ lifetime: {}, budgets: [{ nodes: 1 }], onNotice, replacement },
    ...spec,
  });
  await world.pass(seconds(5));
  const stop = new AbortController();
  const running = world.startController(stop.signal);
  await world.pass(seconds(5));
  const end = async () => {
    stop.abort();
    await running;
  };
  return { world, end };
}

/** A notice as an agent writes it, by default a recommendation. */
function tell(world: ModelWorld, name: string, spec: { cause?: string; lead?: Millis } = {}): void {
  const { cause = "RebalanceRecommendation", lead } = spec;
  const uid = world.get(`${nodes}/${name}`)?.metadata?.uid ?? "";
  const now = world.clock.now();
  world.create(departures, {
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "Departure",
    metadata: { name: `${name}-${uid.slice(0, 8)}` },
    spec: {
      ...{ node: { name, uid }, cause, noticedAt: formatInstant(now), source: "agent/aws/test" },
      ...(lead === undefined ? {} : { deadlineAt: formatInstant(plus(now, lead)) }),
    },
  });
}

function patch(world: ModelWorld, name: string, spec: object): void {
  const path = `${departures}/${world.departureOf(name)?.metadata?.name}`;
  const patchType = "application/merge-patch+json";
  expect(world.api.handle({ method: "PATCH", path, patchType, body: { spec } }).status).toBe(200);
}

function cordoned(world: ModelWorld): readonly string[] {
  return names.filter((name) => world.marksOf(name).includes("unschedulable"));
}

function takeMachine(world: ModelWorld, name: string): void {
  world.api.handle({ method: "DELETE", path: `${nodes}/${name}` });
}

describe("recommendations for six nodes under a budget of one", () => {
  it("cordon one node at a time, and the next when the cloud has taken the first", async () => {
    const { world, end } = await fleet();
    for (const name of names) tell(world, name);
    await world.pass(minutes(3));
    expect(cordoned(world)).toEqual(["n0"]);
    expect(world.podsOn("n0")).toEqual([]);
    expect(world.statusOf("n1")).toMatchObject({ phase: "Held", reason: "BudgetSpent" });
    takeMachine(world, "n0");
    await world.pass(seconds(30));
    expect(cordoned(world)).toEqual(["n1"]);
    await end();
  });

  it("let all six leave, one after another, if the policy releases their machines", async () => {
    const { world, end } = await fleet({ onNotice: { rebalance: "Release" } });
    for (const name of names) tell(world, name);
    await world.pass(hours(1));
    for (const name of names) expect(world.statusOf(name)).toMatchObject({ phase: "Ended" });
    const moved = world.steps.filter((step) => /^(cordon|remove) /.test(step));
    const left = moved.flatMap((step) => /^cordon (.*)/.exec(step)?.[1] ?? []);
    expect(left.toSorted()).toEqual(names);
    expect(moved).toEqual(left.flatMap((name) => [`cordon ${name}`, `remove ${name}`]));
    await end();
  });

  it("do not hold up an interruption, of another node or of one that is held", async () => {
    const { world, end } = await fleet();
    for (const name of names.slice(0, 5)) tell(world, name);
    await world.pass(minutes(1));
    tell(world, "n5", { cause: "SpotInterruption", lead: minutes(2) });
    await world.pass(seconds(1));
    expect(cordoned(world)).toEqual(["n0", "n5"]);
    const deadlineAt = formatInstant(plus(world.clock.now(), minutes(2)));
    patch(world, "n3", { cause: "SpotInterruption", deadlineAt });
    await world.pass(seconds(1));
    expect(cordoned(world)).toEqual(["n0", "n3", "n5"]);
    await end();
  });

  it("end at once if the policy ignores them", async () => {
    const { world, end } = await fleet({ onNotice: { rebalance: "Ignore" } });
    for (const name of names) tell(world, name);
    await world.pass(seconds(5));
    for (const name of names) {
      expect(world.statusOf(name)).toMatchObject({ phase: "Ended", reason: "NoticeIgnored" });
    }
    await end();
  });

  it("can be withdrawn while they are held", async () => {
    const { world, end } = await fleet();
    for (const name of names.slice(0, 2)) tell(world, name);
    await world.pass(minutes(1));
    patch(world, "n1", { withdrawnAt: formatInstant(world.clock.now()) });
    await world.pass(seconds(5));
    expect(world.statusOf("n1")).toMatchObject({ phase: "Ended", reason: "NoticeWithdrawn" });
    expect(cordoned(world)).toEqual(["n0"]);
    await end();
  });
});

describe("a recommendation", () => {
  it("reserves capacity between cordon and drain, until an interruption cuts that short", async () => {
    const replacement = { when: "BeforeDrain", timeout: "10m" };
    const { world, end } = await fleet({ replacement });
    // No other node can take the pods, so the departure waits for capacity.
    for (const name of names.slice(1)) world.patchNode(name, { spec: { unschedulable: true } });
    await world.pass(seconds(5));
    world.patchPolicy({ spec: { budgets: [] } });
    await world.pass(seconds(5));
    tell(world, "n0");
    await world.pass(minutes(1));
    expect(world.marksOf("n0")).toContain("unschedulable");
    expect(world.statusOf("n0")).toMatchObject({ phase: "Preparing", reason: "ReplacementWait" });
    expect(world.podsOn("n0")).not.toEqual([]);
    const deadlineAt = formatInstant(plus(world.clock.now(), minutes(2)));
    patch(world, "n0", { cause: "SpotInterruption", deadlineAt });
    await world.pass(seconds(2));
    expect(world.statusOf("n0").phase).toBe("Draining");
    await end();
  });

  it("only cordons, and reserves no capacity, if the policy says Cordon", async () => {
    const replacement = { when: "BeforeDrain", timeout: "10m" };
    const { world, end } = await fleet({ replacement, onNotice: { rebalance: "Cordon" } });
    tell(world, "n0");
    await world.pass(seconds(30));
    expect(cordoned(world)).toEqual(["n0"]);
    expect(world.statusOf("n0")).toMatchObject({ phase: "Draining", reason: "AwaitingMachine" });
    expect(world.podsOn("n0")).not.toEqual([]);
    await end();
  });

  it("ends an hour after its departure started, however long it was held before", async () => {
    const { world, end } = await fleet();
    for (const name of names.slice(0, 2)) tell(world, name);
    await world.pass(minutes(50));
    takeMachine(world, "n0");
    await world.pass(minutes(30));
    expect(cordoned(world)).toEqual(["n1"]);
    await world.pass(minutes(31));
    expect(world.statusOf("n1")).toMatchObject({ phase: "Ended", outcome: "Cancelled" });
    expect(cordoned(world)).toEqual([]);
    await end();
  });
});

describe("maintenance that is two hours ahead", () => {
  it("waits for budgets, but starts an hour before the maintenance at the latest", async () => {
    const { world, end } = await fleet();
    for (const name of names.slice(0, 3)) {
      tell(world, name, { cause: "ScheduledMaintenance", lead: hours(2) });
    }
    await world.pass(minutes(59));
    expect(cordoned(world)).toEqual(["n0"]);
    await world.pass(seconds(62));
    expect(cordoned(world)).toEqual(["n0", "n1", "n2"]);
    expect(world.departureOf("n1")?.status).toMatchObject({
      timeline: expect.arrayContaining([
        expect.objectContaining({ result: expect.stringContaining("allows no later start") }),
      ]),
    });
    await end();
  });
});
