import { describe, expect, it } from "vitest";
import type { Departure } from "../../src/core/departure.ts";
import { newestStarts } from "../../src/core/departure-index.ts";
import { instant, minutes, plus, seconds } from "../../src/core/time.ts";

const noon = instant(Date.UTC(2026, 10, 20, 12));

function started(departAt: typeof noon, startedAt: typeof noon): Departure {
  return {
    name: "n1-12345678",
    uid: "d1",
    resourceVersion: "1",
    node: { name: "n1", uid: "12345678" },
    cause: "Planned",
    policy: "spot",
    departAt,
    hold: false,
    status: { phase: "Draining", startedAt, timeline: [] },
  };
}

describe("the newest start of a policy", () => {
  it("is the planned instant where the start lagged by a moment", () => {
    const starts = newestStarts([started(noon, plus(noon, seconds(2)))], plus(noon, minutes(5)));
    expect(starts.get("spot")).toEqual({ at: noon, isOnTime: true });
  });

  it("is when it really was where budgets held it back", () => {
    const startedAt = plus(noon, minutes(20));
    const starts = newestStarts([started(noon, startedAt)], plus(noon, minutes(30)));
    expect(starts.get("spot")).toEqual({ at: startedAt, isOnTime: false });
  });

  it("is when it really was where it came before its time", () => {
    const startedAt = plus(noon, seconds(-30));
    const starts = newestStarts([started(noon, startedAt)], plus(noon, minutes(30)));
    expect(starts.get("spot")).toEqual({ at: startedAt, isOnTime: false });
  });
});
