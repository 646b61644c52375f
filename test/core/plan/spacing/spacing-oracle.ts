/**
 * An oracle that shares nothing with the planner: it tries everything. Time is a small grid of
 * whole numbers, a job is the list of instants at which it may start, and a schedule adds jobs in
 * order of time, so trying every set of scheduled jobs covers every order.
 */
export type Choices = readonly (readonly number[])[];

/** Whether every job can have one of its instants with `gap` between any two. */
export function canKeepGap(choices: Choices, gap: number): boolean {
  const everyone = (1 << choices.length) - 1;
  // The earliest possible last start of exactly these jobs; a later one is never
  // better.
  const lastStart = new Float64Array(everyone + 1).fill(Number.POSITIVE_INFINITY);
  lastStart[0] = Number.NEGATIVE_INFINITY;
  for (let gone = 0; gone < everyone; gone += 1) {
    const last = lastStart[gone] ?? Number.POSITIVE_INFINITY;
    if (last === Number.POSITIVE_INFINITY) continue;
    choices.forEach((instants, job) => {
      if (gone & (1 << job)) return;
      const start = instants.find((at) => at >= last + gap);
      const then = gone | (1 << job);
      if (start !== undefined) lastStart[then] = Math.min(lastStart[then] ?? start, start);
    });
  }
  return (lastStart[everyone] ?? Number.POSITIVE_INFINITY) < Number.POSITIVE_INFINITY;
}

/** The largest whole gap that can be kept, found by trying one after another. */
export function widestGap(choices: Choices): number {
  let gap = 0;
  while (canKeepGap(choices, gap + 1)) gap += 1;
  return gap;
}

/**
 * The largest sum of instants with `gap` between any two; -Infinity if the gap cannot be kept.
 */
export function largestSum(choices: Choices, gap: number): number {
  const everyone = (1 << choices.length) - 1;
  const known = new Map<number, number>();
  const best = (gone: number, from: number): number => {
    if (gone === everyone) return 0;
    const key = gone * 4096 + Math.max(from, -1) + 1;
    const before = known.get(key);
    if (before !== undefined) return before;
    let most = Number.NEGATIVE_INFINITY;
    choices.forEach((instants, job) => {
      if (gone & (1 << job)) return;
      for (const at of instants) {
        if (at >= from) most = Math.max(most, at + best(gone | (1 << job), at + gap));
      }
    });
    known.set(key, most);
    return most;
  };
  return best(0, 0);
}
