import { describe, expect, it } from "vitest";
import { decide } from "../../../src/core/decide.ts";
import type { DepartureStatus } from "../../../src/core/departure/departure.ts";
import { restsUntil } from "../../../src/core/departure/node-rest.ts";
import { planFleet } from "../../../src/core/plan/plan.ts";
import { formatInstant, hours, instant, minutes, plus } from "../../../src/core/time/time.ts";
import { aDeparture, aNode, aPolicy, at, everyMachine } from "../fleet-builder.ts";

const n1 = aNode("n1", { bootID: "boot-1" });
const endedAt = at("2026-11-20T12:00:00Z");
const stayed: Partial<DepartureStatus> = {
  ...{ phase: "Ended", outcome: "RolledBack", reason: "MachineNotTaken", endedAt },
};

function former(over: Partial<DepartureStatus> = {}, count = 1) {
  return Array.from({ length: count }, (_, place) =>
    aDeparture(n1, {
      name: `n1-${place}`,
      status: { ...stayed, ...over, endedAt: instant(endedAt - hours(1) * place) },
    }),
  );
}

describe("the pause after a node was drained but its machine stayed", () => {
  it.each([
    [1, 1],
    [2, 2],
    [3, 4],
    [5, 16],
    [6, 24],
    [9, 24],
  ])("after %i times is %i hours from the last end", (times, rest) => {
    expect(restsUntil(n1, former({}, times))).toBe(plus(endedAt, hours(rest)));
  });

  it("is the same if the release failed", () => {
    const failed = former({ outcome: "Failed", reason: "ReleaseFailed" });
    expect(restsUntil(n1, failed)).toBe(plus(endedAt, hours(1)));
  });

  it.each<[string, Parameters<typeof restsUntil>]>([
    ["was never drained", [n1, []]],
    ["was not emptied in time", [n1, former({ reason: "DrainTimeout" })]],
    [
      "had its departure cancelled by a user",
      [n1, former({ outcome: "Cancelled", reason: undefined })],
    ],
    ["has left", [n1, former({ outcome: "Planned", reason: "Released" })]],
    [
      "has rebooted since",
      [n1, former().map((one) => ({ ...one, node: { ...one.node, bootID: "boot-0" } }))],
    ],
    ["had a notice from the cloud", [n1, former().map((one) => ({ ...one, cause: "Preempted" }))]],
  ])("is none if the node %s", (_, [node, departures]) => {
    expect(restsUntil(node, departures)).toBeUndefined();
  });
});

describe("a node in its pause after a useless drain", () => {
  const world = {
    ...{ nodes: [n1], policies: [aPolicy()], badPolicies: [], gateAnswers: {} },
    ...{ departures: former(), releaseAnswers: everyMachine },
  };
  const until = plus(endedAt, hours(1));

  it("is not planned even past its deadline, and the plan says until when", () => {
    const born = at("2026-11-19T00:00:00Z");
    const nodes = [{ ...n1, createdAt: born }];
    const plan = planFleet({ ...world, nodes, at: plus(endedAt, minutes(59)) });
    expect(plan.notPlanned).toMatchObject([
      { reason: "MachineStayed", detail: formatInstant(until) },
    ]);
  });

  it("is planned again afterwards", () => {
    const { decisions } = decide(world, until);
    expect(decisions).toMatchObject([{ kind: "Schedule" }]);
  });

  it("still leaves if a person requests it", () => {
    const manual = aDeparture(n1, { cause: "Manual" });
    const { decisions } = decide({ ...world, departures: [...former(), manual] }, endedAt);
    expect(decisions).toMatchObject([{ kind: "Begin", reason: "Requested" }]);
  });
});

describe("a node that is still shown after it has left with its machine", () => {
  const left = former({ outcome: "Planned", reason: "Released" }).map((one) => {
    return { ...one, node: { ...one.node, bootID: "boot-1" } };
  });
  const planAt = (node: typeof n1, now: typeof endedAt) =>
    planFleet({
      ...{ nodes: [node], policies: [aPolicy()], badPolicies: [], departures: left, at: now },
    });

  it("is not planned again for ten minutes", () => {
    const { notPlanned } = planAt(n1, plus(endedAt, minutes(9)));
    expect(notPlanned).toMatchObject([{ reason: "NodeTerminating" }]);
    expect(planAt(n1, plus(endedAt, minutes(10))).notPlanned).toEqual([]);
  });

  it("is planned at once if another machine has taken it over", () => {
    const taken = { ...n1, bootID: "boot-2", instanceBornAt: endedAt };
    expect(planAt(taken, plus(endedAt, minutes(1))).notPlanned).toEqual([]);
  });
});
