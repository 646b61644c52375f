import { describe, expect, it } from "vitest";
import { departureOfNotice, type Phase } from "../../../src/core/departure/departure.ts";
import type { Cause } from "../../../src/core/policy/action.ts";
import { instant } from "../../../src/core/time/time.ts";

interface Row {
  /** The node's departures, by cause and phase; `!` marks one that has a notice. */
  readonly there: readonly string[];
  readonly told: Cause;
  /** The index of the departure that the notice joins; absent: it gets its own. */
  readonly joins?: number;
}

const rows: readonly Row[] = [
  { there: [], told: "SpotInterruption" },
  { there: ["Planned Scheduled"], told: "SpotInterruption", joins: 0 },
  { there: ["Planned Held"], told: "LifecycleHook", joins: 0 },
  { there: ["Manual Scheduled"], told: "SpotInterruption", joins: 0 },
  { there: ["Planned Draining"], told: "Preempted", joins: 0 },
  { there: ["Planned Ended"], told: "SpotInterruption" },
  { there: ["SpotInterruption Ended"], told: "SpotInterruption" },
  { there: ["Planned Scheduled", "Manual Draining"], told: "SpotInterruption", joins: 1 },
  { there: ["Planned Ended", "Planned Scheduled"], told: "NodeShutdown", joins: 1 },
  // A notice that a policy may ignore forces no plan, and joins only a noticed departure.
  { there: ["Planned Scheduled"], told: "RebalanceRecommendation" },
  { there: ["Planned Draining"], told: "ScheduledMaintenance" },
  { there: ["Manual Draining"], told: "RebalanceRecommendation" },
  { there: ["Planned! Scheduled"], told: "RebalanceRecommendation", joins: 0 },
  { there: ["SpotInterruption Draining"], told: "ScheduledMaintenance", joins: 0 },
  // A departure made by a notice is preferred to one under way.
  { there: ["Planned Draining", "LifecycleHook Scheduled"], told: "Preempted", joins: 1 },
  {
    there: ["Planned Scheduled", "RebalanceRecommendation Draining"],
    told: "SpotInterruption",
    joins: 1,
  },
];

describe("the departure that a notice joins", () => {
  it.each(rows)("with $there and a notice of $told is number $joins", ({ there, told, joins }) => {
    const departures = there.map((written) => {
      const [cause = "", phase] = written.split(" ");
      return {
        cause: cause.replace("!", "") as Cause,
        status: { phase: phase as Phase },
        noticedAt: cause.endsWith("!") ? instant(0) : undefined,
      };
    });
    const found = departureOfNotice(departures, told);
    expect(found === undefined ? undefined : departures.indexOf(found)).toBe(joins);
  });
});
