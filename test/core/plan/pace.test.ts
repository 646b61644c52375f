import { describe, expect, it } from "vitest";
import type { NodeFacts } from "../../../src/core/cluster/node.ts";
import type { NewestStart } from "../../../src/core/departure/decision.ts";
import type { PlannedDeparture } from "../../../src/core/plan/fleet-plan.ts";
import { isInTime, mayBeOnTime, paceOf } from "../../../src/core/plan/pace.ts";
import { planFleet } from "../../../src/core/plan/plan.ts";
import type { Job } from "../../../src/core/plan/planned-departure.ts";
import { instant, plus, seconds } from "../../../src/core/time/time.ts";
import { aDeparture, aNode, aPolicy, at } from "../fleet-builder.ts";

const now = at("2026-11-20T12:00:00Z");

/** Jobs that were planned for so many seconds from now. */
function jobsAt(...ahead: readonly number[]): readonly Job[] {
  return ahead.map((one) => ({ keptAt: now + one * 1000 })) as unknown as readonly Job[];
}

function started(plannedAgo: number, lateBy: number): NewestStart {
  const plannedAt = instant(now - plannedAgo * 1000);
  return { plannedAt, at: plus(plannedAt, seconds(lateBy)) };
}

describe("the time by which a start may lag", () => {
  it.each([
    ["is a minute between departures a quarter of an hour apart", [-10, 890], 60],
    ["is at most a minute", [-10, 7190], 60],
    ["is four seconds if they are a minute apart", [-10, 50], 4],
    ["is at least a second", [-10, -4, 2], 1],
    ["depends on the smallest gap around now, except ties", [-130, -10, -10, 890], 8],
    ["does not depend on departures far ahead", [-10, 890, 891], 60],
    ["is a minute if nothing is planned", [], 60],
  ])("%s", (_, ahead, expected) => {
    const { lagMs } = paceOf(jobsAt(...ahead), { at: now, newestStart: undefined }, false);
    expect(lagMs).toBe(expected * 1000);
  });
});

/** Whether it counts at its planned instant, if the others then leave so many seconds from now. */
function isOnTime(newestStart: NewestStart, ...ahead: readonly number[]): boolean {
  const departures = ahead.map((one) => ({ departAt: now + one * 1000 }));
  const policy = { at: now, newestStart };
  return (
    mayBeOnTime(policy) && isInTime(departures as unknown as readonly PlannedDeparture[], policy)
  );
}

describe("the newest start", () => {
  it("is on time if it lagged by less than a fifteenth of the distance to the next one", () => {
    expect(isOnTime(started(4, 0.9), 2)).toBe(true);
    expect(isOnTime(started(4, 1), 2)).toBe(false);
    expect(isOnTime(started(4, 1), 12)).toBe(true);
  });

  it("may lag by up to a minute if the next departure is a quarter of an hour later", () => {
    expect(isOnTime(started(60, 59.999), 840)).toBe(true);
    expect(isOnTime(started(60, 60), 840)).toBe(false);
  });

  it.each([
    ["before its time", started(4, -3)],
    ["that was not planned", { at: instant(now - 4000), plannedAt: undefined }],
  ])("%s is not on time, and not late", (_, newestStart) => {
    expect(isOnTime(newestStart, 900)).toBe(false);
    const { leftAt, isOnTime: isPunctual, late } = paceOf([], { at: now, newestStart }, false);
    expect([leftAt, isPunctual, late]).toEqual([newestStart.at, false, undefined]);
  });

  const newestStart = started(4, 1);

  it("counts at its planned instant if it is on time", () => {
    const { leftAt, late } = paceOf(jobsAt(2), { at: now, newestStart }, true);
    expect([leftAt, late]).toEqual([now - 4000, undefined]);
  });

  it("counts at its actual time if it was late, and the others make room for it", () => {
    const { leftAt, late } = paceOf(jobsAt(2), { at: now, newestStart }, false);
    expect(leftAt).toBe(now - 3000);
    expect(late).toEqual({ at: now - 3000, plannedAt: now - 4000 });
  });
});

it("the lags of starts on time do not add up: each leaves at its own instant", () => {
  const nodes = ["n1", "n2", "n3"].map((name) =>
    aNode(name, { createdAt: at("2026-11-19T12:30:20Z") }),
  );
  const [n1, n2] = nodes as [NodeFacts, NodeFacts];
  const startedAt = instant(now - 20_000 + 900);
  const departures = [
    aDeparture(n1, { departAt: instant(now - 20_000), status: { phase: "Draining", startedAt } }),
    aDeparture(n2, { departAt: now }),
  ];
  const input = { policies: [aPolicy()], badPolicies: [], nodes, departures, at: now };
  const second = planFleet(input).policies[0]?.departures.find(({ node }) => node === n2);
  expect([second?.departAt, second?.beginAt]).toEqual([now, now]);
});
