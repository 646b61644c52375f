import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FleetWorld } from "./fleet-world.ts";
import { judge, zonesAlternate } from "./judge.ts";

/**
 * Twice what a departure takes on an idle machine. If one takes longer than this, its successors
 * reach their deadline while it is out, and rightly no longer wait for it.
 */
const spacingSeconds = 15;
let world: FleetWorld;

beforeAll(async () => {
  world = await FleetWorld.start();
});

afterAll(() => world?.stop());

describe("nine nodes in three zones with sixty pods under budgets", () => {
  test("leave one after another as planned", async () => {
    await world.startController(await world.controllerKubeconfig());
    await world.applyPolicy({
      lifetime: { max: `${lifetimeSeconds()}s`, reserve: "1s" },
      spacing: { mode: "Late", min: `${spacingSeconds}s` },
      drain: { timeout: "2m", onTimeout: "Wait" },
    });
    await world.until("the fleet is rotated", () => world.isRotated(), 240_000);
  });

  test("leave no violation in the observed history", async () => {
    expect(judge(await world.history(), world.charge)).toEqual([]);
    expect(await world.brokenRules()).toEqual([]);
  });

  test("never leave the same zone twice in a row", async () => {
    expect(zonesAlternate(await world.history(), world.charge)).toEqual([]);
  });

  test("have departures with the outcome Planned", async () => {
    const departures = await world.departures();
    expect(departures.map(({ status }) => status?.outcome)).toEqual(Array(9).fill("Planned"));
  });
});

/** Long enough for nine departures, each as late as the spacing allows. */
function lifetimeSeconds(): number {
  const launchTimes = world.nodes.map((node) => Date.parse(node.metadata?.creationTimestamp ?? ""));
  const ageSeconds = Math.ceil((Date.now() - Math.min(...launchTimes)) / 1000);
  return ageSeconds + spacingSeconds * world.nodes.length;
}
