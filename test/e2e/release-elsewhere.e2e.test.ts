import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ControlPlane } from "../support/control-plane.ts";
import { ArmFleet } from "./arm-fleet.ts";
import type { FleetCloud } from "./fleet-cloud.ts";
import { FleetWorld } from "./fleet-world.ts";
import { judge } from "./judge.ts";
import { KarpenterFleet } from "./karpenter-fleet.ts";
import { MotoFleet } from "./moto-fleet.ts";

/** More than a departure takes, or the last would be forced by its deadline beside another. */
const spacingSeconds = 16;
const size = 9;

const clouds: readonly [string, (plane: ControlPlane) => Promise<FleetCloud>][] = [
  ["an Auto Scaling group on moto", (plane) => MotoFleet.start(plane, size)],
  ["a node pool of AKS on our Resource Manager", (plane) => ArmFleet.start(plane)],
  ["a NodePool with a model of Karpenter", (plane) => KarpenterFleet.start(plane)],
];

describe.each(clouds)("nine nodes of %s", (_, startCloud) => {
  let world: FleetWorld;

  beforeAll(async () => {
    world = await FleetWorld.start({ elsewhere: startCloud });
  });

  afterAll(() => world?.stop());

  test("leave one after another on their plan", async () => {
    await world.startController(await world.controllerKubeconfig());
    await world.applyPolicy({
      lifetime: { max: `${lifetimeSeconds(world)}s`, reserve: "1s" },
      spacing: { mode: "Late", min: `${spacingSeconds}s` },
      drain: { timeout: "2m", onTimeout: "Wait" },
    });
    await world.until("the fleet is rotated", () => world.isRotated(), 300_000);
  });

  test("and nothing that an onlooker can see was amiss", async () => {
    expect(judge(await world.history(), world.charge)).toEqual([]);
  });

  test("and each machine was released once, empty, and was another's from then on", async () => {
    const { releases } = await world.history();
    expect(releases.map(({ machine }) => machine).toSorted()).toEqual(
      world.nodes.map(({ metadata }) => metadata?.name).toSorted(),
    );
    const departures = await world.departures();
    expect(departures.map(({ status }) => status?.outcome)).toEqual(Array(size).fill("Planned"));
  });
});

/** So long that the last of nine plans, each as late as the spacing allows, lies that far ahead. */
function lifetimeSeconds(world: FleetWorld): number {
  const madeAt = world.nodes.map((node) => Date.parse(node.metadata?.creationTimestamp ?? ""));
  const ageSeconds = Math.ceil((Date.now() - Math.min(...madeAt)) / 1000);
  return ageSeconds + spacingSeconds * world.nodes.length;
}
