import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ControlPlane, startControlPlane } from "../support/control-plane.ts";
import { freePort } from "../support/free-port.ts";
import { nodeObject } from "../support/kwok-fleet.ts";
import {
  type LastcallProcess,
  type ProcessEnd,
  runLastcall,
  startAsPod,
} from "../support/lastcall-process.ts";
import { waitUntil } from "../support/wait-until.ts";
import { mustRun } from "./must-run.ts";

const deploy = join(import.meta.dirname, "..", "..", "deploy");

let plane: ControlPlane;
let folder: string;
let controller: LastcallProcess;
let metricsUrl: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "lastcall-ready-"));
  plane = await startControlPlane({
    ...{ withControllerManager: false, withScheduler: false, withKwok: false },
  });
  await mustRun(plane, ["apply", "-k", join(deploy, "crds")]);
  await mustRun(plane, ["apply", "-f", join(deploy, "base/namespace.yaml")]);
  await mustRun(plane, ["apply", "-f", join(deploy, "base/rbac.yaml")]);
  const node = nodeObject({ name: "spot-1", provisioning: "spot" });
  await mustRun(plane, ["apply", "-f", "-"], node);
  await mustRun(plane, ["apply", "-f", "-"], {
    apiVersion: "v1",
    kind: "List",
    items: workloads(),
  });
  await until("policies are served", async () => (await plane.kubectl(["get", "dpol"])).code === 0);
  await mustRun(plane, ["apply", "-f", "-"], {
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "DeparturePolicy",
    metadata: { name: "spot" },
    spec: {},
  });
  const metrics = `127.0.0.1:${await freePort()}`;
  metricsUrl = `http://${metrics}/metrics`;
  const kubeconfig = plane.kubeconfigFor("lastcall", await plane.tokenFor("lastcall", "lastcall"));
  controller = startAsPod(
    [
      ...["run", "--kubeconfig", kubeconfig, "--audit-every", "2s"],
      ...["--health-address", `127.0.0.1:${await freePort()}`, "--metrics-address", metrics],
    ],
    { folder },
  );
});

afterAll(async () => {
  await controller?.stop();
  await plane?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** 130 workloads in 13 namespaces, more than one page: ten request 60 s, one avoids Spot nodes. */
function workloads(): readonly object[] {
  const namespaces = Array.from({ length: 13 }, (_, at) => `team-${at}${at % 2 ? "-eu" : ""}`);
  const stable = { "karpenter.sh/capacity-type": "on-demand" };
  return namespaces.flatMap((namespace, team) => [
    { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } },
    ...Array.from({ length: 10 }, (_, at) => {
      const asks = at === 0 && team < 10 ? { terminationGracePeriodSeconds: 60 } : {};
      const pinned = at === 1 && team === 0 ? { nodeSelector: stable } : {};
      return deployment(namespace, `web-${at}`, { ...asks, ...pinned });
    }),
  ]);
}

function deployment(namespace: string, name: string, pod: object): object {
  const labels = { app: name };
  const spec = { containers: [{ name: "main", image: "main:1" }], ...pod };
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name, namespace },
    spec: {
      replicas: 2,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec },
    },
  };
}

function until(what: string, holds: () => Promise<boolean>): Promise<unknown> {
  const signals = [plane.signal, ...(controller === undefined ? [] : [controller.death])];
  return waitUntil(holds, { what, timeoutMs: 60_000, signal: AbortSignal.any(signals) });
}

function audit(...flags: string[]): Promise<ProcessEnd> {
  const args = ["audit", "--kubeconfig", plane.kubeconfig, "-o", "json", ...flags];
  return runLastcall(args, { folder });
}

async function spotReady(): Promise<{ status?: string; reason?: string; message?: string }> {
  const { body } = await plane.request({
    path: "/apis/lastcall.dev/v1alpha1/departurepolicies/spot",
  });
  const conditions: { type: string; message?: string }[] = body.status?.conditions ?? [];
  return conditions.find(({ type }) => type === "SpotReady") ?? {};
}

describe("the controller with the permissions of deploy/base", () => {
  test("reports the audit of the policy's workloads as a condition", async () => {
    await until("the condition is there", async () => (await spotReady()).status !== undefined);

    expect(await spotReady()).toMatchObject({
      status: "False",
      reason: "FindingsOpen",
      // The default of 30 s, if nobody chose another, is also cut, but is only information.
      message: expect.stringMatching(
        /^129 of 129 workloads ask for more than the 15 s that gke gives; found: 10 grace-cut, 129 no-spread; such as Deployment team-0\/web-0: Asks for 60 s/,
      ),
    });
  });

  test("exposes the same as metrics, without names of workloads in labels", async () => {
    const text = await (await fetch(metricsUrl)).text();
    const lines = text.split("\n").filter((line) => line.startsWith("lastcall_audit_"));

    expect(lines).toEqual(
      expect.arrayContaining([
        'lastcall_audit_findings{policy="spot",rule="grace-cut",severity="error"} 10',
        'lastcall_audit_findings{policy="spot",rule="no-spread",severity="warning"} 129',
        'lastcall_audit_workloads{policy="spot",platform="gke",grace="Cut"} 129',
        'lastcall_audit_workloads{policy="spot",platform="gke",grace="Whole"} 0',
      ]),
    );
    expect(lines.join("\n")).not.toMatch(/team-|web-|spot-1/);
  });

  test("reports the same as lastcall audit on the same cluster", async () => {
    const { code, stdout, stderr } = await audit();

    expect({ code, stderr }).toEqual({ code: 3, stderr: "" });
    const report = JSON.parse(stdout);
    expect(report.summary).toMatchObject({ workloads: 130, cut: { gke: 129 } });
    expect(report.summary.findings).toMatchObject({ error: 10, warning: 129 });
    expect(report.platforms).toMatchObject([{ name: "gke", source: "Default" }]);
  });

  test.each([["proxy"], ["direct"]])(
    "lastcall audit uses the platform's defaults for a node without a kubelet (%s)",
    async (way) => {
      const { code, stdout, stderr } = await audit(`--ask-kubelets=${way}`);

      expect(code).toBe(3);
      expect(stderr).toMatch(/node spot-1 is audited with the defaults of its platform\n$/);
      expect(JSON.parse(stdout).platforms).toMatchObject([{ name: "gke", source: "Default" }]);
    },
  );

  test("updates the condition after a change", async () => {
    await mustRun(plane, ["delete", "deployment", "web-0", "-n", "team-0"]);
    await until("nine are left", async () =>
      Boolean((await spotReady()).message?.includes("found: 9 grace-cut, 128 no-spread")),
    );
  });

  test("keeps running without the permission to list workloads, which it logs", async () => {
    await mustRun(plane, ["delete", "clusterrolebinding", "lastcall-audit"]);
    await until("it is said", async () => controller.log().includes("audit-failed"));

    expect(controller.log()).toMatch(/RIGHT_MISSING.*grant list on [a-z0-9.]+/);
    expect((await spotReady()).message).toContain("found: 9 grace-cut");
    expect((await fetch(metricsUrl)).status).toBe(200);
  });
});
