import { expect, it } from "vitest";
import type { NodeObject } from "../../../src/sim/cluster-controllers/cluster-object.ts";
import { ClusterScenario } from "./cluster-scenario.ts";

it("A DaemonSet's pod on a machine that shuts down is recreated with a backoff", async () => {
  const cluster = new ClusterScenario();
  cluster.node("n1");
  cluster.daemonSet("log-shipper", { tolerations: [{ operator: "Exists" }] });
  await cluster.wait(10);
  expect(cluster.active("log-shipper")).toHaveLength(1);

  let made = 0;
  cluster.api.context.store.collection("pods").subscribe(({ type }) => {
    if (type === "ADDED") made += 1;
  });
  cluster.kubelet.shutDown("n1", { regularSeconds: 15, criticalSeconds: 15 });
  await cluster.wait(30);
  // It fails 1 s after the notice and is replaced at once; each of these is refused within a
  // second, and replaced after another 1, 2, 4 and 8 s.
  expect(made).toBe(5);
});

it("A ReplicaSet's pod on a node that shuts down and still looks ready fails once a second", async () => {
  const cluster = new ClusterScenario();
  cluster.node("n1");
  cluster.deployment("web", 1);
  await cluster.wait(10);
  cluster.kubelet.shutDown("n1", { regularSeconds: 15, criticalSeconds: 15 });
  const nodes = cluster.api.context.store.collection("nodes");
  const node = nodes.get("", "n1") as NodeObject;
  const ready = { type: "Ready", status: "True", reason: "KubeletReady", message: "" } as const;
  nodes.put({ ...node, status: { ...node.status, conditions: [ready] } } as never);
  let made = 0;
  cluster.api.context.store.collection("pods").subscribe(({ type }) => {
    if (type === "ADDED") made += 1;
  });
  await cluster.wait(30);
  expect(made).toBeGreaterThan(10);
  expect(made).toBeLessThanOrEqual(31);
});
