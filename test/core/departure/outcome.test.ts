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
  ["was requested by a user", { cause: "Manual" }, "Planned"],
  ["disappeared during the release", { event: "NodeGone" }, "Planned"],
  ["was taken over by a new machine during the release", { event: "MachineReplaced" }, "Planned"],
  ["had pods deleted regardless of their budget", { podsForced: 2 }, "Forced"],
  ["was released with pods on it", { podsLeft: 1 }, "Forced"],
  ["disappeared before its time", { phase: "Scheduled", event: "NodeGone" }, "Preempted"],
  [
    "disappeared during the drain, already empty",
    { phase: "Draining", event: "NodeGone" },
    "Preempted",
  ],
  [
    "disappeared during the drain, with pods on it",
    { phase: "Draining", event: "NodeGone", podsLeft: 3 },
    "Expired",
  ],
  [
    "was taken after a notice, empty",
    { cause: "SpotInterruption", event: "NodeGone" },
    "Preempted",
  ],
  ["was planned, but a notice came first", { noticed: true, event: "NodeGone" }, "Preempted"],
  [
    "was taken after a notice, with pods on it",
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
    "had its departure cancelled by a user during the drain",
    { phase: "RollingBack", event: "RolledBack", undoneBy: "Cancelled" },
    "Cancelled",
  ],
  [
    "lost its Node while nobody knew of its machine",
    { phase: "RollingBack", event: "RolledBack", undoneBy: "Unknown" },
    "Cancelled",
  ],
  [
    "lost its Node while nobody knew of its machine, after a notice",
    { phase: "RollingBack", event: "RolledBack", undoneBy: "Unknown", noticed: true },
    "Preempted",
  ],
  [
    "lost its Node while nobody knew of its machine, after a notice that was withdrawn",
    {
      ...{ phase: "RollingBack", event: "RolledBack", undoneBy: "Unknown" },
      ...{ cause: "SpotInterruption", noticed: true, withdrawn: true },
    },
    "Cancelled",
  ],
  [
    "had its departure cancelled before it started",
    { phase: "Scheduled", event: "Cancelled" },
    "Cancelled",
  ],
  ["had its notice withdrawn", { phase: "Scheduled", event: "Withdrawn" }, "Cancelled"],
  [
    "got another machine during the drain",
    { phase: "RollingBack", event: "RolledBack", undoneBy: "MachineReplaced" },
    "Preempted",
  ],
  [
    "ended by a reboot of its machine, which stays",
    { phase: "RollingBack", event: "RolledBack", undoneBy: "MachineReplaced", rebooted: true },
    "Cancelled",
  ],
  [
    "ended by the reboot that the cloud had announced",
    { phase: "Scheduled", event: "MachineReplaced", noticed: true, rebooted: true },
    "Preempted",
  ],
];

describe("the outcome of a departure whose node", () => {
  it.each(cases)("%s", (_, facts, outcome) => {
    expect(outcomeOf({ ...clean, ...facts })).toBe(outcome);
  });
});
