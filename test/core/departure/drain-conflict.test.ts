import { expect, it } from "vitest";
import {
  conflictWith,
  contestable,
  type Demanding,
  type RunningDrain,
} from "../../../src/core/departure/drain-reason.ts";
import { planDrain } from "../../../src/core/drain-plan/drain-plan.ts";
import { budget, node, pod, rule, startAt } from "../drain/drain-scene.ts";

/** A drain's demands on budgets, as `web` or `web*2`; each allows `allowed` disruptions. */
function asking(words: string, allowed = 1): Demanding {
  const demands = words.split(" ").map((word) => {
    const [name = "", pods = "1"] = word.split("*");
    return { budget: name, pods: Number(pods), disruptionsAllowed: allowed };
  });
  return { demands };
}

function running(...drains: readonly string[]): readonly RunningDrain[] {
  return drains.map((words, at) => ({ name: `d${at + 1}`, ...asking(words) }));
}

it.each<[string, readonly RunningDrain[], Demanding, string | undefined]>([
  ["two that share two budgets", running("a b"), asking("a b"), "d1 over a and b"],
  ["two that share one budget: they take turns", running("a b"), asking("b c"), undefined],
  ["two whose budgets allow both at once", running("a b"), asking("a b", 2), undefined],
  [
    "two, one of which needs more than is left",
    running("a b"),
    asking("a*2 b*2", 2),
    "d1 over a and b",
  ],
  ["three in a cycle", running("a b", "b c"), asking("a c"), "d1 and d2 over a and c"],
  ["three in a row", running("a b", "b c"), asking("c d"), undefined],
  ["four in a cycle", running("a b", "c d", "b c"), asking("d a"), "d2 and d3 and d1 over d and a"],
  [
    "a cycle with a budget that allows all",
    [...running("a b"), { name: "d2", ...asking("b c", 9) }],
    asking("a c"),
    undefined,
  ],
  ["a budget that allows no disruption", running("a b"), asking("a b", 0), "d1 over a and b"],
  [
    "budgets that allow no disruption at all",
    [{ name: "d1", ...asking("a b", 0) }],
    asking("a b", 0),
    undefined,
  ],
  ["no drain in progress", [], asking("a*9 b*9"), undefined],
])("finds the drains that could block each other: %s", (_, under, next, expected) => {
  const found = conflictWith(under, next);
  expect(found && `${found.drains.join(" and ")} over ${found.budgets.join(" and ")}`).toBe(
    expected,
  );
});

it("a drain demands the pods of each budget, without those already terminating", () => {
  const labels = { app: "shop" };
  const budgets = [budget("shop", { selector: { matchLabels: labels } }), budget("web")];
  const pods = [
    pod("a"),
    pod("b"),
    pod("c", { labels }),
    pod("d", { labels, deletionAt: startAt }),
  ];
  const { demands } = planDrain({ node: node(), pods, budgets, rule: rule(), now: startAt });
  expect(demands).toEqual([
    { budget: "default/shop", pods: 1, disruptionsAllowed: 1 },
    { budget: "default/web", pods: 2, disruptionsAllowed: 1 },
  ]);
});

it("a drain can be part of a cycle only with two budgets that have disruptions left", () => {
  expect(contestable(asking("a").demands)).toEqual([]);
  expect(contestable([...asking("a", 0).demands, ...asking("b").demands])).toEqual([]);
  expect(contestable(asking("a b").demands)).toHaveLength(2);
});
