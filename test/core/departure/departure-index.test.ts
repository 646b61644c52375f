import { describe, expect, it } from "vitest";
import { newestStarts } from "../../../src/core/departure/decision.ts";
import type { Departure } from "../../../src/core/departure/departure.ts";
import { instant, minutes, plus } from "../../../src/core/time/time.ts";

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
  it("comes with its planned instant", () => {
    const startedAt = plus(noon, minutes(20));
    const earlier = started(plus(noon, minutes(-40)), plus(noon, minutes(-30)));
    const starts = newestStarts([started(noon, startedAt), earlier], plus(noon, minutes(30)));
    expect(starts.get("spot")).toEqual({ at: startedAt, plannedAt: noon });
  });

  it("is neither in the future nor caused by the cloud", () => {
    const later = started(noon, plus(noon, minutes(20)));
    const taken = { ...started(noon, noon), cause: "SpotInterruption" } as const;
    expect(newestStarts([later, taken], plus(noon, minutes(10))).get("spot")).toBeUndefined();
  });

  it("is one that a notice overtook at once, by whichever clock", () => {
    const noticed = { cause: "SpotInterruption", noticedAt: plus(noon, minutes(-1)) } as const;
    const startedBy = (event: string) => {
      const one = started(noon, noon);
      const entry = { at: noon, step: "Preparing", result: `${event}: n1 leaves.` };
      return { ...one, ...noticed, status: { ...one.status, timeline: [entry] } };
    };
    const newest = (event: string) =>
      newestStarts([startedBy(event)], plus(noon, minutes(10))).get("spot")?.at;
    expect([newest("Due"), newest("Noticed")]).toEqual([noon, undefined]);
  });
});
