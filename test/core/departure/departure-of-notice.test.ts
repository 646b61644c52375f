import { describe, expect, it } from "vitest";
import type { Phase } from "../../../src/core/departure/departure.ts";
import { departureOfNotice } from "../../../src/core/departure/departure-of-notice.ts";
import type { Cause } from "../../../src/core/policy/action.ts";
import { instant } from "../../../src/core/time/time.ts";

interface Row {
  /**
   * The node's departures, by cause and phase; `!` marks one that has a notice, `~` one of an
   * earlier boot.
   */
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
  // One of an earlier boot ends as that, whenever its end can be recorded.
  { there: ["~Planned Scheduled"], told: "SpotInterruption" },
  { there: ["~Manual Held"], told: "Preempted" },
  { there: ["~Planned Scheduled", "Planned Scheduled"], told: "SpotInterruption", joins: 1 },
  { there: ["~Planned Draining"], told: "SpotInterruption" },
  { there: ["~SpotInterruption Scheduled"], told: "Preempted" },
  { there: ["~Planned Ended"], told: "SpotInterruption" },
];

describe("the departure that a notice joins", () => {
  it.each(rows)("with $there and a notice of $told is number $joins", (row) => {
    const { there, told, joins } = row;
    const departures = there.map((written) => {
      const [cause = "", phase] = written.split(" ");
      return {
        isEarlier: cause.startsWith("~"),
        cause: cause.replace(/[!~]/g, "") as Cause,
        status: { phase: phase as Phase },
        noticedAt: cause.endsWith("!") ? instant(0) : undefined,
      };
    });
    const isOfMachine = ({ isEarlier }: { isEarlier: boolean }) => !isEarlier;
    const found = departureOfNotice(departures, told, isOfMachine);
    expect(found === undefined ? undefined : departures.indexOf(found)).toBe(joins);
  });
});
