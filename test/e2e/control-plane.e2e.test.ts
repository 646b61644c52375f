import type { Pod } from "kubernetes-types/core/v1.js";
import type { ObjectMeta } from "kubernetes-types/meta/v1.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ControlPlane, startControlPlane } from "../support/control-plane.ts";
import { createNodes } from "../support/kwok-fleet.ts";
import { waitUntil } from "../support/wait-until.ts";

const replicas = 6;
const podsPath = "/api/v1/namespaces/default/pods?labelSelector=app%3Dweb";
let plane: ControlPlane;

beforeAll(async () => {
  plane = await startControlPlane();
});

afterAll(() => plane?.stop());

describe("the control plane", () => {
  test("runs a Deployment on three nodes", async () => {
    await createNodes(plane, [{ name: "spot-a" }, { name: "spot-b" }, { name: "spot-c" }]);
    const objects = JSON.stringify({ apiVersion: "v1", kind: "List", items: [deployment, budget] });
    const applied = await plane.kubectl(["apply", "-f", "-"], { input: objects });
    expect(applied).toMatchObject({ code: 0, stderr: "" });
    const pods = await readyPods();
    expect(new Set(pods.map((pod) => pod.spec?.nodeName)).size).toBe(3);
  });

  test("evicts within the budget and creates a replacement", async () => {
    await untilBudgetAllowsOne();
    const [first, second] = await readyPods();
    // The budget allows one: the second eviction right after it must be refused.
    expect((await evict(first)).status).toBe(201);
    expect((await evict(second)).status).toBe(429);
    const after = await readyPods();
    expect(after.map(uidOf)).not.toContain(uidOf(first));
    expect(after.map(uidOf)).toContain(uidOf(second));
  });

  test("issues tokens that are subject to RBAC", async () => {
    await plane.kubectl(["create", "serviceaccount", "nobody"]);
    const kubeconfig = plane.kubeconfigFor("nobody", await plane.tokenFor("default", "nobody"));
    const refused = await plane.kubectl(["get", "nodes"], { kubeconfig });
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain("system:serviceaccount:default:nobody");
  });

  test("keeps its data and works again after a restart of the API server", async () => {
    const before = (await readyPods()).map(uidOf).sort();
    await plane.stopApiServer();
    await expect(plane.request({ path: "/readyz" })).rejects.toThrow("ECONNREFUSED");
    await plane.startApiServer();
    expect((await readyPods()).map(uidOf).sort()).toEqual(before);
    // The controllers and the kubelets must have reconnected, too.
    await untilBudgetAllowsOne();
    const [victim] = await readyPods();
    expect((await evict(victim)).status).toBe(201);
    expect((await readyPods()).map(uidOf)).not.toContain(uidOf(victim));
  });
});

describe("a pod on a kwok node", () => {
  const annotations = { "e2e.lastcall.dev/exit-after": "3s" };
  const labels = { "e2e.lastcall.dev/ignores-sigterm": "true" };

  test("exits after the time given by its annotation", async () => {
    const lifeMs = await lifeAfterDelete({ name: "slow", annotations }, 20);
    expect(lifeMs).toBeGreaterThanOrEqual(3_000);
    expect(lifeMs).toBeLessThan(8_000);
  });

  test("that ignores SIGTERM is killed at the end of its grace", async () => {
    const lifeMs = await lifeAfterDelete({ name: "deaf", labels }, 4);
    // A deletionTimestamp is in whole seconds, so up to one of the four is lost.
    expect(lifeMs).toBeGreaterThanOrEqual(3_000);
    expect(lifeMs).toBeLessThan(8_000);
  });
});

const template = { spec: { containers: [{ name: "web", image: "registry.example/web:1" }] } };

const deployment = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "web" },
  spec: {
    replicas,
    selector: { matchLabels: { app: "web" } },
    // A replacement that is ready at once could restore the budget before the test checks it.
    template: {
      metadata: { labels: { app: "web" }, annotations: { "e2e.lastcall.dev/ready-after": "1s" } },
      ...template,
    },
  },
};

const budget = {
  apiVersion: "policy/v1",
  kind: "PodDisruptionBudget",
  metadata: { name: "web" },
  spec: { minAvailable: replicas - 1, selector: { matchLabels: { app: "web" } } },
};

function uidOf(pod: Pod | undefined): string {
  return pod?.metadata?.uid ?? "no pod";
}

function isReady(pod: Pod): boolean {
  const ready = pod.status?.conditions?.find(({ type }) => type === "Ready");
  return pod.metadata?.deletionTimestamp === undefined && ready?.status === "True";
}

function until<T>(what: string, condition: () => Promise<T | false>): Promise<T> {
  return waitUntil(condition, { what, timeoutMs: 60_000, signal: plane.signal });
}

function readyPods(): Promise<readonly Pod[]> {
  return until(`${replicas} pods are ready`, async () => {
    const { body } = await plane.request({ path: podsPath });
    const pods: readonly Pod[] = body.items;
    return pods.length === replicas && pods.every(isReady) && pods;
  });
}

function untilBudgetAllowsOne(): Promise<boolean> {
  const path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/web";
  return until("the budget allows a disruption", async () => {
    return (await plane.request({ path })).body.status.disruptionsAllowed === 1;
  });
}

function evict(pod: Pod | undefined) {
  const name = pod?.metadata?.name ?? "no-pod";
  return plane.request({
    method: "POST",
    path: `/api/v1/namespaces/default/pods/${name}/eviction`,
    body: { apiVersion: "policy/v1", kind: "Eviction", metadata: { name } },
  });
}

async function lifeAfterDelete(metadata: ObjectMeta & { name: string }, graceSeconds: number) {
  const path = `/api/v1/namespaces/default/pods/${metadata.name}`;
  const spec = { ...template.spec, terminationGracePeriodSeconds: graceSeconds };
  const body = { apiVersion: "v1", kind: "Pod", metadata, spec };
  await plane.request({ method: "POST", path: "/api/v1/namespaces/default/pods", body });
  await until(`${metadata.name} is ready`, async () =>
    isReady((await plane.request({ path })).body),
  );
  const deletedAt = performance.now();
  await plane.request({ method: "DELETE", path });
  await until(`${metadata.name} is gone`, async () => {
    return (await plane.request({ path })).status === 404;
  });
  return performance.now() - deletedAt;
}
