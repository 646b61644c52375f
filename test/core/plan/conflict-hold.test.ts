import { expect, it } from "vitest";
import type { Departure, DepartureStatus } from "../../../src/core/departure/departure.ts";
import { drainsUnderWay, standingConflict } from "../../../src/core/plan/conflict-hold.ts";
import { minutes, plus } from "../../../src/core/time/time.ts";
import { aScene, statusIn, timeAt } from "../next/departure-scene.ts";

const now = timeAt(0, 1).at;
const demands = ["default/db", "default/web"].map((budget) => {
  return { budget, pods: 1, disruptionsAllowed: 1 };
});

function departureWith(name: string, status: Partial<DepartureStatus>): Departure {
  return { ...aScene({}).departure, name, status: { ...statusIn(["Preparing"]), ...status } };
}

function heldAt(at: typeof now): Departure {
  const timeline = [{ at, step: "Held", result: "Blocked: it waits" }];
  return departureWith("n1-1", { phase: "Held", reason: "ConflictWait", demands, timeline });
}

const draining = departureWith("n2-1", { phase: "Draining", demands });

it("only drains under way that need budgets are waited for", () => {
  const others = [
    departureWith("n3-1", { phase: "Held", demands }),
    departureWith("n4-1", { phase: "Releasing", demands }),
    departureWith("n5-1", { phase: "Draining" }),
  ];
  expect(drainsUnderWay([draining, ...others])).toEqual([{ name: "n2-1", demands }]);
});

it("a departure waits as long as its drain would complete a cycle", () => {
  const drains = drainsUnderWay([draining]);
  const found = standingConflict(heldAt(now), { drains, now });
  expect(found).toMatchObject({ reason: "ConflictWait", retryAt: plus(now, minutes(10)) });
  expect(found?.detail).toBe("n2-1, over default/db and default/web");
  expect(standingConflict(heldAt(now), { drains: [], now })).toBeUndefined();
});

it("pods and budgets are looked at again after ten minutes, which its record cannot show", () => {
  const drains = drainsUnderWay([draining]);
  const later = plus(now, minutes(10));
  expect(standingConflict(heldAt(now), { drains, now: later })).toBeUndefined();
});

it("a departure that something else holds is not asked for drains", () => {
  const frozen = departureWith("n1-1", { phase: "Held", reason: "Frozen" });
  expect(standingConflict(frozen, { drains: drainsUnderWay([draining]), now })).toBeUndefined();
});
