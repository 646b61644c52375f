import { expect, it } from "vitest";
import { explainForecast } from "../../../src/core/plan/explain-forecast.ts";
import type { Forecast } from "../../../src/core/plan/fleet-plan.ts";
import { planFleet } from "../../../src/core/plan/plan.ts";
import { hours, minus } from "../../../src/core/time/time.ts";
import { translated } from "../../../src/web/words/sentence.tsx";
import { aNode, aPolicy, at, daily } from "../fleet-builder.ts";

const now = at("2026-11-20T12:00:00Z");
const nodes = [aNode("n1", { createdAt: minus(now, hours(2)) })];
const windows = [daily("22:00-06:00")];
const fleet = { policies: [aPolicy({ windows })], badPolicies: [], departures: [], nodes };
const [made] = planFleet({ ...fleet, at: now }).policies;

/** What follows the verdict, in a forecast with these counts. */
function partsOf(counts: Partial<Forecast>): string {
  if (made === undefined) throw new Error("the policy has a plan");
  const forecast = { ...made.forecast, ...counts };
  return explainForecast({ ...made, forecast }).replace(/^.*?(?:; |$)/, "");
}

it.each<[Partial<Forecast>, string]>([
  [{ missed: 0, overdue: 0, expiring: 0, shut: 0, helpless: 0 }, ""],
  [{ onHold: 1 }, "1 node on hold until after the deadline, which ends the hold"],
  [{ onHold: 2 }, "2 nodes on hold until after the deadline, which ends the holds"],
  [{ missed: 1 }, "1 node that missed its time leaves past the deadline"],
  [{ missed: 2 }, "2 nodes that missed their time leave past the deadline"],
  [{ missed: 1000 }, "1000 nodes that missed their time leave past the deadline"],
  [
    { overdue: 1, expiring: 1 },
    "1 node already past the deadline; lifetime.max ends first for it, unless it departs by request",
  ],
  [
    { overdue: 1000, expiring: 1 },
    "1000 nodes already past the deadline, leaving one by one; lifetime.max ends first for 1 of them, unless they depart by request",
  ],
  [
    { shut: 1, helpless: 1 },
    "1 node without an open window before the deadline; longer windows would not help it",
  ],
  [
    { shut: 2, helpless: 1 },
    "2 nodes without an open window before the deadline; longer windows would not help 1 of them",
  ],
])("a forecast counts in its sentence, in both languages: %o", (counts, said) => {
  const text = partsOf(counts);
  expect(text).toBe(said);
  expect(translated(text, "ja").replaceAll("lifetime.max", "")).not.toMatch(/[A-Za-z]/);
});

it("a forecast of a policy without windows does not speak of windows", () => {
  const lifetime = { minMs: hours(0), maxMs: hours(24), reserveMs: hours(1) };
  const held = { annotations: { "lastcall.dev/hold": "2026-11-22T06:00:00Z" } };
  const policies = [aPolicy({ lifetime })];
  const [late] = planFleet({
    ...{ ...fleet, policies, at: now },
    nodes: [aNode("n1", { createdAt: minus(now, hours(2)), ...held })],
  }).policies;
  const text = late === undefined ? "" : explainForecast(late);
  expect(text).toBe(
    "The departure is late; 1 node on hold until after the deadline, which ends the hold",
  );
  expect(translated(text, "ja")).not.toMatch(/[A-Za-z]/);
});
