import { describe, expect, it } from "vitest";
import { decide } from "../../../src/core/decide.ts";
import type { Snapshot } from "../../../src/core/departure/decision.ts";
import type { Departure } from "../../../src/core/departure/departure.ts";
import { interruptionOf } from "../../../src/core/notice/interruption.ts";
import { explainForecast } from "../../../src/core/plan/explain-forecast.ts";
import { planFleet } from "../../../src/core/plan/plan.ts";
import { explainPlan } from "../../../src/core/plan/plan-report.ts";
import { inEnglish } from "../../../src/core/reason/english.ts";
import { formatInstant, hours, type Instant, minutes, plus } from "../../../src/core/time/time.ts";
import { aDeparture, aNode, aPolicy, at, daily, everyMachine } from "../fleet-builder.ts";

const bornAt = at("2026-11-20T00:00:00Z");
/** The policy's 24 hours less a reserve of 30 minutes. */
const deadlineAt = plus(bornAt, minutes(23 * 60 + 30));

function held(value: string) {
  return aNode("n1", { createdAt: bornAt, annotations: { "lastcall.dev/hold": value } });
}

function world(hold: string, departures: readonly Departure[]): Snapshot {
  const policies = [aPolicy()];
  return {
    nodes: [held(hold)],
    policies,
    departures,
    badPolicies: [],
    gateAnswers: {},
    releaseAnswers: everyMachine,
  };
}

function inShort(snapshot: Snapshot, now: Instant): readonly string[] {
  return decide(snapshot, now).decisions.map((one) => {
    const to = one.kind === "Move" ? ` ${formatInstant(one.departAt)}` : "";
    return `${one.kind} ${one.reason}${to}`;
  });
}

describe("a hold until after the node's deadline", () => {
  const tomorrow = formatInstant(plus(deadlineAt, hours(3)));
  const waiting = aDeparture(held(tomorrow), { departAt: deadlineAt, deadlineAt });

  it("keeps the node in the plan at its deadline, reported as late, with the reason", () => {
    const now = plus(bornAt, hours(1));
    const [plan] = planFleet({ ...world(tomorrow, []), at: now }).policies;
    expect(plan?.departures).toMatchObject([
      { departAt: deadlineAt, reason: "DeadlineBeatsWindow" },
    ]);
    expect(plan?.forecast).toMatchObject({ feasible: false, late: ["n1"], widenBySeconds: 0 });
  });

  it.each([{}, { windows: [daily("01:00-05:00")] }])(
    "and not with closed windows as the reason: %o",
    (over) => {
      const snapshot = { ...world(tomorrow, []), policies: [aPolicy(over)] };
      const [plan] = planFleet({ ...snapshot, at: plus(bornAt, hours(1)) }).policies;
      const [entry] = plan?.departures ?? [];
      const node = entry?.node.name ?? "";
      expect(entry && explainPlan(entry.reason, { ...entry, node })).toBe(
        "n1 leaves at 2026-11-20T23:30:00.000Z although it is on hold until 2026-11-21T02:30:00.000Z: its deadline 2026-11-20T23:30:00.000Z comes first (launched 2026-11-20T00:00:00.000Z according to the Node object)",
      );
      expect(plan && inEnglish(explainForecast(plan))).toBe(
        "The departure is late; 1 node on hold until after the deadline, which ends the hold",
      );
    },
  );

  it("is overridden at the deadline and no earlier", () => {
    const snapshot = world(tomorrow, [waiting]);
    expect(inShort(snapshot, plus(deadlineAt, minutes(-1)))).toEqual([]);
    expect(inShort(snapshot, deadlineAt)).toEqual(["Begin DeadlineForces"]);
  });

  it("does not cancel what the deadline has forced", () => {
    const status = { phase: "Draining", startedAt: deadlineAt } as const;
    const forced = aDeparture(held(tomorrow), { departAt: deadlineAt, deadlineAt, status });
    expect(interruptionOf(forced, held(tomorrow))).toBeUndefined();
  });
});

describe("an indefinite hold", () => {
  it.each(["true", "as long as it takes", "9999999999999h"])(
    "of %s is never overridden by a deadline",
    (value) => {
      const waiting = aDeparture(held(value), { departAt: deadlineAt, deadlineAt });
      expect(inShort(world(value, [waiting]), deadlineAt)).toEqual(["Note OnHold"]);
    },
  );
});

describe("a hold until before the deadline", () => {
  it("moves a due departure to after the end of the hold", () => {
    const now = plus(bornAt, hours(12));
    const until = plus(bornAt, hours(14));
    const due = aDeparture(held(formatInstant(until)), { departAt: now, deadlineAt });
    const [move, ...others] = inShort(world(formatInstant(until), [due]), now);
    expect(move).toMatch(/^Move Spaced/);
    expect(others).toEqual([]);
    const [plan] = planFleet({ ...world(formatInstant(until), [due]), at: now }).policies;
    expect(plan?.departures[0]?.departAt).toBeGreaterThanOrEqual(until);
  });
});

describe("a planned departure that is under way", () => {
  const startedAt = plus(bornAt, hours(20));
  const status = { phase: "Draining", startedAt } as const;
  const draining = aDeparture(held(""), { departAt: startedAt, deadlineAt, status });

  it.each(["", "false", "4h", formatInstant(startedAt)])(
    "is not cancelled by a hold of %j, which expired before it started",
    (value) => {
      expect(interruptionOf(draining, held(value))).toBeUndefined();
    },
  );

  it.each(["true", "23h", formatInstant(plus(startedAt, hours(1)))])(
    "is cancelled by a hold of %j",
    (value) => {
      expect(interruptionOf(draining, held(value))?.reason).toBe("CancelledByPerson");
    },
  );
});
