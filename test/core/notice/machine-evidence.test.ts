import { expect, it } from "vitest";
import type { PhaseResult } from "../../../src/core/departure/ledger.ts";
import { type CloudAnswer, inTheLightOf } from "../../../src/core/notice/machine-evidence.ts";
import { minutes, plus } from "../../../src/core/time/time.ts";
import { aDeparture, aNode, at } from "../fleet-builder.ts";

const createdAt = at("2026-11-20T03:57:39Z");
const now = at("2026-11-20T05:28:40Z");
const departure = aDeparture(aNode("n1"), { createdAt });
const gone: PhaseResult = { event: "NodeGone", reason: "NodeGone" };
const replaced: PhaseResult = { event: "MachineReplaced", reason: "MachineReplaced" };

function runs(bornAt: string, asOf = now): CloudAnswer {
  return { kind: "Present", id: "1", bornAt: at(bornAt), asOf, running: true };
}

const older = runs("2026-11-20T03:56:49Z");
const younger = runs("2026-11-20T04:30:00Z");

it.each([
  { cloud: "shows the machine", answer: older, found: gone, reason: "CancelledByPerson" },
  { cloud: "shows the machine", answer: older, found: replaced, reason: "MachineRebooted" },
  { cloud: "shows a younger one", answer: younger, found: gone, reason: "NodeGone" },
  { cloud: "shows a younger one", answer: younger, found: replaced, reason: "MachineReplaced" },
] as const)("$found.event is $reason if the cloud $cloud", ({ answer, found, reason }) => {
  expect(inTheLightOf(answer, found, { departure, now }).reason).toBe(reason);
});

it.each([
  { found: gone, reason: "NodeGone" },
  { found: replaced, reason: "WrongMachine" },
] as const)("$found.event is no preemption if the cloud does not answer", ({ found, reason }) => {
  expect(inTheLightOf("Silent", found, { departure, now })).toMatchObject({
    ...{ event: "Cancelled", reason, detail: expect.stringContaining("does not show") },
  });
});

it("ages show nothing once a clock was set by more than the machine was older", () => {
  const setAhead = plus(now, minutes(2));
  expect(inTheLightOf(older, replaced, { departure, now: setAhead })).toMatchObject({
    ...{ event: "Cancelled", reason: "WrongMachine" },
  });
  // It came so long after the departure that no clock explains it.
  expect(inTheLightOf(younger, replaced, { departure, now: setAhead }).reason).toBe(
    "MachineReplaced",
  );
});
