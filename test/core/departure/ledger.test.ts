import { describe, expect, it } from "vitest";
import type { Departure } from "../../../src/core/departure/departure.ts";
import {
  drainBeganAt,
  type PhaseChange,
  statusAfter,
  statusWithReason,
  wasDrained,
} from "../../../src/core/departure/ledger.ts";
import { minutes, plus } from "../../../src/core/time/time.ts";
import { aDeparture, aNode, at } from "../fleet-builder.ts";

const now = at("2026-11-20T12:00:00Z");

function afterBoth(departure: Departure, happenings: readonly Omit<PhaseChange, "at">[]) {
  let { status } = departure;
  for (const happening of happenings) {
    const after = statusAfter({ ...departure, status }, { ...happening, at: now });
    if (after === undefined) throw new Error(`${happening.event} changes nothing`);
    status = after;
  }
  return status;
}

describe("a departure that is rolled back", () => {
  it.each([
    ["ReleaseFailed", "Failed", "the permission p is missing"],
    ["DrainTimeout", "RolledBack", "default/web-0"],
  ] as const)("ends with the cause of the rollback: %s", (reason, outcome, detail) => {
    const releasing = aDeparture(aNode("n1"), { status: { phase: "Releasing" } });
    const status = afterBoth(releasing, [
      { event: "GaveUp", reason, detail },
      // The code that rolls back knows the reason, but not the detail after a restart.
      { event: "RolledBack", reason },
    ]);
    expect(status).toMatchObject({ phase: "Ended", outcome, reason });
    expect(status.message).toContain(detail);
    expect(status.timeline.at(-1)?.result).toContain(detail);
  });
});

describe("a timeline that is full", () => {
  it("still says when the drain began and how it ended, after a day of retries", () => {
    const waited = Array.from({ length: 5 }, () => [
      { event: "Blocked", reason: "OutsideWindow" } as const,
      { event: "Unblocked", reason: "NotYet" } as const,
    ]).flat();
    const departure = aDeparture(aNode("n1"));
    let status = afterBoth(departure, [
      ...waited,
      { event: "Due", reason: "Started" },
      { event: "Prepared", reason: "DrainRunning" },
      { event: "Drained", reason: "DrainDone" },
    ]);
    for (let tries = 1; tries <= 100; tries += 1) {
      const found = { reason: "ReleaseRetried", detail: `try ${tries}` } as const;
      const retriedAt = plus(now, minutes(tries));
      status = statusWithReason({ ...departure, status }, { ...found, at: retriedAt }) ?? status;
    }
    expect(status.timeline).toHaveLength(60);
    expect(drainBeganAt(status)).toBe(now);
    expect(wasDrained(status)).toBe(true);
    const results = status.timeline.map(({ result }) => result);
    expect(results.at(-1)).toContain("try 100");
    expect(results.at(-47)).toContain("try 54");
  });
});
