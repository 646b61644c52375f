import { setTimeout as pause } from "node:timers/promises";
import type { Pod } from "kubernetes-types/core/v1.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LastcallProcess } from "../support/lastcall-process.ts";
import { FleetWorld } from "./fleet-world.ts";
import { isBoundToNode } from "./history.ts";
import { judge } from "./judge.ts";
import { lateInstall } from "./late-install.ts";

const outageMs = 30_000;
let world: FleetWorld;

beforeAll(async () => {
  world = await FleetWorld.start();
});

afterAll(() => world?.stop());

describe("an API server that is down for 30 s during a drain", () => {
  let controller: LastcallProcess;

  test("leaves the controller running", async () => {
    controller = await world.startController(await world.controllerKubeconfig());
    await world.applyPolicy(lateInstall);
    await world.until("a node has lost some of its pods, but not all", isHalfDrained);
    await world.plane.stopApiServer();
    await pause(outageMs);
    expect(controller.death.aborted).toBe(false);
  });

  test("lets the controller complete the rotation when it is back", async () => {
    await world.plane.startApiServer();
    await world.until("the fleet is rotated", () => world.isRotated(), 240_000);
    expect(controller.death.aborted).toBe(false);
  });

  test("leaves no violation in the observed history", async () => {
    expect(judge(await world.history(), world.charge)).toEqual([]);
    expect(await world.brokenRules()).toEqual([]);
  });
});

async function isHalfDrained(): Promise<boolean> {
  const departures = await world.departures();
  const draining = departures.find(({ status }) => status?.phase === "Draining");
  const node = draining?.spec?.node?.name;
  if (node === undefined) return false;
  const path = `/api/v1/pods?fieldSelector=spec.nodeName%3D${node}`;
  const pods: readonly Pod[] = (await world.plane.request({ path })).body.items;
  const movable = pods.filter((pod) => !isBoundToNode(pod));
  const leaving = movable.filter((pod) => pod.metadata?.deletionTimestamp !== undefined);
  return leaving.length > 0 && leaving.length < movable.length;
}
