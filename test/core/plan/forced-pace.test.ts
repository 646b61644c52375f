import { describe, expect, it } from "vitest";
import { type Instant, instant, millis, minutes, seconds } from "../../../src/core/time/time.ts";
import { DecideRun } from "../decide-run.ts";
import { aPolicy, at, daily } from "../fleet-builder.ts";

const startAt = at("2026-11-20T05:00:00Z");

/** Nodes that reach their deadlines at 05:30 and a little later, long after the window closed. */
function forcedFleet({ count, apartMs, reserveMinutes = 30 }: Forced): DecideRun {
  const reserveMs = minutes(reserveMinutes);
  const policy = aPolicy({
    lifetime: { minMs: millis(0), maxMs: millis(minutes(90) + reserveMs), reserveMs },
    spacing: { mode: "Late", minMs: minutes(10) },
    windows: [daily("01:00-04:00")],
  });
  const agesMs = Array.from({ length: count }, (_, index) => minutes(60) - index * apartMs);
  return new DecideRun({ policy, startAt, agesMs, drainMs: () => seconds(30), replaces: false });
}

interface Forced {
  readonly count: number;
  readonly apartMs: number;
  readonly reserveMinutes?: number;
}

function startsOf(run: DecideRun): readonly Instant[] {
  run.until(instant(startAt + minutes(180)));
  return run.begun.map((one) => one.at);
}

const gapsOf = (starts: readonly number[]) =>
  starts.slice(1).map((one, index) => (one - (starts[index] ?? 0)) / 1000);

describe("nodes without an open window before their deadlines", () => {
  it.each([0, 3000, 20_000, 59_000, 165_000])(
    "%d ms apart use the reserve to leave apart",
    (apartMs) => {
      const starts = startsOf(forcedFleet({ count: 4, apartMs }));
      expect(starts).toHaveLength(4);
      // Four within 30 minutes: the last starts before the end of its lifetime.
      expect(Math.min(...gapsOf(starts))).toBeGreaterThan(400);
      expect(starts.at(-1)).toBeLessThanOrEqual(startAt + minutes(60) + 3 * apartMs);
    },
  );

  it("leave at their deadlines if these are far enough apart", () => {
    const starts = startsOf(forcedFleet({ count: 3, apartMs: minutes(10) }));
    expect(gapsOf(starts)).toEqual([600, 600]);
  });

  it.each([5, 20])("leave apart if nobody led for %i minutes at their deadlines", (forMinutes) => {
    const run = forcedFleet({ count: 4, apartMs: 20_000 });
    run.until(instant(startAt + minutes(29)));
    run.nobodyLeads(minutes(forMinutes));
    const starts = startsOf(run);
    expect(starts).toHaveLength(4);
    expect(Math.min(...gapsOf(starts))).toBeGreaterThanOrEqual(forMinutes === 5 ? 300 : 40);
  });

  it("do not all leave at once without a reserve", () => {
    const starts = startsOf(forcedFleet({ count: 4, apartMs: 3000, reserveMinutes: 0 }));
    expect(Math.min(...gapsOf(starts))).toBeGreaterThanOrEqual(40);
  });
});
