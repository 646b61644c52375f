import { describe, expect, it } from "vitest";
import { decide } from "../../../src/core/decide.ts";
import type { Snapshot } from "../../../src/core/departure/decision.ts";
import type { Departure, DepartureStatus, Outcome } from "../../../src/core/departure/departure.ts";
import { waveStanding, waveVerdict } from "../../../src/core/limits/budget.ts";
import { policyStatuses } from "../../../src/core/plan/plan-status.ts";
import type { Amount, Waves } from "../../../src/core/policy/policy.ts";
import { hours, instant, minutes, plus } from "../../../src/core/time/time.ts";
import { aDeparture, aNode, aPolicy, at, everyMachine } from "../fleet-builder.ts";

const now = at("2026-11-20T12:00:00Z");
const sizes: readonly Amount[] = [{ count: 1 }, { count: 3 }, { percent: 10 }];

function ended(outcome: Outcome, over: Partial<DepartureStatus> = {}, name = "n1"): Departure {
  const status = { phase: "Ended", outcome, endedAt: plus(now, minutes(-5)), ...over } as const;
  const startedAt = plus(now, minutes(-9));
  return aDeparture(aNode(name), { departAt: startedAt, status: { startedAt, ...status } });
}

const underWay = aDeparture(aNode("n9"), { status: { phase: "Draining", startedAt: now } });
const well = (count: number): Departure[] =>
  Array.from({ length: count }, (_, i) => ended("Planned", {}, `n${i}`));
const counts = { total: 3, left: 1, evicted: 2, forced: 0, waiting: 0, blocked: 0, cut: 0 };

/** The state of the waves and the verdict in short, for a fleet of 50 nodes. */
function stand(departures: readonly Departure[], waves: Partial<Waves> = {}): string {
  const policy = aPolicy({ waves: { sizes, ...waves } });
  const standing = waveStanding({ policy, matched: 50, departures });
  const verdict = waveVerdict(standing);
  const word = verdict.kind === "Held" ? verdict.reason : verdict.kind;
  return `${standing?.state} ${standing?.wave} ${standing?.succeeded}/${standing?.size}: ${word}`;
}

describe("the waves of a policy", () => {
  it.each<[string, readonly Departure[], string]>([
    ["start with the canary", [], "UnderWay 1 0/1: Allowed"],
    [
      "start no other departure while the canary is leaving",
      [underWay],
      "UnderWay 1 0/1: WaveWait",
    ],
    ["widen when the canary has succeeded", well(1), "UnderWay 2 0/3: Allowed"],
    ["count departures in progress", [...well(3), underWay], "UnderWay 2 2/3: WaveWait"],
    ["widen to a percentage of the nodes, 10 % of 50", well(4), "UnderWay 3 0/5: Allowed"],
    ["are over after the last wave", [...well(9), underWay], "Passed 3 5/5: Allowed"],
    ["halt at one that was rolled back", [ended("RolledBack")], "Halted 1 0/1: WaveHalted"],
    [
      "halt at one that failed, whatever succeeded",
      [...well(9), ended("Failed", {}, "x")],
      "Halted 3 5/5: WaveHalted",
    ],
    [
      "halt at one that left pods behind",
      [ended("Forced", { drain: counts })],
      "Halted 1 0/1: WaveHalted",
    ],
    [
      "do not count pods deleted by a rule as failures",
      [ended("Forced", { drain: { ...counts, left: 0, forced: 1 } })],
      "UnderWay 2 0/3: Allowed",
    ],
    [
      "ignore nodes that the cloud took",
      [ended("Preempted"), ended("Expired")],
      "UnderWay 1 0/1: Allowed",
    ],
    ["ignore departures that a user cancelled", [ended("Cancelled")], "UnderWay 1 0/1: Allowed"],
    [
      "ignore departures that never started",
      [ended("Failed", { startedAt: undefined })],
      "UnderWay 1 0/1: Allowed",
    ],
    [
      "count departures requested by a user",
      [{ ...ended("Planned"), cause: "Manual" }],
      "UnderWay 2 0/3: Allowed",
    ],
    [
      "ignore departures of other policies",
      [{ ...ended("Failed"), policy: "other" }],
      "UnderWay 1 0/1: Allowed",
    ],
  ])("%s", (_, departures, expected) => {
    expect(stand(departures)).toBe(expected);
  });

  it("start again with the canary when a person restarts them", () => {
    const before = [...well(4), ended("RolledBack", {}, "x")];
    const restartedAt = plus(now, minutes(-5));
    expect(stand(before, { restartedAt })).toBe("UnderWay 1 0/1: Allowed");
    const after = ended("Planned", { endedAt: instant(restartedAt + 1) }, "y");
    expect(stand([...before, after], { restartedAt })).toBe("UnderWay 2 0/3: Allowed");
  });

  it("name the newest departure that halted them, and how to continue", () => {
    const older = ended("Failed", { endedAt: plus(now, hours(-2)) }, "a");
    const policy = aPolicy({ waves: { sizes } });
    const departures = [older, ended("RolledBack", {}, "b")];
    expect(waveVerdict(waveStanding({ policy, matched: 50, departures }))).toEqual({
      kind: "Held",
      reason: "WaveHalted",
      detail:
        "wave 1 of 3 is halted, because the departure b-1 ended as RolledBack; set waves.restartedAt in the policy to continue",
    });
  });

  it("do not hold anything in a policy without waves", () => {
    const standing = waveStanding({ policy: aPolicy(), matched: 5, departures: [ended("Failed")] });
    expect(waveVerdict(standing)).toEqual({ kind: "Allowed" });
  });
});

describe("a due departure in a policy with waves", () => {
  const waves = { sizes };
  const born = plus(now, hours(-23));
  const [n1, n2] = [aNode("n1", { createdAt: born }), aNode("n2", { createdAt: born })];
  const due = aDeparture(n2, { departAt: now, deadlineAt: plus(now, minutes(30)) });

  function world(more: Partial<Snapshot>): Snapshot {
    const policies = [aPolicy({ waves })];
    return {
      nodes: [n1, n2],
      policies,
      departures: [due],
      badPolicies: [],
      gateAnswers: {},
      releaseAnswers: everyMachine,
      ...more,
    };
  }

  function about(snapshot: Snapshot, when = now): readonly string[] {
    return decide(snapshot, when)
      .decisions.filter((one) => "departure" in one && one.departure === due)
      .map((one) => `${one.kind} ${one.reason}`);
  }

  it("starts as the canary", () => {
    expect(about(world({}))).toEqual(["Begin Spaced"]);
  });

  it("waits for the canary", () => {
    const startedAt = plus(now, hours(-1));
    const status = { phase: "Draining", startedAt } as const;
    const canary = aDeparture(n1, { departAt: startedAt, status });
    expect(about(world({ departures: [canary, due] }))).toEqual(["Note WaveWait"]);
  });

  it("waits after a failure, and the policy's status and forecast say so", () => {
    const startedAt = plus(now, hours(-1));
    const snapshot = world({ departures: [ended("RolledBack", { startedAt }, "n3"), due] });
    expect(about(snapshot)).toEqual(["Note WaveHalted"]);
    const [status] = policyStatuses(decide(snapshot, now).plan, snapshot.departures);
    expect(status?.waves).toMatchObject({ state: "Halted", haltedBy: "n3-1" });
    expect(status?.conditions.find(({ type }) => type === "WavesPassed")).toMatchObject({
      status: "False",
      reason: "Halted",
    });
    expect(status?.forecast.explain).toContain("the departure n3-1 ended as RolledBack");
  });

  it("starts at its deadline despite halted waves", () => {
    const deadlineAt = plus(now, minutes(30));
    const snapshot = world({ departures: [ended("RolledBack", {}, "n3"), due] });
    expect(about(snapshot, deadlineAt)).toContain("Begin DeadlineForces");
  });
});
