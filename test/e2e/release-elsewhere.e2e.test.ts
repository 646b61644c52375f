import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ControlPlane } from "../support/control-plane.ts";
import { ArmFleet } from "./arm-fleet.ts";
import type { FleetCloud } from "./fleet-cloud.ts";
import { FleetWorld } from "./fleet-world.ts";
import { judge } from "./judge.ts";
import { MotoFleet } from "./moto-fleet.ts";

/** Longer than a departure takes, or else the deadline would force two at once at the end. */
const spacingSeconds = 16;
const size = 9;

const startCloud = {
  "an Auto Scaling group on moto": (plane: ControlPlane) => MotoFleet.start(plane, size),
  "a node pool of AKS on our Resource Manager": (plane: ControlPlane) => ArmFleet.start(plane),
} satisfies Record<string, (plane: ControlPlane) => Promise<FleetCloud>>;
type CloudName = keyof typeof startCloud;
const clouds = Object.keys(startCloud) as CloudName[];

/** Each with its own control plane; mostly they wait for planned instants, at the same time. */
const worlds = new Map<CloudName, FleetWorld>();

beforeAll(async () => {
  const started = clouds.map(async (cloud) => {
    worlds.set(cloud, await FleetWorld.start({ elsewhere: startCloud[cloud] }));
  });
  await Promise.all(started);
});

afterAll(async () => {
  await Promise.all([...worlds.values()].map((world) => world.stop()));
});

function worldOf(cloud: CloudName): FleetWorld {
  return worlds.get(cloud) as FleetWorld;
}

test.concurrent.for(clouds)(
  "nine nodes of %s leave one after another as planned",
  async (cloud) => {
    const world = worldOf(cloud);
    await world.startController(await world.controllerKubeconfig());
    await world.applyPolicy({
      lifetime: { max: `${lifetimeSeconds(world)}s`, reserve: "1s" },
      spacing: { mode: "Late", min: `${spacingSeconds}s` },
      drain: { timeout: "2m", onTimeout: "Wait" },
    });
    await world.until("the fleet is rotated", () => world.isRotated(), 290_000);
  },
);

describe.each(clouds)("the rotation of nine nodes of %s", (cloud) => {
  test("leaves no violation in the observed history", async () => {
    const world = worldOf(cloud);
    expect(judge(await world.history(), world.charge)).toEqual([]);
    expect(await world.brokenRules()).toEqual([]);
  });

  test("releases each machine once, and every departure ends as planned", async () => {
    const world = worldOf(cloud);
    const { releases } = await world.history();
    expect(releases.map(({ machine }) => machine).toSorted()).toEqual(
      world.nodes.map(({ metadata }) => metadata?.name).toSorted(),
    );
    const departures = await world.departures();
    expect(departures.map(({ status }) => status?.outcome)).toEqual(Array(size).fill("Planned"));
  });
});

/** Long enough for nine departures, each as late as the spacing allows. */
function lifetimeSeconds(world: FleetWorld): number {
  const madeAt = world.nodes.map((node) => Date.parse(node.metadata?.creationTimestamp ?? ""));
  const ageSeconds = Math.ceil((Date.now() - Math.min(...madeAt)) / 1000);
  return ageSeconds + spacingSeconds * world.nodes.length;
}
