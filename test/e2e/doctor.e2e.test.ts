import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { instant, minus, minutes } from "../../src/core/time/time.ts";
import type { DoctorReport } from "../../src/doctor/report.ts";
import { createNodes } from "../support/kwok-fleet.ts";
import { runLastcall } from "../support/lastcall-process.ts";
import { FleetWorld } from "./fleet-world.ts";
import { mustRun } from "./must-run.ts";

const deploy = join(import.meta.dirname, "..", "..", "deploy");
let world: FleetWorld;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "lastcall-doctor-"));
  world = await FleetWorld.start();
  // Where the controller's pods are to be: not on the nodes that it takes away.
  await createNodes(world.plane, [{ name: "standard-1", provisioning: "standard" }]);
  for (const part of ["quota", "controller"]) {
    await mustRun(world.plane, ["apply", "-f", join(deploy, "base", `${part}.yaml`)]);
  }
  await mustRun(world.plane, ["apply", "-k", join(deploy, "agent")]);
  // The pods of the Deployment are played by kwok; this one leads.
  await world.startController(await world.controllerKubeconfig());
  await world.applyPolicy({ lifetime: { max: "24h" } });
});

afterAll(async () => {
  await world?.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function doctor(kubeconfig = world.plane.kubeconfig, ...more: readonly string[]) {
  const endpoint = ["--gcp-endpoint", world.cloud.endpoint];
  const args = ["doctor", "-o", "json", "--kubeconfig", kubeconfig, ...endpoint, ...more];
  const { code, stdout } = await runLastcall(args, { folder });
  const report = JSON.parse(stdout) as DoctorReport;
  return { code, report, of: new Map(report.checks.map((check) => [check.id, check])) };
}

/** Asks until the check says so: what it hangs on may take its time. */
async function says(id: string, status: string): Promise<string> {
  return world.until(`doctor says ${status} to ${id}`, async () => {
    const found = (await doctor()).of.get(id);
    return found?.status === status && found.message;
  });
}

describe("lastcall doctor on a cluster to which deploy/ was applied", () => {
  test("finds nothing that fails", async () => {
    await world.until("nothing fails and the policy has its status", async () => {
      const { code, of } = await doctor();
      return (
        code === 0 && of.get("forecast")?.status === "Pass" && of.get("images")?.status === "Pass"
      );
    });
    const { report, of } = await doctor();
    const notPassed = report.checks.filter(({ status }) => status !== "Pass");
    expect(notPassed.map(({ id, status }) => `${id} ${status}`)).toEqual([
      "placeholder-image Skip",
      "alerts Skip",
      "queue Skip",
    ]);
    expect(of.get("machines")?.message).toMatch(/^3 machines found: spot-/);
    expect(of.get("rights")?.message).toBe("the controller has its 38 rights");
  });

  test("answers the controller's own account as far as that may ask", async () => {
    const { of } = await doctor(await world.controllerKubeconfig(), "-n", "lastcall");
    expect(of.get("rights")).toMatchObject({ status: "Pass" });
    expect(of.get("policies")).toMatchObject({ status: "Pass" });
    expect(of.get("crds")).toMatchObject({ status: "Skip" });
    expect(of.get("reader")).toMatchObject({ status: "Warn" });
  });
});

describe("lastcall doctor sees what was broken:", () => {
  test("a budget that lets nobody go", async () => {
    const budget = ["create", "pdb", "never", "--selector=app=web", "--max-unavailable=0"];
    await mustRun(world.plane, budget);
    expect(await says("budgets", "Fail")).toContain("default/never");
    expect((await doctor()).code).toBe(3);
    await mustRun(world.plane, ["delete", "pdb", "never"]);
    await says("budgets", "Pass");
  });

  test("a workload that asks for more time than preemptible nodes give", async () => {
    await mustRun(world.plane, ["apply", "-f", "-"], {
      ...{ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "slow" } },
      spec: {
        replicas: 0,
        selector: { matchLabels: { app: "slow" } },
        template: {
          metadata: { labels: { app: "slow" } },
          spec: {
            terminationGracePeriodSeconds: 120,
            containers: [{ name: "slow", image: "slow" }],
          },
        },
      },
    });
    expect(await says("grace", "Warn")).toContain("grace-cut of Deployment default/slow");
  });

  test("two policies of one weight", async () => {
    await mustRun(world.plane, ["apply", "-f", "-"], {
      ...{ apiVersion: "lastcall.dev/v1alpha1", kind: "DeparturePolicy" },
      ...{ metadata: { name: "also" }, spec: { paused: true } },
    });
    expect(await says("policy-ties", "Warn")).toContain("also, spot have one weight");
    await mustRun(world.plane, ["delete", "dpol", "also"]);
  });

  test("a permission of the cloud that is gone", async () => {
    world.cloud.deny("compute.instanceGroupManagers.update");
    expect(await says("cloud-permissions", "Fail")).toContain("instanceGroupManagers.update");
    world.cloud.allow("compute.instanceGroupManagers.update");
  });

  test("a machine that never became a node", async () => {
    world.cloud.addStray("lost-1", "europe-west1-b");
    expect((await doctor()).of.get("machines-without-node")?.status).toBe("Pass");
    world.cloud.startAt("lost-1", minus(instant(Date.now()), minutes(16)));
    expect(await says("machines-without-node", "Warn")).toBe("1 machine without a Node: lost-1");
  });

  test("rights that were revoked", async () => {
    await mustRun(world.plane, ["delete", "clusterrolebinding", "lastcall"]);
    expect(await says("rights", "Fail")).toContain("the controller may not get nodes");
  });

  test("a definition that was deleted", async () => {
    await mustRun(world.plane, ["delete", "crd", "departures.lastcall.dev"]);
    expect(await says("crds", "Fail")).toBe("departures.lastcall.dev is not installed");
    const { report, of } = await doctor();
    expect(of.get("policies")?.status).toBe("Pass");
    expect(report.checks.length).toBeGreaterThan(20);
  });
});
