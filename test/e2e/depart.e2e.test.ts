import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runLastcall } from "../support/lastcall-process.ts";
import { FleetWorld } from "./fleet-world.ts";
import { nameOf } from "./history.ts";
import { judge } from "./judge.ts";

let world: FleetWorld;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "lastcall-depart-"));
  world = await FleetWorld.start();
});

afterAll(async () => {
  await world?.stop();
  rmSync(folder, { recursive: true, force: true });
});

describe("nine nodes that a person asks to depart at once, under a budget of one", () => {
  test("leave one after another", async () => {
    await world.startController(await world.controllerKubeconfig());
    await world.applyPolicy({ drain: { timeout: "2m", onTimeout: "Wait" } });
    const names = world.nodes.map(nameOf);
    const { kubeconfig } = world.plane;
    const { code, stdout } = await runLastcall(["depart", ...names, "--kubeconfig", kubeconfig], {
      folder,
    });
    expect(code).toBe(0);
    expect(stdout.match(/^departure\/\S+ created: /gm)).toHaveLength(9);
    await world.until("the fleet is rotated", () => world.isRotated(), 240_000);
  });

  test("and nothing that an onlooker can see was amiss", async () => {
    expect(judge(await world.history(), world.charge)).toEqual([]);
  });

  test("and each says that it was asked for, and ended as planned", async () => {
    const departures = await world.departures();
    const stories = departures.map(({ spec, status }) => `${spec?.cause} ${status?.outcome}`);
    expect(stories).toEqual(Array(9).fill("Manual Planned"));
  });
});
