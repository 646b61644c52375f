import { expect, it } from "vitest";
import { planFleet } from "../../../src/core/plan/plan.ts";
import { planReport } from "../../../src/core/plan/plan-report.ts";
import { explain } from "../../../src/core/reason/reason.ts";
import { translated } from "../../../src/web/words/translated.ts";
import { aNode, aPolicy, at } from "../fleet-builder.ts";

it.each([
  ["4 hours", '"4h"? '],
  ["1d", '"24h"? '],
  ["2026-12-24 18:00", '"2026-12-24T18:00:00Z"? '],
  ["True", '"true"? '],
  ["soon", ""],
])("the hold %j, which cannot be read, is answered with the forms that can", (value, meant) => {
  const node = aNode("n1", { annotations: { "lastcall.dev/hold": value } });
  const facts = { policies: [aPolicy()], badPolicies: [], departures: [], nodes: [node] };
  const [one] = planReport(planFleet({ ...facts, at: at("2026-11-20T12:00:00Z") })).notPlanned;
  expect(one?.reason).toBe("OnHold");
  expect(translated(one?.explain ?? "", "ja")).toContain("読み取れません");
  expect(one?.explain).toContain(
    `"${value}" cannot be read (${meant}expected "true", "4h" or "2026-12-01T00:00:00Z")`,
  );
});

it("a Departure that is held by it says so as the plan does, without quotes around quotes", () => {
  const forms = '"4h"? expected "true", "4h" or "2026-12-01T00:00:00Z"';
  const detail = `lastcall.dev/hold, whose value "4 hours" cannot be read (${forms})`;
  const said = explain("OnHold", { node: "n1", detail });
  expect(said).toBe(`n1 is not planned while it has the annotation ${detail}.`);
  expect(translated(said, "ja")).toContain("読み取れません");
  expect(explain("OnHold", { node: "n1" })).toContain("the annotation lastcall.dev/hold.");
});
