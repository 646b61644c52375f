/**
 * An upgrade without the CRDs, which Helm installs once and never upgrades. The older ones are
 * those of 22 November 2026, without actions and much of the ledger.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { DoctorReport } from "../../src/doctor/report.ts";
import { runLastcall } from "../support/lastcall-process.ts";
import { FleetWorld } from "./fleet-world.ts";
import { nameOf } from "./history.ts";
import { judge } from "./judge.ts";
import { mustRun } from "./must-run.ts";

const older = join(import.meta.dirname, "../data/older-crds");
const own = join(import.meta.dirname, "../../deploy/crds");

let world: FleetWorld;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "lastcall-skew-"));
  world = await FleetWorld.start();
  await mustRun(world.plane, ["replace", "-f", older]);
  await world.startController(await world.controllerKubeconfig());
  await world.applyPolicy({ drain: { timeout: "2m", onTimeout: "Wait" } });
});

afterAll(async () => {
  await world?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** The status of doctor's checks of the CRDs, by id. */
async function definitionChecks(): Promise<Readonly<Record<string, string>>> {
  const args = ["doctor", "--kubeconfig", world.plane.kubeconfig, "-o", "json"];
  const { stdout } = await runLastcall(args, { folder });
  const { checks } = JSON.parse(stdout) as DoctorReport;
  const asked = checks.filter(({ id }) => id === "crds" || id === "crd-version");
  return Object.fromEntries(asked.map(({ id, status }) => [id, status]));
}

async function departsWell(index: number): Promise<void> {
  const name = nameOf(world.nodes[index] as (typeof world.nodes)[number]);
  const args = ["depart", name, "--kubeconfig", world.plane.kubeconfig];
  expect((await runLastcall(args, { folder })).code).toBe(0);
  const outcome = async () =>
    (await world.departures()).find(({ spec }) => spec?.node?.name === name)?.status?.outcome;
  expect(await world.until(`${name} has departed`, outcome)).toBe("Planned");
}

describe("a controller with CRDs that are older than it", () => {
  test("lets a node depart", () => departsWell(0));

  test("is reported by doctor", async () => {
    expect(await definitionChecks()).toEqual({ crds: "Pass", "crd-version": "Warn" });
  });

  test("lets a node depart after the CRDs are upgraded while it runs", async () => {
    await mustRun(world.plane, ["replace", "-k", own]);
    expect(await definitionChecks()).toEqual({ crds: "Pass", "crd-version": "Pass" });
    await departsWell(1);
  });

  test("lets a node depart after the CRDs are downgraded again", async () => {
    await mustRun(world.plane, ["replace", "-f", older]);
    await departsWell(2);
    await world.until("the fleet is at rest", () => world.isAtRest());
  });

  test("leaves no violation in the observed history", async () => {
    const rotated = world.charge.rotated.slice(0, 3);
    expect(judge(await world.history(), { ...world.charge, rotated })).toEqual([]);
  });
});
