import { afterEach, describe, expect, it } from "vitest";
import { formatInstant, hours, minutes, plus, seconds } from "../../src/core/time/time.ts";
import { departures, ModelWorld, nodes, spotPolicy, webWorkload } from "../support/model-world.ts";

/** Controllers over three nodes, each planned for a day later; stopped after each test. */
const running: { stop: AbortController; done: Promise<void> }[] = [];

async function fleet(spec: Readonly<Record<string, unknown>> = {}): Promise<ModelWorld> {
  const world = new ModelWorld();
  for (const name of ["n0", "n1", "n2"]) world.addNode(name, name);
  webWorkload(world, { replicas: 6, maxUnavailable: 6 });
  spotPolicy(world, { lifetime: { max: "24h" }, ...spec });
  await world.pass(seconds(5));
  const stop = new AbortController();
  running.push({ stop, done: world.startController(stop.signal) });
  await world.pass(seconds(5));
  return world;
}

afterEach(async () => {
  for (const { stop, done } of running.splice(0)) {
    stop.abort();
    await done;
  }
});

/** As `lastcall depart` writes it. */
function ask(world: ModelWorld, name: string, spec: Readonly<Record<string, unknown>> = {}): void {
  const uid = world.get(`${nodes}/${name}`)?.metadata?.uid ?? "";
  world.create(departures, {
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "Departure",
    metadata: { name: `${name}-${uid.slice(0, 8)}-2` },
    spec: { node: { name, uid }, cause: "Manual", source: "person", ...spec },
  });
}

/** `cause phase outcome` of every departure of the node's first object. */
function endsOf(world: ModelWorld, name: string): readonly string[] {
  return world.list(departures).flatMap(({ spec, status }) => {
    const { node, cause } = spec as { node: { name: string; uid: string }; cause: string };
    const { phase, outcome } = (status ?? {}) as { phase?: string; outcome?: string };
    const old = node.name === name && world.firstUids.includes(node.uid);
    return old ? `${cause} ${phase}${outcome === undefined ? "" : ` ${outcome}`}` : [];
  });
}

describe("a person's change while the start of a departure is being written", () => {
  const laterAt = formatInstant(plus(new ModelWorld().clock.now(), hours(3)));

  it.each<[string, Readonly<Record<string, unknown>>, string]>([
    ["a hold", { hold: true }, "Held"],
    ["another time", { departAt: laterAt }, "Scheduled"],
  ])("counts: %s, and the node is not touched", async (_, spec, phase) => {
    const world = await fleet();
    const send = world.api.send.bind(world.api);
    let said = false;
    world.api.send = (request) => {
      const body = JSON.stringify(request.bodyAtTurn?.() ?? {});
      if (!said && request.path.endsWith("/status") && body.includes('"phase":"Preparing"')) {
        said = true;
        const path = request.path.replace("/status", "");
        const patchType = "application/merge-patch+json";
        world.api.handle({ method: "PATCH", path, patchType, body: { spec } });
      }
      return send(request);
    };
    ask(world, "n1");
    await world.pass(minutes(2));
    expect(said).toBe(true);
    expect(world.stepsOf("n1")).toEqual([]);
    const uid = world.get(`${nodes}/n1`)?.metadata?.uid ?? "";
    const asked = world.get(`${departures}/n1-${uid.slice(0, 8)}-2`);
    expect(asked?.status).toMatchObject({ phase });
    expect(JSON.stringify(asked?.status)).not.toContain("Preparing");
  });
});

interface RequestedStatus {
  readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  readonly endedAt?: string;
}

describe("a departure that a person requested", () => {
  it("rotates the node at once, and cancels its planned departure", async () => {
    const world = await fleet();
    ask(world, "n1");
    await world.pass(minutes(2));
    expect(world.stepsOf("n1")).toEqual(["cordon", "evict", "evict", "release", "remove"]);
    expect(endsOf(world, "n1").toSorted()).toEqual([
      "Manual Ended Planned",
      "Planned Ended Cancelled",
    ]);
    expect(world.stepsOf("n0")).toEqual([]);
  });

  it("gets its conditions with the writes of its phases, and no write for them", async () => {
    const world = await fleet();
    ask(world, "n1");
    await world.pass(minutes(2));
    const requested = () =>
      world.list(departures).find(({ spec }) => (spec as { cause: string }).cause === "Manual");
    const done = requested();
    const { conditions, endedAt } = (done?.status ?? {}) as RequestedStatus;
    expect(conditions?.map(({ type, status }) => `${type} ${status}`)).toEqual([
      ...["Scheduled False", "Held False", "Draining False"],
      ...["Drained True", "Released True", "Ended True"],
    ]);
    expect(conditions?.at(-1)).toMatchObject({ type: "Ended", lastTransitionTime: endedAt });
    await world.pass(minutes(10));
    expect(requested()?.metadata?.resourceVersion).toBe(done?.metadata?.resourceVersion);
  });

  it("waits while another tool disrupts its node, past its own deadline as well", async () => {
    const world = await fleet();
    const marked = (taints: readonly object[]) => world.patchNode("n1", { spec: { taints } });
    marked([{ key: "ToBeDeletedByClusterAutoscaler", effect: "NoSchedule" }]);
    ask(world, "n1", { deadlineAt: formatInstant(plus(world.clock.now(), minutes(5))) });
    await world.pass(minutes(10));
    expect(endsOf(world, "n1")).toContain("Manual Held");
    expect(world.steps).toEqual([]);
    marked([]);
    await world.pass(minutes(2));
    expect(endsOf(world, "n1")).toContain("Manual Ended Planned");
  });

  it("waits for its departAt", async () => {
    const world = await fleet();
    ask(world, "n1", { departAt: formatInstant(plus(world.clock.now(), minutes(10))) });
    await world.pass(minutes(9));
    expect(world.stepsOf("n1")).toEqual([]);
    await world.pass(minutes(2));
    expect(world.stepsOf("n1")).toContain("release");
  });

  it("past the node's deadline warns that the planned one comes first, and ends with it", async () => {
    const world = await fleet();
    ask(world, "n1", { departAt: formatInstant(plus(world.clock.now(), hours(30))) });
    await world.pass(minutes(1));
    expect(endsOf(world, "n1").toSorted()).toEqual(["Manual Held", "Planned Scheduled"]);
    const told = world.events.filter(({ reason }) => reason === "DeadlineFirst");
    expect(told.map(({ type, about }) => `${type} ${about.kind} ${about.name}`)).toEqual([
      "Warning Node n1",
    ]);
    await world.pass(hours(24));
    expect(endsOf(world, "n1").toSorted()).toEqual([
      "Manual Ended Cancelled",
      "Planned Ended Planned",
    ]);
  });

  it("leaves no cordon if it is deleted during the drain, and the planned one stays", async () => {
    const world = await fleet();
    world.patchBudget("web", { spec: { maxUnavailable: 0 } });
    ask(world, "n1");
    await world.pass(minutes(1));
    expect(world.marksOf("n1")).not.toEqual([]);
    const asked = world
      .list(departures)
      .find(({ spec }) => (spec as { cause: string }).cause === "Manual");
    world.api.handle({ method: "DELETE", path: `${departures}/${asked?.metadata?.name}` });
    await world.pass(seconds(10));
    expect(world.marksOf("n1")).toEqual([]);
    expect(endsOf(world, "n1")).toEqual(["Planned Scheduled"]);
  });

  it("waits for the budgets, which its status says", async () => {
    const world = await fleet({ budgets: [{ nodes: 1 }] });
    for (const name of ["n0", "n1", "n2"]) ask(world, name);
    await world.pass(seconds(2));
    expect(
      world.list(nodes).filter((node) => world.marksOf(node.metadata?.name ?? "").length > 0),
    ).toHaveLength(1);
    const held = world.list(departures).filter(({ spec, status }) => {
      const { cause } = spec as { cause: string };
      return cause === "Manual" && (status as { reason?: string })?.reason === "BudgetSpent";
    });
    expect(held).toHaveLength(2);
    await world.passUntil(() => world.released.length === 3, minutes(15));
  });

  it("ignores the budgets once its deadline has come", async () => {
    const world = await fleet({ budgets: [{ nodes: 1 }] });
    world.patchNode("n0", { spec: { unschedulable: true } });
    ask(world, "n1", { deadlineAt: formatInstant(plus(world.clock.now(), minutes(5))) });
    await world.pass(minutes(4));
    expect(world.stepsOf("n1")).toEqual([]);
    await world.pass(minutes(3));
    expect(world.stepsOf("n1")).toContain("cordon");
  });

  it("ignores them at most once in spacing.min, however many have the same deadline", async () => {
    const world = await fleet({ budgets: [{ nodes: 1 }], spacing: { mode: "Late", min: "7m" } });
    world.bornAfterMs = hours(9);
    world.patchNode("n0", { spec: { unschedulable: true } });
    const deadlineAt = plus(world.clock.now(), minutes(5));
    for (const name of ["n1", "n2"]) ask(world, name, { deadlineAt: formatInstant(deadlineAt) });
    await world.passUntil(() => world.stepsOf("n1").includes("cordon"), minutes(6));
    const first = world.clock.now();
    expect(first).toBeGreaterThanOrEqual(deadlineAt);
    await world.pass(minutes(6));
    expect(world.stepsOf("n2")).toEqual([]);
    await world.passUntil(() => world.stepsOf("n2").includes("cordon"), minutes(2));
    expect(world.clock.now() - first).toBeLessThan(minutes(7.5));
  });

  it("counts as missing while its machine is not replaced, although it names no policy", async () => {
    const world = await fleet({ budgets: [{ nodes: 1 }] });
    world.bornAfterMs = hours(9);
    for (const name of ["n0", "n1", "n2"]) ask(world, name);
    await world.pass(hours(1));
    expect(world.released).toHaveLength(1);
  });

  it("may drain until its deadline, and is then rolled back as the policy says", async () => {
    const world = await fleet();
    world.patchBudget("web", { spec: { maxUnavailable: 0 } });
    ask(world, "n1", { deadlineAt: formatInstant(plus(world.clock.now(), minutes(20))) });
    await world.pass(minutes(19));
    expect(endsOf(world, "n1")).toContain("Manual Draining");
    await world.pass(minutes(2));
    expect(endsOf(world, "n1")).toContain("Manual Ended RolledBack");
    expect(world.marksOf("n1")).toEqual([]);
  });
});
