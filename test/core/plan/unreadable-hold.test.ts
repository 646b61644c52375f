import { expect, it } from "vitest";
import { planFleet } from "../../../src/core/plan/plan.ts";
import { planReport } from "../../../src/core/plan/plan-report.ts";
import { translated } from "../../../src/web/words/sentence.tsx";
import { aNode, aPolicy, at } from "../fleet-builder.ts";

it.each([
  ["4 hours", "4h? "],
  ["1d", "24h? "],
  ["2026-12-24 18:00", "2026-12-24T18:00:00Z? "],
  ["True", '"true"? '],
  ["soon", ""],
])("the hold %j, which cannot be read, is answered with the forms that can", (value, meant) => {
  const node = aNode("n1", { annotations: { "lastcall.dev/hold": value } });
  const facts = { policies: [aPolicy()], badPolicies: [], departures: [], nodes: [node] };
  const [one] = planReport(planFleet({ ...facts, at: at("2026-11-20T12:00:00Z") })).notPlanned;
  expect(one?.reason).toBe("OnHold");
  expect(translated(one?.explain ?? "", "ja")).toContain("読み取れません");
  expect(one?.explain).toContain(
    `"${value}" cannot be read (${meant}expected "true", 4h or 2026-12-01T00:00:00Z)`,
  );
});
