import { beforeEach, describe, expect, it } from "vitest";
import { conditionOf } from "../../../src/sim/cluster-controllers/cluster-object.ts";
import { podBehaviour } from "../../../src/sim/cluster-controllers/kubelet.ts";
import { asking, byNode, ClusterStory } from "./cluster-story.ts";

let story: ClusterStory;

beforeEach(() => {
  story = new ClusterStory();
});

describe("the scheduler", () => {
  it("spreads the pods of one owner over zones first and nodes second", async () => {
    for (const [name, zone] of [
      ["a1", "a"],
      ["a2", "a"],
      ["b1", "b"],
    ] as const) {
      story.node(name, { zone });
    }
    story.deployment("web", 4);
    await story.wait(10);
    expect(byNode(story.pods("web"))).toEqual({ a1: 1, a2: 1, b1: 2 });
  });

  it("places nothing on a cordoned node, and pods wait for the next one", async () => {
    story.node("n1");
    story.cordon("n1");
    story.deployment("web", 1);
    await story.wait(60);
    const [waiting] = story.pods("web");
    expect(waiting?.spec.nodeName).toBeUndefined();
    expect(waiting && conditionOf(waiting, "PodScheduled")?.reason).toBe("Unschedulable");
    story.node("n2");
    await story.wait(10);
    expect(byNode(story.pods("web"))).toEqual({ n2: 1 });
  });

  it("keeps pods off taints that they do not tolerate", async () => {
    story.node("open");
    story.node("spot", { taints: [{ key: "spot", value: "true", effect: "NoSchedule" }] });
    story.deployment("web", 3);
    const toleration = { key: "spot", operator: "Equal", value: "true", effect: "NoSchedule" };
    story.deployment("batch", 3, { tolerations: [toleration] });
    await story.wait(10);
    expect(byNode(story.pods("web"))).toEqual({ open: 3 });
    expect(byNode(story.pods("batch"))).toEqual({ open: 1, spot: 2 });
  });

  it("follows a node selector", async () => {
    story.node("n1", { zone: "a" });
    story.node("n2", { zone: "b" });
    const nodeSelector = { "topology.kubernetes.io/zone": "b" };
    story.deployment("web", 2, { nodeSelector });
    await story.wait(10);
    expect(byNode(story.pods("web"))).toEqual({ n2: 2 });
  });

  it("fills a node to its processors and no further, and goes on when room is made", async () => {
    story.node("n1", { cpu: "2" });
    story.deployment("big", 3, { containers: asking("1") });
    await story.wait(10);
    expect(byNode(story.pods("big"))).toEqual({ n1: 2, none: 1 });
    story.merge("/apis/apps/v1/namespaces/default/deployments/big", { spec: { replicas: 2 } });
    await story.wait(10);
    expect(byNode(story.pods("big"))).toEqual({ n1: 2 });
  });
});

describe("the kubelet", () => {
  it("runs a pod and makes it ready after its start time", async () => {
    story.node("n1");
    story.deployment("slow", 1, { annotations: { [podBehaviour.startSeconds]: "20" } });
    await story.wait(19);
    expect(story.pods("slow")[0]?.status.phase).toBe("Pending");
    await story.wait(1);
    const [pod] = story.pods("slow");
    expect(pod?.status.phase).toBe("Running");
    expect(pod && conditionOf(pod, "Ready")?.status).toBe("True");
  });

  it.each([
    ["exits in its own time when that is within its grace", "3", 3],
    ["is killed at its deadline when it takes longer", "90", 20],
    ["is killed at its deadline when it ignores SIGTERM", "never", 20],
  ])("a pod that was told to go %s", async (_what, exitSeconds, goneAfterSeconds) => {
    story.node("n1");
    story.deployment("app", 1, {
      annotations: { [podBehaviour.exitSeconds]: exitSeconds },
      terminationGracePeriodSeconds: 20,
    });
    await story.wait(10);
    const name = story.pods("app")[0]?.metadata.name ?? "";
    expect(story.evict(name)).toBe(201);
    await story.wait(goneAfterSeconds - 0.001);
    expect(story.pod(name)).toBeDefined();
    await story.wait(0.001);
    expect(story.pod(name)).toBeUndefined();
  });

  it("obeys a deletion that is shortened on the way", async () => {
    story.node("n1");
    story.deployment("deaf", 1, {
      annotations: { [podBehaviour.exitSeconds]: "never" },
      terminationGracePeriodSeconds: 600,
    });
    await story.wait(10);
    const name = story.pods("deaf")[0]?.metadata.name ?? "";
    const path = `/api/v1/namespaces/default/pods/${name}`;
    story.delete(path);
    await story.wait(30);
    story.api.handle({ method: "DELETE", path, query: { gracePeriodSeconds: "45" } });
    await story.wait(14);
    expect(story.pod(name)).toBeDefined();
    await story.wait(1);
    expect(story.pod(name)).toBeUndefined();
  });

  it("stops regular pods before critical ones when its machine shuts down", async () => {
    story.node("n1");
    story.deployment("web", 1, {
      annotations: { [podBehaviour.exitSeconds]: "never" },
      terminationGracePeriodSeconds: 60,
    });
    story.deployment("vital", 1, { priorityClassName: "system-cluster-critical" });
    await story.wait(10);
    story.kubelet.shutDown("n1", { regularSeconds: 15, criticalSeconds: 15 });
    const node = story.getNode("n1");
    expect(node && conditionOf(node, "Ready")).toMatchObject({
      status: "False",
      reason: "KubeletNotReady",
      message: "node is shutting down",
    });
    const [web, vital] = [story.pods("web")[0], story.pods("vital")[0]];
    const phase = (pod: typeof web): unknown => story.pod(pod?.metadata.name ?? "")?.status.phase;
    await story.wait(14);
    expect([phase(web), phase(vital)]).toEqual(["Running", "Running"]);
    await story.wait(1);
    expect([phase(web), phase(vital)]).toEqual(["Failed", "Running"]);
    await story.wait(1);
    expect(phase(vital)).toBe("Failed");
    expect(story.pod(web?.metadata.name ?? "")?.status).toMatchObject({
      reason: "Terminated",
      message: "Pod was terminated in response to imminent node shutdown.",
    });
  });

  it("does nothing any more on a machine without power", async () => {
    story.node("n1");
    story.deployment("web", 1);
    await story.wait(10);
    const name = story.pods("web")[0]?.metadata.name ?? "";
    story.kubelet.die("n1");
    story.delete(`/api/v1/namespaces/default/pods/${name}`);
    await story.wait(600);
    expect(story.pod(name)).toBeDefined();
    story.kubelet.boot("n1");
    await story.wait(30);
    expect(story.pod(name)).toBeUndefined();
  });
});

describe("workload controllers", () => {
  it("replace a pod that was evicted, on another node where its own is cordoned", async () => {
    story.node("n1");
    story.deployment("web", 2);
    await story.wait(10);
    story.node("n2");
    story.cordon("n1");
    for (const pod of story.pods("web")) story.evict(pod.metadata.name);
    await story.wait(10);
    expect(byNode(story.active("web"))).toEqual({ n2: 2 });
    const deployment = story.api.handle({
      method: "GET",
      path: "/apis/apps/v1/namespaces/default/deployments/web",
    });
    expect(deployment.body).toMatchObject({ status: { readyReplicas: 2, availableReplicas: 2 } });
  });

  it("keep the names of a StatefulSet and bring a lost pod back once it is gone", async () => {
    story.node("n1");
    story.statefulSet("db", 3);
    await story.wait(4);
    expect(story.pods("db").map((pod) => pod.metadata.name)).toEqual(["db-0"]);
    await story.wait(16);
    expect(story.pods("db").map((pod) => pod.metadata.name)).toEqual(["db-0", "db-1", "db-2"]);
    const before = story.pod("db-1")?.metadata.uid;
    story.evict("db-1");
    await story.wait(10);
    expect(story.pod("db-1")?.metadata.uid).not.toBe(before);
    expect(story.pods("db")).toHaveLength(3);
  });

  it("run one daemon on each node, cordoned ones too, and on each that comes", async () => {
    story.node("n1");
    story.cordon("n1");
    story.daemonSet("agent");
    await story.wait(10);
    story.node("n2");
    await story.wait(10);
    expect(byNode(story.pods("agent"))).toEqual({ n1: 1, n2: 1 });
  });

  it("roll a new template out without going under the wanted number", async () => {
    for (const name of ["n1", "n2"]) story.node(name);
    story.deployment("web", 4);
    await story.wait(10);
    const template = { metadata: { annotations: { restarted: "now" } } };
    story.merge("/apis/apps/v1/namespaces/default/deployments/web", { spec: { template } });
    let fewest = 4;
    for (let step = 0; step < 60; step += 1) {
      await story.wait(1);
      const ready = story
        .active("web")
        .filter((pod) => conditionOf(pod, "Ready")?.status === "True");
      fewest = Math.min(fewest, ready.length);
    }
    const restarted = story.active("web").filter((pod) => pod.metadata.annotations?.restarted);
    expect(restarted).toHaveLength(4);
    expect(story.pods("web")).toHaveLength(4);
    // 25 % of four may be unavailable.
    expect(fewest).toBeGreaterThanOrEqual(3);
  });

  it("run a job to its end, and again the pod that was lost", async () => {
    story.node("n1");
    const template = {
      metadata: { labels: { app: "job" }, annotations: { [podBehaviour.runSeconds]: "60" } },
      spec: { restartPolicy: "Never", containers: [{ name: "main", image: "job" }] },
    };
    const body = { metadata: { name: "job" }, spec: { template } };
    story.post("/apis/batch/v1/namespaces/default/jobs", body);
    await story.wait(30);
    story.evict(story.pods("job")[0]?.metadata.name ?? "");
    await story.wait(40);
    expect(story.pods("job")).toHaveLength(1);
    await story.wait(60);
    const job = story.api.handle({
      method: "GET",
      path: "/apis/batch/v1/namespaces/default/jobs/job",
    });
    expect(job.body).toMatchObject({ status: { succeeded: 1, active: 0 } });
  });

  it("delete what belongs to an owner that is gone", async () => {
    story.node("n1");
    story.deployment("web", 2);
    await story.wait(10);
    story.delete("/apis/apps/v1/namespaces/default/deployments/web");
    await story.wait(10);
    expect(story.pods("web")).toEqual([]);
    expect(story.api.context.store.collection("replicasets.apps").size).toBe(0);
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
  ])("reads %s over five pods", async (_what, spec, wanted) => {
    story.node("n1");
    story.deployment("web", 5);
    story.budget("web", spec);
    await story.wait(10);
    expect(story.budgetStatus("web")).toMatchObject({
      observedGeneration: 1,
      currentHealthy: 5,
      expectedPods: wanted.expectedPods,
      desiredHealthy: wanted.desiredHealthy,
      disruptionsAllowed: wanted.allowed,
    });
  });

  it("lets pods go one by one, each once the one before is replaced", async () => {
    for (const name of ["n1", "n2"]) story.node(name);
    story.deployment("web", 3);
    story.budget("web", { maxUnavailable: 1 });
    await story.wait(10);
    const [first, second] = story.pods("web").map((pod) => pod.metadata.name) as [string, string];
    expect([story.evict(first), story.evict(second)]).toEqual([201, 429]);
    await story.wait(4);
    expect(story.evict(second)).toBe(429);
    await story.wait(1);
    expect(story.evict(second)).toBe(201);
  });

  it("counts a pod again that was evicted and did not go", async () => {
    story.node("n1");
    story.deployment("web", 2);
    story.budget("web", { minAvailable: 1 });
    await story.wait(10);
    const name = story.pods("web")[0]?.metadata.name ?? "";
    const disruptedPods = { [name]: "2026-11-20T00:00:10Z" };
    const status = { disruptedPods, disruptionsAllowed: 0 };
    story.merge("/apis/policy/v1/namespaces/default/poddisruptionbudgets/web/status", { status });
    await story.wait(119);
    expect(story.budgetStatus("web")).toMatchObject({ currentHealthy: 1, disruptionsAllowed: 0 });
    await story.wait(1);
    expect(story.budgetStatus("web")).toMatchObject({ currentHealthy: 2, disruptionsAllowed: 1 });
  });
});

describe("node controllers", () => {
  it("taint a cordoned node as long as it is cordoned", async () => {
    story.node("n1");
    story.cordon("n1");
    await story.wait(0);
    expect(story.getNode("n1")?.spec.taints).toEqual([
      { key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" },
    ]);
    story.merge("/api/v1/nodes/n1", { spec: { unschedulable: null } });
    await story.wait(0);
    expect(story.getNode("n1")?.spec.taints).toBeUndefined();
  });

  it("collect the pods of a Node that is gone, so that they run elsewhere", async () => {
    story.node("n1");
    story.deployment("web", 1);
    await story.wait(10);
    story.node("n2");
    story.delete("/api/v1/nodes/n1");
    await story.wait(39);
    expect(byNode(story.pods("web"))).toEqual({ n1: 1 });
    await story.wait(10);
    expect(byNode(story.pods("web"))).toEqual({ n2: 1 });
  });

  it("empty a namespace that is deleted and let it go", async () => {
    story.node("n1");
    story.post("/api/v1/namespaces", { metadata: { name: "old" } });
    story.post("/api/v1/namespaces/old/configmaps", { metadata: { name: "c" } });
    story.post("/api/v1/namespaces/old/pods", {
      metadata: { name: "p" },
      spec: { nodeName: "n1", containers: [{ name: "main", image: "app" }] },
    });
    await story.wait(10);
    story.delete("/api/v1/namespaces/old");
    await story.wait(5);
    const get = (path: string): number => story.api.handle({ method: "GET", path }).status;
    expect(get("/api/v1/namespaces/old")).toBe(404);
    expect(get("/api/v1/namespaces/old/pods/p")).toBe(404);
  });
});
