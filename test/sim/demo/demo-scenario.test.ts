import { beforeAll, describe, expect, it } from "vitest";
import { crdOf } from "../../../src/config/schema/crd.ts";
import { resourceDefinitions } from "../../../src/config/schema/resource-definition.ts";
import { hours, instant, minutes, plus, seconds } from "../../../src/core/time/time.ts";
import { eventLoopTurn } from "../../../src/runtime/real-clock.ts";
import type { MachineEvent } from "../../../src/sim/cloud/model-machine.ts";
import { startDemoWorld } from "../../../src/sim/demo/demo-world.ts";
import { VirtualClock } from "../../../src/sim/time/virtual-clock.ts";

const startAt = instant(Date.UTC(2026, 10, 20));
const definitions = resourceDefinitions.map(crdOf);

/** What the cloud does to a fleet without a controller in its first hours. */
async function preemptionsOf(seed: number, nodes: number): Promise<readonly MachineEvent[]> {
  const clock = new VirtualClock({ startAt, settle: eventLoopTurn });
  const events: MachineEvent[] = [];
  const cluster = startDemoWorld({ clock, seed, nodes, definitions });
  cluster.cloud.subscribe((event) => events.push(event));
  await clock.runUntil(plus(startAt, hours(6)));
  cluster.stop();
  return events;
}

describe.each([1, 2, 3])("The demo's fleet, seed %i", (seed) => {
  let noticed: readonly MachineEvent[] = [];

  beforeAll(async () => {
    noticed = (await preemptionsOf(seed, 18)).filter(({ kind }) => kind === "Noticed");
  });

  it("is launched within one minute", () => {
    const clock = new VirtualClock({ startAt, settle: eventLoopTurn });
    const cluster = startDemoWorld({ clock, seed, nodes: 18, definitions });
    const launchTimes = cluster.cloud.machines().map(({ bornAt }) => bornAt);
    cluster.stop();
    expect(launchTimes).toHaveLength(18);
    expect(Math.max(...launchTimes) - Math.min(...launchTimes)).toBeLessThanOrEqual(minutes(1));
  });

  it("loses its first machine after four minutes, and no other during that notice", () => {
    expect(noticed[0]).toMatchObject({ at: plus(startAt, minutes(4)), because: "Preempted" });
    expect(noticed[1]?.at).toBeGreaterThan(plus(startAt, seconds(390)));
  });

  it("loses the remaining machines at their 24 hours, within an hour of each other", () => {
    // 18 nodes leave 15 minutes apart from the tenth minute on, at 23 h 30 min: they were launched
    // 19 h 5 min before.
    const limitAt = plus(startAt, minutes(294));
    const limits = noticed.filter(({ because }) => because === "Limit");
    expect(limits.length).toBeGreaterThan(9);
    for (const { at } of limits) {
      expect(at).toBeGreaterThan(limitAt - seconds(150));
      expect(at).toBeLessThan(plus(limitAt, minutes(52)));
    }
  });
});

it("the same seed gives the same events, and another seed gives others", async () => {
  const eventsOf = async (seed: number) =>
    (await preemptionsOf(seed, 6)).map(({ kind, at, machine }) => `${at} ${kind} ${machine.name}`);
  const first = await eventsOf(4);
  expect(await eventsOf(4)).toEqual(first);
  expect(await eventsOf(5)).not.toEqual(first);
});
