import { describe, expect, it } from "vitest";
import type { NewestStart } from "../../../src/core/departure/decision.ts";
import { type Job, paceOf } from "../../../src/core/plan/planned-departure.ts";
import { instant, minutes, plus, seconds } from "../../../src/core/time/time.ts";
import { at } from "../fleet-builder.ts";

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
    const { lagMs } = paceOf(jobsAt(...ahead), { at: now, newestStart: undefined });
    expect(lagMs).toBe(expected * 1000);
  });
});

describe("the newest start", () => {
  // The next departure is planned for six seconds after it.
  const pace = (newestStart: NewestStart) => paceOf(jobsAt(2), { at: now, newestStart });

  it("counts at its planned instant if it lagged within that time", () => {
    const { leftAt, late } = pace(started(4, 0.9));
    expect([leftAt, late]).toEqual([now - 4000, undefined]);
  });

  it("counts at its actual time if it was late, and the others make room for it", () => {
    const { leftAt, late } = pace(started(4, 1));
    expect(leftAt).toBe(now - 3000);
    expect(late).toEqual({ at: now - 3000, plannedAt: now - 4000 });
  });

  it.each([
    ["before its time", started(4, -3)],
    ["that was not planned", { at: instant(now - 4000), plannedAt: undefined }],
  ])("%s counts at its actual time, and is not late", (_, newestStart) => {
    const { leftAt, isOnTime, late } = pace(newestStart);
    expect([leftAt, isOnTime, late]).toEqual([newestStart.at, false, undefined]);
  });

  it("may lag by up to a minute if the next departure is a quarter of an hour later", () => {
    const next = jobsAt(900);
    const lagging = { plannedAt: now, at: plus(now, minutes(1)) };
    const onTime = { plannedAt: now, at: instant(lagging.at - 1) };
    expect(paceOf(next, { at: now, newestStart: onTime }).isOnTime).toBe(true);
    expect(paceOf(next, { at: now, newestStart: lagging }).isOnTime).toBe(false);
  });
});
