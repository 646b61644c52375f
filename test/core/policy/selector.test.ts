import { describe, expect, it } from "vitest";
import type { NodeFacts } from "../../../src/core/cluster/node.ts";
import type { LabelRequirement } from "../../../src/core/cluster/pod.ts";
import {
  defaultNodeSelector,
  matchesNodeSelector,
  selectPolicy,
} from "../../../src/core/policy/policy.ts";
import { aNode, aPolicy } from "../fleet-builder.ts";

function requirement(
  key: string,
  operator: LabelRequirement["operator"],
  ...values: string[]
): LabelRequirement {
  return { key, operator, values };
}

function labelled(labels: Record<string, string>): NodeFacts {
  return aNode("n1", { labels });
}

describe("the default selector", () => {
  it.each([
    ["cloud.google.com/gke-preemptible", "true", true],
    ["cloud.google.com/gke-spot", "true", true],
    ["cloud.google.com/gke-spot", "false", false],
    ["cloud.google.com/gke-provisioning", "spot", true],
    ["cloud.google.com/gke-provisioning", "preemptible", true],
    ["cloud.google.com/gke-provisioning", "standard", false],
    ["eks.amazonaws.com/capacityType", "SPOT", true],
    ["eks.amazonaws.com/capacityType", "ON_DEMAND", false],
    ["karpenter.sh/capacity-type", "spot", true],
    ["kubernetes.azure.com/scalesetpriority", "spot", true],
    ["node.kubernetes.io/lifecycle", "spot", true],
    ["node.kubernetes.io/lifecycle", "normal", false],
  ])("for a node with %s=%s returns %s", (key, value, expected) => {
    expect(matchesNodeSelector(labelled({ [key]: value }), defaultNodeSelector)).toBe(expected);
  });
});

describe("a label requirement", () => {
  it.each<[string, LabelRequirement, boolean]>([
    ["In holds for one of the values", requirement("pool", "In", "a", "b"), true],
    ["In fails without the label", requirement("none", "In", "a"), false],
    ["NotIn holds without the label", requirement("none", "NotIn", "a"), true],
    ["NotIn fails for one of the values", requirement("pool", "NotIn", "a"), false],
    ["Exists holds with the label", requirement("pool", "Exists"), true],
    ["DoesNotExist fails with the label", requirement("pool", "DoesNotExist"), false],
    ["Gt compares numbers, not text", requirement("cores", "Gt", "9"), true],
    ["Gt fails for equal numbers", requirement("cores", "Gt", "16"), false],
    ["Lt holds for a smaller number", requirement("cores", "Lt", "17"), true],
    ["Lt fails for text that is not a number", requirement("pool", "Lt", "17"), false],
    ["Gt fails without the label", requirement("none", "Gt", "1"), false],
  ])("%s", (_, wanted, expected) => {
    const node = labelled({ pool: "a", cores: "16" });
    const terms = [{ matchExpressions: [wanted], matchFields: [] }];
    expect(matchesNodeSelector(node, { nodeSelectorTerms: terms })).toBe(expected);
  });
});

describe("a node selector", () => {
  const inPool = (name: string) => ({
    matchExpressions: [requirement("pool", "In", name)],
    matchFields: [],
  });

  it("selects a node that matches any of its terms", () => {
    const selector = { nodeSelectorTerms: [inPool("x"), inPool("a")] };
    expect(matchesNodeSelector(labelled({ pool: "a" }), selector)).toBe(true);
  });

  it("selects nothing without terms, or with a term without requirements", () => {
    expect(matchesNodeSelector(labelled({}), { nodeSelectorTerms: [] })).toBe(false);
    const empty = { nodeSelectorTerms: [{ matchExpressions: [], matchFields: [] }] };
    expect(matchesNodeSelector(labelled({}), empty)).toBe(false);
  });

  it("selects nodes by name, and by no other field", () => {
    const byField = (key: string) => ({
      nodeSelectorTerms: [{ matchExpressions: [], matchFields: [requirement(key, "In", "n1")] }],
    });
    expect(matchesNodeSelector(labelled({}), byField("metadata.name"))).toBe(true);
    expect(matchesNodeSelector(labelled({}), byField("metadata.uid"))).toBe(false);
  });
});

describe("the policy of a node", () => {
  const everything = {
    nodeSelectorTerms: [{ matchExpressions: [requirement("pool", "Exists")], matchFields: [] }],
  };
  const policy = (name: string, weight = 0) => aPolicy({ name, weight, nodeSelector: everything });

  it.each([
    ["the highest weight wins over the name", [policy("a"), policy("z", 10)], "z", []],
    [
      "with equal weights the first name wins",
      [policy("b"), policy("a"), policy("c")],
      "a",
      ["b", "c"],
    ],
    ["lower weights are not a tie", [policy("b", 1), policy("a", 1), policy("c")], "a", ["b"]],
  ])("%s", (_, policies, name, tiedWith) => {
    const choice = selectPolicy(labelled({ pool: "x" }), policies);
    expect([choice?.policy.name, choice?.tiedWith]).toEqual([name, tiedWith]);
  });

  it("is none if no policy selects it", () => {
    expect(selectPolicy(labelled({}), [policy("a")])).toBeUndefined();
  });
});
