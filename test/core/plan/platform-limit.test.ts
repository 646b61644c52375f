import { expect, it } from "vitest";
import { planFleet } from "../../../src/core/plan/plan.ts";
import { planReport } from "../../../src/core/plan/plan-report.ts";
import { hours, minus } from "../../../src/core/time/time.ts";
import { translated } from "../../../src/web/words/translated.ts";
import { aNode, aPolicy, at } from "../fleet-builder.ts";

const now = at("2026-11-20T12:00:00Z");
const createdAt = minus(now, hours(20));
const node = (name: string, labels: Readonly<Record<string, string>>) =>
  aNode(name, { createdAt, labels: { "cloud.google.com/gke-spot": "true", ...labels } });
const { minMs, reserveMs } = aPolicy().lifetime;
const policy = aPolicy({ lifetime: { minMs, reserveMs, isPlatforms: true } });

function planned(...nodes: readonly ReturnType<typeof node>[]) {
  const facts = { policies: [policy], badPolicies: [], departures: [], nodes };
  return planReport(planFleet({ ...facts, at: now }));
}

it.each([
  { "cloud.google.com/gke-preemptible": "true" },
  { "cloud.google.com/gke-provisioning": "preemptible" },
])("a preemptible machine has the limit of 24 hours that its cloud names: %j", (labels) => {
  const { policies } = planned(node("n1", labels));
  expect(policies[0]?.departures).toMatchObject([{ deadlineAt: "2026-11-20T15:30:00.000Z" }]);
});

it("a machine whose cloud names no limit leaves only on a notice, and the plan says why", () => {
  const { policies, notPlanned } = planned(node("n1", {}));
  expect(policies[0]?.departures).toEqual([]);
  expect(notPlanned).toMatchObject([
    {
      reason: "NoLifetimeLimit",
      explain:
        "n1 leaves only on a notice, because the cloud names no limit for its machine (lifetime.max: Platform)",
    },
  ]);
  expect(translated(notPlanned[0]?.explain ?? "", "ja")).toBe(
    "マシンにクラウドの上限がない（lifetime.max: Platform）ため、n1 は通知があったときだけ出発します",
  );
});
