import { describe, expect, it } from "vitest";
import type { Departure } from "../../../src/core/departure/departure.ts";
import { type PhaseChange, statusAfter } from "../../../src/core/departure/ledger.ts";
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
