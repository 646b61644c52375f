import { describe, expect, it } from "vitest";
import type { LaunchTimes } from "../../src/contracts/cloud.ts";
import { formatInstant, hours, minutes, plus, seconds } from "../../src/core/time/time.ts";
import { dawn, departures, ModelWorld, spotPolicy } from "../support/model-world.ts";

/** n1, a day after its Node object was created, with a machine that was launched an hour ago. */
async function oldNode(launchTimes: LaunchTimes) {
  const world = new ModelWorld();
  world.addNode("n1", "a");
  spotPolicy(world, { lifetime: { max: "24h", reserve: "30m" } });
  await world.pass(hours(30));
  const stop = new AbortController();
  const running = world.startController(stop.signal, { launchTimes });
  await world.pass(seconds(20));
  stop.abort();
  await running;
  return world;
}

describe("a Node object that is older than its machine", () => {
  const bornAt = plus(dawn, hours(29));

  it("leaves by the machine's launch time from the cloud", async () => {
    const launchTimes = {
      launchTimesOf: async ([one = ""]) => ({ bornAt: new Map([[one, bornAt]]), faults: [] }),
    };
    const world = await oldNode(launchTimes as LaunchTimes);
    expect(world.list(departures)).toHaveLength(1);
    expect(world.departureOf("n1")?.spec).toMatchObject({
      departAt: formatInstant(plus(bornAt, minutes(23.5 * 60))),
    });
    expect(world.steps).toEqual([]);
  });

  it("counts as overdue if the cloud has no launch time", async () => {
    const launchTimes = { launchTimesOf: async () => ({ bornAt: new Map(), faults: [] }) };
    const world = await oldNode(launchTimes as LaunchTimes);
    expect(world.steps).toContain("cordon n1");
  });
});

describe("a notice at startup", () => {
  it("does not wait for launch times", async () => {
    const never = { launchTimesOf: () => new Promise<never>(() => {}) };
    const world = new ModelWorld();
    world.addNode("n1", "a");
    spotPolicy(world, { lifetime: { max: "24h", reserve: "30m" } });
    world.notice("n1", seconds(30));
    const stop = new AbortController();
    const running = world.startController(stop.signal, { launchTimes: never });
    await world.pass(seconds(0));
    expect(world.marksOf("n1")).toContain("unschedulable");
    stop.abort();
    await running;
  });
});
