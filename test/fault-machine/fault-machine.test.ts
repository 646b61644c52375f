import { afterAll, describe, expect, it } from "vitest";
import { isLongRun } from "../support/long-run.ts";
import { openCheckers } from "./corpus.ts";
import { drawWorld } from "./draw-world.ts";
import { runWorld } from "./run-world.ts";
import { describeViolation } from "./story.ts";

/** More of them: `npm run sim:soak`. These four have the most kinds of faults for their time. */
const seeds = isLongRun ? Array.from({ length: 12 }, (_, index) => index + 1) : [3, 5, 7, 9];

const runs = new Map<number, ReturnType<typeof runWorld>>();

/** The first run of a seed. */
function runOf(seed: number): ReturnType<typeof runWorld> {
  const run = runs.get(seed) ?? runWorld(drawWorld(seed), { withDigest: true });
  runs.set(seed, run);
  return run;
}

describe("a world of faults", () => {
  const open = openCheckers();
  const sums = { seeds: 0, departures: 0, nodeHours: 0, faults: 0, violations: 0 };

  afterAll(() => {
    const { seeds: ran, departures, nodeHours, faults, violations } = sums;
    console.log(
      `${ran} seeds, ${departures} departures, ${Math.round(nodeHours)} node-hours, ${faults} faults, ${violations} known violations`,
    );
  });

  it.each(seeds)(
    "breaks no rule that is not known to be broken (seed %i)",
    async (seed) => {
      const { violations, departures, nodeHours } = await runOf(seed);
      sums.seeds += 1;
      sums.departures += departures;
      sums.nodeHours += nodeHours;
      sums.faults += drawWorld(seed).faults.length;
      sums.violations += violations.length;
      const unknown = violations.filter(({ checker }) => !open.has(checker));
      expect(unknown.map(describeViolation)).toEqual([]);
    },
    120_000,
  );

  it("is the same to the last byte each time that it runs, and another one is not", async () => {
    const first = await runOf(7);
    const again = await runWorld(drawWorld(7), { withDigest: true });
    const other = await runWorld({ ...drawWorld(7), seed: 8 }, { withDigest: true });
    expect(again.digest).toBe(first.digest);
    expect(other.digest).not.toBe(first.digest);
    expect(first.events).toBeGreaterThan(1000);
  }, 120_000);
});
