import { expect, it } from "vitest";
import { explainForecast } from "../../../src/core/plan/explain-forecast.ts";
import { planFleet } from "../../../src/core/plan/plan.ts";
import { hours, minus } from "../../../src/core/time/time.ts";
import { aNode, aPolicy, at } from "../fleet-builder.ts";

it("the forecast of a policy without windows does not speak of windows", () => {
  const now = at("2026-11-20T12:00:00Z");
  const annotations = { "lastcall.dev/hold": "2026-11-22T06:00:00Z" };
  const nodes = [aNode("n1", { createdAt: minus(now, hours(2)), annotations })];
  const fleet = { policies: [aPolicy()], badPolicies: [], departures: [], nodes };
  const [made] = planFleet({ ...fleet, at: now }).policies;
  expect(made?.forecast).toMatchObject({ late: ["n1"], onHold: 1 });
  expect(made && explainForecast(made)).not.toContain("window");
});
