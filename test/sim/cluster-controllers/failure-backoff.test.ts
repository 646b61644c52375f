import { expect, it } from "vitest";
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
  // It fails 1 s after the notice and is replaced at once, then after another 1, 2, 4 and 8 s.
  expect(made).toBe(5);
});
