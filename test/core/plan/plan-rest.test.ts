import { describe, expect, it } from "vitest";
import { seededRng } from "../../../src/core/chance/chance.ts";
import type { Window } from "../../../src/core/policy/policy.ts";
import { hours, millis, minutes, plus } from "../../../src/core/time/time.ts";
import { isLongRun } from "../../support/long-run.ts";
import { DecideRun } from "../decide-run.ts";
import { aPolicy, at } from "../fleet-builder.ts";

/** More than enough for a node that leaves, one that comes, and those between them. */
const passesMost = 8;

/** A few nodes, each pass of which may be the one after a late start, an outage or a hold. */
function anyFleet(seed: number): DecideRun {
  const rng = seededRng(seed);
  const upTo = (most: number): number => Math.floor(rng() * (most + 1));
  const pick = (...values: readonly number[]): number => values[upTo(values.length - 1)] ?? 0;
  const lifetimeHours = pick(2, 3, 6);
  const from = upTo(120);
  const window = {
    name: "some",
    kind: "Weekly",
    timeZone: "UTC",
    startMinute: from,
    days: ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"],
    endMinute: from + 60 + upTo(200),
  } as const;
  const windows: readonly Window[][] = [
    [],
    [{ ...window, type: "Allow" }],
    [{ ...window, type: "Deny" }],
  ];
  const count = pick(0, 1, 1, 2);
  return new DecideRun({
    policy: aPolicy({
      lifetime: {
        minMs: millis(0),
        maxMs: hours(lifetimeHours),
        reserveMs: minutes(pick(0, 10, 30)),
      },
      spacing: { mode: rng() < 0.5 ? "Late" : "Even", minMs: minutes(pick(1, 3, 5, 10, 15)) },
      windows: windows[upTo(2)] ?? [],
      budgets: count === 0 ? [] : [{ kind: "Nodes", scope: "Policy", nodes: { count } }],
    }),
    startAt: at("2026-11-20T00:00:00Z"),
    agesMs: Array.from({ length: 2 + upTo(4) }, () => upTo(minutes(lifetimeHours * 60 - 5))),
    drainMs: () => pick(20_000, 60_000, 180_000, 720_000),
    lagMs: pick(0, 900, 3500, 20_000, 70_000),
    replaces: true,
  });
}

/** Those of the first 600 in which two rules once exchanged their plans for ever. */
const onceRestless = [
  ...[32, 71, 79, 93, 130, 184, 197, 223, 241, 286],
  ...[315, 325, 527, 556, 568, 569, 577, 592, 596],
];

describe("the plan of any fleet", () => {
  const seeds = isLongRun ? Array.from({ length: 600 }, (_, at) => at + 1) : onceRestless;

  // Whoever reads an instant may rely on it, and every move is a write that starts the next pass.
  it.each(seeds)("comes to rest: seed %i", (seed) => {
    const run = anyFleet(seed);
    const rng = seededRng(-seed);
    const endAt = plus(run.now, hours(6));
    const outageAt = plus(run.now, minutes(Math.floor(rng() * 180)));
    const held = rng() < 0.4 ? `n${1 + Math.floor(rng() * 3)}` : undefined;
    let hasFailed = false;
    while (run.now < endAt) {
      if (held !== undefined) run.edit(held, { hold: true });
      expect(run.rest(passesMost), `passes at ${run.now}`).toBeLessThan(passesMost);
      if (!hasFailed && run.now >= outageAt) {
        hasFailed = true;
        run.nobodyLeads(minutes(Math.floor(rng() * 90)));
      }
      run.step(endAt);
    }
  });
});
