import { afterEach, describe, expect, it } from "vitest";
import { hours, minutes } from "../../src/core/time/time.ts";
import { departures, ModelWorld, nodes, policies, spotPolicy } from "../support/model-world.ts";

const soon = { key: "lastcall.dev/departing-soon", effect: "PreferNoSchedule" };
const foreign = { key: "example.com/gpu", value: "true", effect: "NoSchedule" };

let stop: AbortController;
let running: Promise<void>;
let world: ModelWorld;

/**
 * As far apart as possible: one leaves at 02:00, its earliest, the other at 03:30, its deadline.
 */
function start(departingSoonMs?: ReturnType<typeof minutes>): void {
  world = new ModelWorld();
  for (const name of ["n0", "n1"]) world.addNode(name, "a");
  const spacing = { mode: "Even" };
  spotPolicy(world, { lifetime: { min: "2h", max: "4h", reserve: "30m" }, spacing });
  lead(departingSoonMs);
}

function lead(departingSoonMs?: ReturnType<typeof minutes>): void {
  stop = new AbortController();
  running = world.startController(
    stop.signal,
    departingSoonMs === undefined ? {} : { departingSoonMs },
  );
}

async function stopLeading(): Promise<void> {
  stop.abort();
  await running;
}

afterEach(stopLeading);

function taintsOf(name: string): readonly object[] {
  const spec = world.get(`${nodes}/${name}`)?.spec as { taints?: readonly object[] } | undefined;
  return spec?.taints ?? [];
}

const soonNodes = () =>
  ["n0", "n1"].filter((name) => taintsOf(name).some((one) => "key" in one && one.key === soon.key));
const nodeWrites = () => world.writes.filter((one) => one.startsWith(`PATCH ${nodes}/`));

describe("the taint for nodes that leave soon", () => {
  it("is added once, as long before the departure as the option says, to no other node", async () => {
    start(minutes(30));
    await world.pass(minutes(89));
    expect(soonNodes()).toEqual([]);
    await world.pass(minutes(2));
    expect(soonNodes()).toHaveLength(1);
    await world.pass(minutes(28));
    expect(nodeWrites()).toHaveLength(1);
  });

  it("is removed with the plan, which leaves other taints alone", async () => {
    start(minutes(30));
    const tainted = { op: "add", path: "/spec/taints", value: [foreign] };
    for (const name of ["n0", "n1"]) {
      const path = `${nodes}/${name}`;
      const patchType = "application/json-patch+json" as const;
      world.api.handle({ method: "PATCH", path, patchType, body: [tainted] });
    }
    await world.pass(minutes(95));
    const [name = ""] = soonNodes();
    expect(taintsOf(name)).toEqual([foreign, soon]);
    world.api.handle({ method: "DELETE", path: `${policies}/spot` });
    await world.pass(minutes(1));
    expect(soonNodes()).toEqual([]);
    expect(taintsOf(name)).toEqual([foreign]);
  });

  it("is removed if the option was removed while no controller ran", async () => {
    start(minutes(30));
    await world.pass(minutes(95));
    expect(soonNodes()).toHaveLength(1);
    await stopLeading();
    lead();
    await world.pass(minutes(1));
    expect(soonNodes()).toEqual([]);
  });

  it("is not added without the option", async () => {
    start();
    await world.pass(minutes(119));
    expect(nodeWrites()).toEqual([]);
  });

  it("does not prevent the departure of its node", async () => {
    start(minutes(30));
    await world.pass(hours(4));
    const outcomes = world
      .list(departures)
      .flatMap(({ status }) => (status as { outcome?: string }).outcome ?? []);
    expect(outcomes).toEqual(["Planned", "Planned"]);
    const writes = (name: string) => world.steps.filter((step) => step.endsWith(` ${name}`));
    for (const name of ["n0", "n1"]) expect(writes(name)).toContain(`release ${name}`);
  });
});
