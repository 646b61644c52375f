import { describe, expect, it } from "vitest";
import type { PlanInput } from "../../../src/core/plan/fleet-plan.ts";
import { planFleet } from "../../../src/core/plan/plan.ts";
import type { BadPolicy } from "../../../src/core/policy/policy.ts";
import { aNode, aPolicy, at, daily } from "../fleet-builder.ts";

const now = at("2026-11-20T00:00:00Z");

function plan(over: Partial<PlanInput>): ReturnType<typeof planFleet> {
  const nothing = { badPolicies: [], nodes: [], departures: [] };
  return planFleet({ policies: [aPolicy()], ...nothing, at: now, ...over });
}

describe("a policy that cannot be read", () => {
  it("keeps the nodes that it selects out of the plan, by weight and then by name", () => {
    const pool = (name: string) => ({
      nodeSelectorTerms: [
        {
          matchExpressions: [{ key: "pool", operator: "In", values: [name] } as const],
          matchFields: [],
        },
      ],
    });
    const nodes = ["a", "b"].map((name) =>
      aNode(`n-${name}`, { labels: { "cloud.google.com/gke-spot": "true", pool: name } }),
    );
    const left = (bad: Partial<BadPolicy>) => {
      const broken = { name: "broken", problem: "windows", nodeSelector: pool("a"), ...bad };
      const made = plan({ nodes, badPolicies: [broken] });
      return made.notPlanned.map(({ node, blockedBy }) => `${node.name} ${blockedBy}`);
    };
    expect(left({})).toEqual(["n-a broken"]);
    expect(left({ weight: 1 })).toEqual(["n-a broken"]);
    expect(left({ weight: -1 })).toEqual([]);
    expect(left({ weight: 0 })).toEqual(["n-a broken"]);
    expect(left({ weight: 0, name: "zz" })).toEqual([]);
    // Its selector is unknown, so it may select any node.
    expect(left({ nodeSelector: undefined })).toEqual(["n-a broken", "n-b broken"]);
  });

  it("holds back only Spot nodes if it has no selector of its own", () => {
    const windows = [daily("01:00-02:00", { timeZone: "Mars/Base" })];
    const all = {
      nodeSelectorTerms: [
        { matchExpressions: [{ key: "all", operator: "Exists" } as const], matchFields: [] },
      ],
    };
    const odd = aPolicy({ name: "odd", weight: 1, windows });
    const policies = [aPolicy({ nodeSelector: all }), odd];
    const nodes = [
      aNode("n1", { labels: { all: "" } }),
      aNode("n2", { labels: { all: "", "cloud.google.com/gke-spot": "true" } }),
    ];
    const made = plan({ nodes, policies });
    expect(made.policies[0]?.departures.map(({ node }) => node.name)).toEqual(["n1"]);
    expect(made.bad).toMatchObject([{ policy: { name: "odd" }, nodes: 1 }]);
  });
});
