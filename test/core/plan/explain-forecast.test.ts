import { expect, it } from "vitest";
import { explainForecast } from "../../../src/core/plan/explain-forecast.ts";
import { planFleet } from "../../../src/core/plan/plan.ts";
import { inEnglish } from "../../../src/core/reason/english.ts";
import { hours, minus, minutes } from "../../../src/core/time/time.ts";
import { aNode, aPolicy, at, daily } from "../fleet-builder.ts";

it("the forecast of a policy without windows does not speak of windows", () => {
  const now = at("2026-11-20T12:00:00Z");
  const annotations = { "lastcall.dev/hold": "2026-11-22T06:00:00Z" };
  const nodes = [aNode("n1", { createdAt: minus(now, hours(2)), annotations })];
  const fleet = { policies: [aPolicy()], badPolicies: [], departures: [], nodes };
  const [made] = planFleet({ ...fleet, at: now }).policies;
  expect(made?.forecast).toMatchObject({ late: ["n1"], onHold: 1 });
  expect(made && inEnglish(explainForecast(made))).not.toContain("window");
});

it("nodes that leave at close deadlines, because no window opens, are not short of time", () => {
  const now = at("2026-11-20T12:00:00Z");
  const nodes = ["n1", "n2"].map((name, place) =>
    aNode(name, { createdAt: minus(now, minutes(23 * 60 + place)) }),
  );
  const policies = [aPolicy({ windows: [daily("22:00-22:05")] })];
  const [made] = planFleet({ policies, badPolicies: [], nodes, departures: [], at: now }).policies;
  expect(made).toMatchObject({ spacing: { reachedMs: minutes(1) }, forecast: { shut: 2 } });
  expect(made && inEnglish(explainForecast(made))).not.toContain("apart");
});

it.each([
  ["12:00-12:30", ""],
  [
    "12:00-12:20",
    "; departures are at least 10m instead of 15m apart, because there is no time for more",
  ],
])("a gap is called smaller than wanted only if its words differ: windows %s", (window, said) => {
  const now = at("2026-11-20T00:00:00Z");
  const names = ["n1", "n2", "n3"];
  const nodes = names.map((name) => aNode(name, { createdAt: minus(now, hours(10)) }));
  const policies = [aPolicy({ windows: [daily(window)] })];
  const [made] = planFleet({ policies, badPolicies: [], nodes, departures: [], at: now }).policies;
  if (made === undefined) throw new Error("the policy has a plan");
  expect(made.spacing.reachedMs).toBeLessThan(minutes(15));
  expect(inEnglish(explainForecast(made))).toBe(`All 3 departures are on schedule${said}`);
});
