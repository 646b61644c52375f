import { describe, expect, it } from "vitest";
import type { Moment } from "../../src/board/demo-picture.ts";
import { momentOf, type Pulse, paceOf } from "../../src/cli/demo/controls.ts";
import { instant, minus, minutes, plus, seconds } from "../../src/core/time/time.ts";

const startedAt = instant(0);
const now = plus(startedAt, minutes(30));
const quiet: Pulse = {
  ...{ now, startedAt, podsUnderNotice: 0, noticed: 0, draining: 0, departed: 0, losses: 0 },
  isAskedFor: false,
  nextAt: plus(now, minutes(10)),
};

describe("The clock of the demo", () => {
  it.each<[Moment, string, Partial<Pulse>]>([
    ["Opening", "at the start, to leave time for reading", { now: startedAt }],
    ["Quiet", "while nothing is about to happen", {}],
    ["Quiet", "when no departure is left", { nextAt: undefined }],
    ["Soon", "half a minute before the first departures", { nextAt: plus(now, seconds(29)) }],
    ["Quiet", "before later ones", { nextAt: plus(now, seconds(29)), departed: 2 }],
    ["Departure", "while a node leaves as planned", { draining: 1 }],
    ["Losses", "while the cloud takes machines without a drain", { losses: 3 }],
    ["Notice", "while pods leave before a deadline", { podsUnderNotice: 1, draining: 1 }],
    ["Aftermath", "while the machine shuts down", { shutdownAt: now, losses: 1 }],
    ["Aftermath", "and until there was time to read", { shutdownAt: minus(now, seconds(114)) }],
    ["Quiet", "but not for longer", { shutdownAt: minus(now, seconds(115)) }],
    ["Losses", "until then", { shutdownAt: plus(now, seconds(1)), losses: 1 }],
    ["Losses", "once the pods have left", { podsUnderNotice: 0, losses: 1 }],
  ])("has the moment %s %s", (moment, _, pulse) => {
    expect(momentOf({ ...quiet, ...pulse })).toBe(moment);
  });

  it("runs slower the more there is to see", () => {
    const first = { departed: 0, noticed: 1, isAskedFor: false };
    const order: readonly Moment[] = ["Notice", "Aftermath", "Departure", "Losses", "Quiet"];
    const paces = order.map((moment) => paceOf(moment, first));
    expect(paces).toEqual(paces.toSorted((a, b) => a - b));
    expect(new Set(paces).size).toBe(paces.length);
  });

  it("shows the first two departures at the requested speed, and later ones faster", () => {
    expect(paceOf("Departure", { ...quiet, departed: 1 })).toBe(1);
    expect(paceOf("Departure", { ...quiet, departed: 2 })).toBeGreaterThan(1);
  });

  it.each<Moment>(["Notice", "Aftermath"])(
    "runs slower for the first %s, and for one that a user requested",
    (moment) => {
      const first = paceOf(moment, { ...quiet, noticed: 1 });
      expect(first).toBeLessThan(paceOf(moment, { ...quiet, noticed: 2 }));
      expect(paceOf(moment, { ...quiet, noticed: 2, isAskedFor: true })).toBe(first);
    },
  );
});
