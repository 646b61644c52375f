import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Job } from "kubernetes-types/batch/v1.js";
import type { Pod } from "kubernetes-types/core/v1.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ControlPlane, startControlPlane } from "../support/control-plane.ts";
import { freePort } from "../support/free-port.ts";
import { createNodes } from "../support/kwok-fleet.ts";
import { type LastcallProcess, startAsPod } from "../support/lastcall-process.ts";
import { mustRun } from "./must-run.ts";
import { Onlooker } from "./onlooker.ts";
import { untilAlive } from "./until-alive.ts";

const deploy = join(import.meta.dirname, "..", "..", "deploy");
const graceSeconds = 2;
const noticeSeconds = 14;

let plane: ControlPlane;
let folder: string;
let onlooker: Onlooker;
const processes = new Set<LastcallProcess>();

beforeAll(async () => {
  plane = await startControlPlane();
  folder = mkdtempSync(join(tmpdir(), "lastcall-job-"));
  await mustRun(plane, ["apply", "-k", join(deploy, "crds")]);
  for (const file of ["namespace.yaml", "rbac.yaml"]) {
    await mustRun(plane, ["apply", "-f", join(deploy, "base", file)]);
  }
  await createNodes(plane, [{ name: "leaving" }]);
  const items = ["forced", "deleted"].flatMap(jobWithBudget);
  await mustRun(plane, ["apply", "-f", "-"], { apiVersion: "v1", kind: "List", items });
  await until("both jobs run and their budgets know it", isSettled);
  await createNodes(plane, [{ name: "other" }]);
  onlooker = new Onlooker(plane);
  await onlooker.start();
});

afterAll(async () => {
  await Promise.all([...processes].map((one) => one.kill()));
  await onlooker?.stop();
  await plane?.stop();
  rmSync(folder, { recursive: true, force: true });
});

describe("a Job without retries that ignores disruptions", () => {
  test("fails if a person deletes its pod", async () => {
    const [pod] = await podsOf("deleted");
    const path = `/api/v1/namespaces/default/pods/${pod?.metadata?.name}`;
    await plane.request({ method: "DELETE", path });
    const job = await until("it has failed", async () => {
      const found = await jobNow("deleted");
      return hasFailed(found) && found;
    });
    expect(job.status?.failed).toBe(1);
  });

  test("continues on another node if its pod is deleted past its budget at a notice", async () => {
    await startController();
    await notice();
    const pod = await until("its pod runs on the other node", async () => {
      const pods = await podsOf("forced");
      return pods.find((one) => one.spec?.nodeName === "other" && one.status?.phase === "Running");
    });
    expect(pod).toBeDefined();
    const job = await jobNow("forced");
    expect([job.status?.failed ?? 0, hasFailed(job)]).toEqual([0, false]);
  });

  test("has its pod marked with DisruptionTarget before the deletion", () => {
    const parting = onlooker
      .changes()
      .map(({ object }) => object as Pod)
      .find(({ metadata }) => {
        const isForced = metadata?.labels?.app === "forced";
        return isForced && metadata?.deletionTimestamp !== undefined;
      });
    const mark = parting?.status?.conditions?.find(({ type }) => type === "DisruptionTarget");
    expect(mark).toMatchObject({ status: "True", reason: "DeletionByLastcall" });
    expect(parting?.metadata?.deletionGracePeriodSeconds).toBe(graceSeconds);
  });
});

/** Its pod runs until it is killed, and its budget never allows an eviction. */
function jobWithBudget(name: string): readonly object[] {
  const labels = { app: name, "e2e.lastcall.dev/ignores-sigterm": "true" };
  const containers = [{ name, image: `registry.example/${name}:1` }];
  const onPodConditions = [{ type: "DisruptionTarget" }];
  const job = {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { name },
    spec: {
      backoffLimit: 0,
      podFailurePolicy: { rules: [{ action: "Ignore", onPodConditions }] },
      template: {
        metadata: { labels },
        spec: {
          restartPolicy: "Never",
          terminationGracePeriodSeconds: graceSeconds,
          containers,
        },
      },
    },
  };
  const budget = {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: { name },
    spec: { minAvailable: 1, selector: { matchLabels: { app: name } } },
  };
  return [job, budget];
}

async function isSettled(): Promise<boolean> {
  const pods = await plane.request({ path: "/api/v1/namespaces/default/pods" });
  const { body } = await plane.request({
    path: "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
  });
  const running = (pods.body.items as Pod[]).filter(({ status }) => status?.phase === "Running");
  const budgets: readonly { status?: { currentHealthy?: number } }[] = body.items;
  const known = budgets.filter(({ status }) => status?.currentHealthy === 1);
  const { status } = await plane.request({ path: "/apis/lastcall.dev/v1alpha1/departures" });
  return running.length === 2 && known.length === 2 && status === 200;
}

async function startController(): Promise<void> {
  const kubeconfig = plane.kubeconfigFor("lastcall", await plane.tokenFor("lastcall", "lastcall"));
  const address = async () => `127.0.0.1:${await freePort()}`;
  const flags = ["--health-address", await address(), "--metrics-address", await address()];
  const process = startAsPod(["run", "--kubeconfig", kubeconfig, ...flags], { folder });
  processes.add(process);
}

async function notice(): Promise<void> {
  const { body } = await plane.request({ path: "/api/v1/nodes/leaving" });
  const { uid } = body.metadata;
  const deadlineAt = new Date(Date.now() + noticeSeconds * 1000).toISOString();
  await mustRun(plane, ["apply", "-f", "-"], {
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "Departure",
    metadata: { name: "leaving-noticed" },
    spec: {
      node: { name: "leaving", uid, providerID: body.spec.providerID },
      cause: "SpotInterruption",
      noticedAt: new Date().toISOString(),
      deadlineAt,
      source: "test",
    },
  });
}

async function podsOf(app: string): Promise<readonly Pod[]> {
  const path = `/api/v1/namespaces/default/pods?labelSelector=app%3D${app}`;
  return (await plane.request({ path })).body.items;
}

async function jobNow(name: string): Promise<Job> {
  return (await plane.request({ path: `/apis/batch/v1/namespaces/default/jobs/${name}` })).body;
}

function hasFailed({ status }: Job): boolean {
  return (status?.conditions ?? []).some((one) => one.type === "Failed" && one.status === "True");
}

function until<T>(what: string, holds: () => Promise<T | false | undefined>): Promise<T> {
  return untilAlive(holds, { what, timeoutMs: 60_000 }, { plane, processes });
}
