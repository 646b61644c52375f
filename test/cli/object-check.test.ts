import { describe, expect, it } from "vitest";
import { checkObject } from "../../src/cli/input/read-objects.ts";
import type { KubeObject } from "../../src/contracts/kube-api.ts";

function check(kind: string, over: object): void {
  const metadata = { name: "one", namespace: "shop" };
  checkObject({ file: "fleet.json", object: { kind, metadata, ...over } as KubeObject });
}

describe("an object in a file", () => {
  it.each([
    [
      "Node",
      { metadata: { name: "n1", creationTimestamp: "yesterday" } },
      "Node n1: metadata.creationTimestamp",
      '"yesterday"',
      "an RFC 3339 instant such as 2026-12-01T00:00:00Z",
    ],
    ["Node", { metadata: {} }, "Node: metadata.name", "nothing", "a text"],
    [
      "Node",
      { spec: { unschedulable: "yes" } },
      "Node shop/one: spec.unschedulable",
      '"yes"',
      "true or false",
    ],
    ["Node", { spec: { taints: 5 } }, "Node shop/one: spec.taints", "5", "a list"],
    [
      "Pod",
      { spec: { terminationGracePeriodSeconds: "600" } },
      "Pod shop/one: spec.terminationGracePeriodSeconds",
      '"600"',
      "a whole number",
    ],
    [
      "Pod",
      { spec: { terminationGracePeriodSeconds: 1.5 } },
      "Pod shop/one: spec.terminationGracePeriodSeconds",
      "1.5",
      "a whole number",
    ],
    [
      "Pod",
      { spec: { priority: "high" } },
      "Pod shop/one: spec.priority",
      '"high"',
      "a whole number",
    ],
    [
      "PodDisruptionBudget",
      { spec: { minAvailable: "half" } },
      "PodDisruptionBudget shop/one: spec.minAvailable",
      '"half"',
      "a whole number or a share such as 50%",
    ],
    [
      "PodDisruptionBudget",
      { status: { disruptionsAllowed: "one" } },
      "PodDisruptionBudget shop/one: status.disruptionsAllowed",
      '"one"',
      "a whole number",
    ],
    [
      "Departure",
      { spec: { departAt: 5 } },
      "Departure shop/one: spec.departAt",
      "5",
      "an RFC 3339 instant such as 2026-12-01T00:00:00Z",
    ],
  ])("is rejected if it is a %s with %j", (kind, over, place, found, wanted) => {
    expect(() => check(kind, over)).toThrow(
      `Cannot read fleet.json: ${place}: found ${found}, expected ${wanted}`,
    );
  });

  it.each([
    ["Node", { metadata: { name: "n1", creationTimestamp: null }, spec: {} }],
    ["Pod", { spec: { terminationGracePeriodSeconds: -5, priority: 2_000_000_000 } }],
    ["PodDisruptionBudget", { spec: { minAvailable: "50%", maxUnavailable: 1, selector: {} } }],
    ["ConfigMap", { metadata: {}, spec: 5 }],
  ])("is accepted if it is a %s with %j", (kind, over) => {
    expect(() => check(kind, over)).not.toThrow();
  });
});
