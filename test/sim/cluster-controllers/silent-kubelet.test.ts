import { expect, it } from "vitest";
import {
  conditionOf,
  type NodeObject,
} from "../../../src/sim/cluster-controllers/cluster-object.ts";
import { ClusterScenario } from "./cluster-scenario.ts";

function readyOf(cluster: ClusterScenario): string | undefined {
  const node = cluster.api.context.store.collection("nodes").get("", "n1") as NodeObject;
  return conditionOf(node, "Ready")?.status;
}

async function silenced(): Promise<ClusterScenario> {
  const cluster = new ClusterScenario();
  cluster.node("n1");
  cluster.daemonSet("log-shipper", { tolerations: [{ operator: "Exists" }] });
  cluster.deployment("web", 2);
  await cluster.wait(10);
  cluster.kubelet.powerOff("n1");
  return cluster;
}

it("A Node whose kubelet is silent becomes unknown after 50 s, and ready when it reports again", async () => {
  const cluster = await silenced();
  await cluster.wait(49);
  expect(readyOf(cluster)).toBe("True");
  await cluster.wait(2);
  expect(readyOf(cluster)).toBe("Unknown");
  cluster.kubelet.boot("n1");
  await cluster.wait(1);
  expect(readyOf(cluster)).toBe("True");
});

it("Pods of an unknown Node are deleted after five minutes, and daemons are not", async () => {
  const cluster = await silenced();
  const leaving = (): string[] =>
    [...cluster.api.context.store.collection("pods").all()]
      .filter(({ metadata }) => metadata.deletionTimestamp !== undefined)
      .map(({ metadata }) => metadata.name.replace(/-.*/, ""));
  await cluster.wait(50 + 299);
  expect(leaving()).toEqual([]);
  await cluster.wait(2);
  expect(leaving()).toEqual(["web", "web"]);
});
