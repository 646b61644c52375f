import { expect, it } from "vitest";
import { budgetTitle } from "../../../src/core/limits/budget-meter.ts";

it.each([
  [1, "Policy", "1 node at once"],
  [2, "Policy", "2 nodes at once"],
  [1, "Zone", "1 node at once in a zone"],
  [1000, "Cluster", "1000 nodes at once in the cluster"],
] as const)("a budget of %i for the scope %s is called %s", (count, scope, title) => {
  expect(budgetTitle({ kind: "Nodes", scope, nodes: { count } })).toBe(title);
});

it("a budget of a share names its percentage, and one of a rate its hour", () => {
  const share = { kind: "Nodes", scope: "Zone", nodes: { percent: 1 } } as const;
  expect(budgetTitle(share)).toBe("1 % of nodes at once in a zone");
  expect(budgetTitle({ kind: "PerHour", perHour: 1 })).toBe("1 an hour");
});
