import { expect, it } from "vitest";
import { planFleet } from "../../../src/core/plan/plan.ts";
import { planReport } from "../../../src/core/plan/plan-report.ts";
import { aNode, aPolicy, at } from "../fleet-builder.ts";

it("a hold that cannot be read is answered with the forms that can", () => {
  const node = aNode("n1", { annotations: { "lastcall.dev/hold": "4 hours" } });
  const facts = { policies: [aPolicy()], badPolicies: [], departures: [], nodes: [node] };
  const [one] = planReport(planFleet({ ...facts, at: at("2026-11-20T12:00:00Z") })).notPlanned;
  expect(one?.reason).toBe("OnHold");
  expect(one?.explain).toContain(
    '"4 hours" cannot be read (expected "true", 4h or 2026-12-01T00:00:00Z)',
  );
});
