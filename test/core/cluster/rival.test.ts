import { describe, expect, it } from "vitest";
import { type NodeFacts, rivalOf } from "../../../src/core/cluster/node.ts";

function node(fields: Partial<NodeFacts>): NodeFacts {
  return {
    ...{ name: "n1", uid: "u1", labels: {}, annotations: {}, taints: [] },
    ...{ unschedulable: false, ready: true, ...fields },
  };
}

function tainted(...keys: readonly string[]): NodeFacts {
  return node({ taints: keys.map((key) => ({ key, effect: "NoSchedule" })) });
}

describe("the tool that is already removing a node", () => {
  it.each([
    ["Karpenter", "karpenter.sh/disrupted"],
    ["Karpenter", "karpenter.sh/disruption"],
    ["Karpenter (reboot)", "karpenter.sh/rebooting"],
    ["cluster-autoscaler", "ToBeDeletedByClusterAutoscaler"],
    ["aws-node-termination-handler", "aws-node-termination-handler/spot-itn"],
    ["aws-node-termination-handler", "aws-node-termination-handler/scheduled-maintenance"],
    ["aws-node-termination-handler", "aws-node-termination-handler/asg-lifecycle-termination"],
    ["aws-node-termination-handler", "aws-node-termination-handler/rebalance-recommendation"],
    ["AKS node auto-drain", "remediator.kubernetes.azure.com/unschedulable"],
    ["GKE", "cloud.google.com/impending-node-termination"],
  ])("is %s if the node has the taint %s, alone or with others", (rival, key) => {
    expect(rivalOf(tainted(key))).toBe(rival);
    expect(rivalOf(tainted("dedicated", key))).toBe(rival);
  });

  it("is kured while it reboots the node", () => {
    const annotations = { "weave.works/kured-reboot-in-progress": "2026-11-20T00:00:00Z" };
    expect(rivalOf(node({ annotations }))).toBe("kured");
  });

  it.each([
    ["Lastcall's own", "lastcall.dev/departing"],
    ["a node pool's", "dedicated"],
    ["one with only the same prefix", "karpenter.sh/disrupted-not"],
    ["the kubelet's", "node.kubernetes.io/not-ready"],
  ])("is none for a taint that is %s", (_, key) => {
    expect(rivalOf(tainted(key))).toBeUndefined();
  });
});
