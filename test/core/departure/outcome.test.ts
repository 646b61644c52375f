import { describe, expect, it } from "vitest";
import type { Outcome } from "../../../src/core/departure/departure.ts";
import { type OutcomeFacts, outcomeOf } from "../../../src/core/departure/ledger.ts";

const clean: OutcomeFacts = {
  cause: "Planned",
  phase: "Releasing",
  event: "Released",
  noticed: false,
  podsForced: 0,
  podsLeft: 0,
};

const cases: readonly (readonly [string, Partial<OutcomeFacts>, Outcome])[] = [
  ["was planned, drained and released", {}, "Planned"],
  ["was asked for by a person", { cause: "Manual" }, "Planned"],
  ["vanished while we released it", { event: "NodeGone" }, "Planned"],
  ["was taken over by a new machine while we released it", { event: "MachineReplaced" }, "Planned"],
  ["had pods deleted past their budget", { podsForced: 2 }, "Forced"],
  ["was let go with pods on it", { podsLeft: 1 }, "Forced"],
  ["vanished before its time", { phase: "Scheduled", event: "NodeGone" }, "Preempted"],
  ["vanished in mid-drain, empty already", { phase: "Draining", event: "NodeGone" }, "Preempted"],
  [
    "vanished in mid-drain with pods on it",
    { phase: "Draining", event: "NodeGone", podsLeft: 3 },
    "Expired",
  ],
  ["was taken on a notice, empty", { cause: "SpotInterruption", event: "NodeGone" }, "Preempted"],
  ["was planned, but a notice came first", { noticed: true, event: "NodeGone" }, "Preempted"],
  [
    "was taken on a notice with pods on it",
    { cause: "SpotInterruption", event: "NodeGone", podsLeft: 1 },
    "Expired",
  ],
  [
    "was rolled back when its drain timed out",
    { phase: "RollingBack", event: "RolledBack", undoneBy: "GaveUp", podsLeft: 2 },
    "RolledBack",
  ],
  [
    "could not be released",
    { phase: "RollingBack", event: "RolledBack", undoneBy: "Fault" },
    "Failed",
  ],
  [
    "was taken back by a person",
    { phase: "RollingBack", event: "RolledBack", undoneBy: "Cancelled" },
    "Cancelled",
  ],
  ["was cancelled before it began", { phase: "Scheduled", event: "Cancelled" }, "Cancelled"],
  ["was left by the cloud's notice", { phase: "Scheduled", event: "Withdrawn" }, "Cancelled"],
  [
    "got another machine in mid-drain",
    { phase: "RollingBack", event: "RolledBack", undoneBy: "MachineReplaced" },
    "Preempted",
  ],
];

describe("the outcome of a departure whose node", () => {
  it.each(cases)("%s", (_, facts, outcome) => {
    expect(outcomeOf({ ...clean, ...facts })).toBe(outcome);
  });
});
