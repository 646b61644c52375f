import { beforeEach, describe, expect, it } from "vitest";
import { conditionOf } from "../../../src/sim/cluster-controllers/cluster-object.ts";
import { podBehaviour } from "../../../src/sim/cluster-controllers/kubelet.ts";
import { asking, byNode, ClusterScenario } from "./cluster-scenario.ts";

let cluster: ClusterScenario;

beforeEach(() => {
  cluster = new ClusterScenario();
});

describe("the scheduler", () => {
  it("spreads the pods of one owner over zones first, and nodes second", async () => {
    for (const [name, zone] of [
      ["a1", "a"],
      ["a2", "a"],
      ["b1", "b"],
    ] as const) {
      cluster.node(name, { zone });
    }
    cluster.deployment("web", 4);
    await cluster.wait(10);
    expect(byNode(cluster.pods("web"))).toEqual({ a1: 1, a2: 1, b1: 2 });
  });

  it("places nothing on a cordoned node; the pods wait for another one", async () => {
    cluster.node("n1");
    cluster.cordon("n1");
    cluster.deployment("web", 1);
    await cluster.wait(60);
    const [waiting] = cluster.pods("web");
    expect(waiting?.spec.nodeName).toBeUndefined();
    expect(waiting && conditionOf(waiting, "PodScheduled")?.reason).toBe("Unschedulable");
    cluster.node("n2");
    await cluster.wait(10);
    expect(byNode(cluster.pods("web"))).toEqual({ n2: 1 });
  });

  it.each([
    ["without a status", {}],
    ["with null for spec and status", { spec: null, status: null }],
  ])("skips a node that was created %s, as it has no room", async (_, parts) => {
    cluster.post("/api/v1/nodes", { metadata: { name: "bare" }, ...parts });
    cluster.node("n1");
    cluster.deployment("web", 2, { containers: asking("1") });
    await cluster.wait(10);
    expect(byNode(cluster.pods("web"))).toEqual({ n1: 2 });
    cluster.cordon("bare");
    await cluster.wait(10);
    expect(byNode(cluster.pods("web"))).toEqual({ n1: 2 });
  });

  it("keeps pods off nodes with taints that they do not tolerate", async () => {
    cluster.node("open");
    cluster.node("spot", { taints: [{ key: "spot", value: "true", effect: "NoSchedule" }] });
    cluster.deployment("web", 3);
    const toleration = { key: "spot", operator: "Equal", value: "true", effect: "NoSchedule" };
    cluster.deployment("batch", 3, { tolerations: [toleration] });
    await cluster.wait(10);
    expect(byNode(cluster.pods("web"))).toEqual({ open: 3 });
    expect(byNode(cluster.pods("batch"))).toEqual({ open: 1, spot: 2 });
  });

  it("respects a node selector", async () => {
    cluster.node("n1", { zone: "a" });
    cluster.node("n2", { zone: "b" });
    const nodeSelector = { "topology.kubernetes.io/zone": "b" };
    cluster.deployment("web", 2, { nodeSelector });
    await cluster.wait(10);
    expect(byNode(cluster.pods("web"))).toEqual({ n2: 2 });
  });

  it("fills a node up to its CPUs, and continues when there is room", async () => {
    cluster.node("n1", { cpu: "2" });
    cluster.deployment("big", 3, { containers: asking("1") });
    await cluster.wait(10);
    expect(byNode(cluster.pods("big"))).toEqual({ n1: 2, none: 1 });
    cluster.merge("/apis/apps/v1/namespaces/default/deployments/big", { spec: { replicas: 2 } });
    await cluster.wait(10);
    expect(byNode(cluster.pods("big"))).toEqual({ n1: 2 });
  });
});

describe("the kubelet", () => {
  it("runs a pod and makes it ready after its start time", async () => {
    cluster.node("n1");
    cluster.deployment("slow", 1, { annotations: { [podBehaviour.startSeconds]: "20" } });
    await cluster.wait(19);
    expect(cluster.pods("slow")[0]?.status.phase).toBe("Pending");
    await cluster.wait(1);
    const [pod] = cluster.pods("slow");
    expect(pod?.status.phase).toBe("Running");
    expect(pod && conditionOf(pod, "Ready")?.status).toBe("True");
  });

  it.each([
    ["exits on its own within its grace period", "3", 3],
    ["is killed at its deadline if it takes longer", "90", 20],
    ["is killed at its deadline if it ignores SIGTERM", "never", 20],
  ])("a pod that is terminated %s", async (_what, exitSeconds, goneAfterSeconds) => {
    cluster.node("n1");
    cluster.deployment("app", 1, {
      annotations: { [podBehaviour.exitSeconds]: exitSeconds },
      terminationGracePeriodSeconds: 20,
    });
    await cluster.wait(10);
    const name = cluster.pods("app")[0]?.metadata.name ?? "";
    expect(cluster.evict(name)).toBe(201);
    await cluster.wait(goneAfterSeconds - 0.001);
    expect(cluster.pod(name)).toBeDefined();
    await cluster.wait(0.001);
    expect(cluster.pod(name)).toBeUndefined();
  });

  it("respects a deletion whose grace is shortened later", async () => {
    cluster.node("n1");
    cluster.deployment("deaf", 1, {
      annotations: { [podBehaviour.exitSeconds]: "never" },
      terminationGracePeriodSeconds: 600,
    });
    await cluster.wait(10);
    const name = cluster.pods("deaf")[0]?.metadata.name ?? "";
    const path = `/api/v1/namespaces/default/pods/${name}`;
    cluster.delete(path);
    await cluster.wait(30);
    cluster.api.handle({ method: "DELETE", path, query: { gracePeriodSeconds: "45" } });
    await cluster.wait(14);
    expect(cluster.pod(name)).toBeDefined();
    await cluster.wait(1);
    expect(cluster.pod(name)).toBeUndefined();
  });

  it("stops regular pods before critical ones when its machine is shut down", async () => {
    cluster.node("n1");
    cluster.deployment("web", 1, {
      annotations: { [podBehaviour.exitSeconds]: "never" },
      terminationGracePeriodSeconds: 60,
    });
    cluster.deployment("vital", 1, { priorityClassName: "system-cluster-critical" });
    await cluster.wait(10);
    cluster.kubelet.shutDown("n1", { regularSeconds: 15, criticalSeconds: 15 });
    const node = cluster.getNode("n1");
    expect(node && conditionOf(node, "Ready")).toMatchObject({
      status: "False",
      reason: "KubeletNotReady",
      message: "node is shutting down",
    });
    const [web, vital] = [cluster.pods("web")[0], cluster.pods("vital")[0]];
    const phase = (pod: typeof web): unknown => cluster.pod(pod?.metadata.name ?? "")?.status.phase;
    await cluster.wait(14);
    expect([phase(web), phase(vital)]).toEqual(["Running", "Running"]);
    await cluster.wait(1);
    expect([phase(web), phase(vital)]).toEqual(["Failed", "Running"]);
    await cluster.wait(1);
    expect(phase(vital)).toBe("Failed");
    expect(cluster.pod(web?.metadata.name ?? "")?.status).toMatchObject({
      reason: "Terminated",
      message: "Pod was terminated in response to imminent node shutdown.",
    });
  });

  it("does nothing on a machine without power", async () => {
    cluster.node("n1");
    cluster.deployment("web", 1);
    await cluster.wait(10);
    const name = cluster.pods("web")[0]?.metadata.name ?? "";
    cluster.kubelet.powerOff("n1");
    cluster.delete(`/api/v1/namespaces/default/pods/${name}`);
    await cluster.wait(600);
    expect(cluster.pod(name)).toBeDefined();
    cluster.kubelet.boot("n1");
    await cluster.wait(30);
    expect(cluster.pod(name)).toBeUndefined();
  });
});

describe("workload controllers", () => {
  it("replace an evicted pod on another node if its own is cordoned", async () => {
    cluster.node("n1");
    cluster.deployment("web", 2);
    await cluster.wait(10);
    cluster.node("n2");
    cluster.cordon("n1");
    for (const pod of cluster.pods("web")) cluster.evict(pod.metadata.name);
    await cluster.wait(10);
    expect(byNode(cluster.active("web"))).toEqual({ n2: 2 });
    const deployment = cluster.api.handle({
      method: "GET",
      path: "/apis/apps/v1/namespaces/default/deployments/web",
    });
    expect(deployment.body).toMatchObject({ status: { readyReplicas: 2, availableReplicas: 2 } });
  });

  it("keep the names of a StatefulSet, and recreate a lost pod once it is gone", async () => {
    cluster.node("n1");
    cluster.statefulSet("db", 3);
    await cluster.wait(4);
    expect(cluster.pods("db").map((pod) => pod.metadata.name)).toEqual(["db-0"]);
    await cluster.wait(16);
    expect(cluster.pods("db").map((pod) => pod.metadata.name)).toEqual(["db-0", "db-1", "db-2"]);
    const before = cluster.pod("db-1")?.metadata.uid;
    cluster.evict("db-1");
    await cluster.wait(10);
    expect(cluster.pod("db-1")?.metadata.uid).not.toBe(before);
    expect(cluster.pods("db")).toHaveLength(3);
  });

  it("run one daemon pod on each node, also on cordoned and new ones", async () => {
    cluster.node("n1");
    cluster.cordon("n1");
    cluster.daemonSet("agent");
    await cluster.wait(10);
    cluster.node("n2");
    await cluster.wait(10);
    expect(byNode(cluster.pods("agent"))).toEqual({ n1: 1, n2: 1 });
  });

  it("roll out a new template without dropping below the minimum available", async () => {
    for (const name of ["n1", "n2"]) cluster.node(name);
    cluster.deployment("web", 4);
    await cluster.wait(10);
    const template = { metadata: { annotations: { restarted: "now" } } };
    cluster.merge("/apis/apps/v1/namespaces/default/deployments/web", { spec: { template } });
    let fewest = 4;
    for (let step = 0; step < 60; step += 1) {
      await cluster.wait(1);
      const ready = cluster
        .active("web")
        .filter((pod) => conditionOf(pod, "Ready")?.status === "True");
      fewest = Math.min(fewest, ready.length);
    }
    const restarted = cluster.active("web").filter((pod) => pod.metadata.annotations?.restarted);
    expect(restarted).toHaveLength(4);
    expect(cluster.pods("web")).toHaveLength(4);
    // 25 % of four may be unavailable.
    expect(fewest).toBeGreaterThanOrEqual(3);
  });

  it("run a job to completion, and recreate a pod that was evicted", async () => {
    cluster.node("n1");
    const template = {
      metadata: { labels: { app: "job" }, annotations: { [podBehaviour.runSeconds]: "60" } },
      spec: { restartPolicy: "Never", containers: [{ name: "main", image: "job" }] },
    };
    const body = { metadata: { name: "job" }, spec: { template } };
    cluster.post("/apis/batch/v1/namespaces/default/jobs", body);
    await cluster.wait(30);
    cluster.evict(cluster.pods("job")[0]?.metadata.name ?? "");
    await cluster.wait(40);
    expect(cluster.pods("job")).toHaveLength(1);
    await cluster.wait(60);
    const job = cluster.api.handle({
      method: "GET",
      path: "/apis/batch/v1/namespaces/default/jobs/job",
    });
    expect(job.body).toMatchObject({ status: { succeeded: 1, active: 0 } });
  });

  it("delete the dependents of a deleted owner", async () => {
    cluster.node("n1");
    cluster.deployment("web", 2);
    await cluster.wait(10);
    cluster.delete("/apis/apps/v1/namespaces/default/deployments/web");
    await cluster.wait(10);
    expect(cluster.pods("web")).toEqual([]);
    expect(cluster.api.context.store.collection("replicasets.apps").size).toBe(0);
  });
});

describe("the disruption controller", () => {
  it.each([
    ["minAvailable 2", { minAvailable: 2 }, { expectedPods: 5, desiredHealthy: 2, allowed: 3 }],
    [
      "minAvailable 50%, rounded up",
      { minAvailable: "50%" },
      { expectedPods: 5, desiredHealthy: 3, allowed: 2 },
    ],
    ["maxUnavailable 1", { maxUnavailable: 1 }, { expectedPods: 5, desiredHealthy: 4, allowed: 1 }],
    [
      "maxUnavailable 30%, rounded up",
      { maxUnavailable: "30%" },
      { expectedPods: 5, desiredHealthy: 3, allowed: 2 },
    ],
    ["maxUnavailable 0", { maxUnavailable: 0 }, { expectedPods: 5, desiredHealthy: 5, allowed: 0 }],
    ["minAvailable 9", { minAvailable: 9 }, { expectedPods: 5, desiredHealthy: 9, allowed: 0 }],
  ])("computes %s over five pods", async (_what, spec, wanted) => {
    cluster.node("n1");
    cluster.deployment("web", 5);
    cluster.budget("web", spec);
    await cluster.wait(10);
    expect(cluster.budgetStatus("web")).toMatchObject({
      observedGeneration: 1,
      currentHealthy: 5,
      expectedPods: wanted.expectedPods,
      desiredHealthy: wanted.desiredHealthy,
      disruptionsAllowed: wanted.allowed,
    });
  });

  it("allows one eviction at a time, each once the previous pod is replaced", async () => {
    for (const name of ["n1", "n2"]) cluster.node(name);
    cluster.deployment("web", 3);
    cluster.budget("web", { maxUnavailable: 1 });
    await cluster.wait(10);
    const [first, second] = cluster.pods("web").map((pod) => pod.metadata.name) as [string, string];
    expect([cluster.evict(first), cluster.evict(second)]).toEqual([201, 429]);
    await cluster.wait(4);
    expect(cluster.evict(second)).toBe(429);
    await cluster.wait(1);
    expect(cluster.evict(second)).toBe(201);
  });

  it("counts a pod again whose eviction was accepted but did not happen", async () => {
    cluster.node("n1");
    cluster.deployment("web", 2);
    cluster.budget("web", { minAvailable: 1 });
    await cluster.wait(10);
    const name = cluster.pods("web")[0]?.metadata.name ?? "";
    const disruptedPods = { [name]: "2026-11-20T00:00:10Z" };
    const status = { disruptedPods, disruptionsAllowed: 0 };
    cluster.merge("/apis/policy/v1/namespaces/default/poddisruptionbudgets/web/status", { status });
    await cluster.wait(119);
    expect(cluster.budgetStatus("web")).toMatchObject({ currentHealthy: 1, disruptionsAllowed: 0 });
    await cluster.wait(1);
    expect(cluster.budgetStatus("web")).toMatchObject({ currentHealthy: 2, disruptionsAllowed: 1 });
  });
});

describe("node controllers", () => {
  it("taint a node while it is cordoned", async () => {
    cluster.node("n1");
    cluster.cordon("n1");
    await cluster.wait(0);
    expect(cluster.getNode("n1")?.spec.taints).toEqual([
      { key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" },
    ]);
    cluster.merge("/api/v1/nodes/n1", { spec: { unschedulable: null } });
    await cluster.wait(0);
    expect(cluster.getNode("n1")?.spec.taints).toBeUndefined();
  });

  it("delete the pods of a deleted Node, so they run elsewhere", async () => {
    cluster.node("n1");
    cluster.deployment("web", 1);
    await cluster.wait(10);
    cluster.node("n2");
    cluster.delete("/api/v1/nodes/n1");
    await cluster.wait(39);
    expect(byNode(cluster.pods("web"))).toEqual({ n1: 1 });
    await cluster.wait(10);
    expect(byNode(cluster.pods("web"))).toEqual({ n2: 1 });
  });

  it("empty a deleted namespace, and remove it", async () => {
    cluster.node("n1");
    cluster.post("/api/v1/namespaces", { metadata: { name: "old" } });
    cluster.post("/api/v1/namespaces/old/configmaps", { metadata: { name: "c" } });
    cluster.post("/api/v1/namespaces/old/pods", {
      metadata: { name: "p" },
      spec: { nodeName: "n1", containers: [{ name: "main", image: "app" }] },
    });
    await cluster.wait(10);
    cluster.delete("/api/v1/namespaces/old");
    await cluster.wait(5);
    const get = (path: string): number => cluster.api.handle({ method: "GET", path }).status;
    expect(get("/api/v1/namespaces/old")).toBe(404);
    expect(get("/api/v1/namespaces/old/pods/p")).toBe(404);
  });
});
