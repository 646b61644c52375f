import { amountOf } from "../core/limits/budget.ts";
import type { PlannedDeparture, PolicyPlan } from "../core/plan/fleet-plan.ts";
import { type Instant, type Millis, plus } from "../core/time/time.ts";

/** A wave that is still to come, or is in progress. */
export interface WaveSpan {
  /** From 1, which is the canary. */
  readonly wave: number;
  readonly of: number;
  /** From its first start until its last drain may be over. */
  readonly startAt: Instant;
  readonly endAt: Instant;
}

export interface PlannedWaves {
  readonly spans: readonly WaveSpan[];
  /** By the uid of a node; those that leave after the last wave have none. */
  readonly waveOf: ReadonlyMap<string, number>;
}

/** The wave of each departure of a plan, if all waves before it succeed. */
export function plannedWaves({ policy, waves, matched, departures }: PolicyPlan): PlannedWaves {
  const spans: WaveSpan[] = [];
  const waveOf = new Map<string, number>();
  if (waves === undefined || waves.state === "Passed") return { spans, waveOf };
  const sizes = policy.waves?.sizes ?? [];
  const left = departures.toSorted((a, b) => startOf(a) - startOf(b));
  let next = 0;
  for (let wave = waves.wave; wave <= sizes.length; wave += 1) {
    const amount = sizes[wave - 1];
    if (amount === undefined) break;
    const isCurrent = wave === waves.wave;
    const begun = isCurrent ? waves.leftWell + waves.underWay : 0;
    const size = Math.max(0, amountOf(amount, matched) - begun);
    const members = left.slice(next, next + size);
    next += size;
    for (const { node } of members) waveOf.set(node.uid, wave);
    const span = spanOf(members, policy.drain.timeoutMs);
    if (span !== undefined) spans.push({ wave, of: sizes.length, ...span });
  }
  return { spans, waveOf };
}

function startOf({ heldBackTo, departAt }: PlannedDeparture): Instant {
  return heldBackTo ?? departAt;
}

function spanOf(members: readonly PlannedDeparture[], drainMs: Millis) {
  const [first, last] = [members[0], members.at(-1)];
  if (first === undefined || last === undefined) return undefined;
  return { startAt: startOf(first), endAt: plus(startOf(last), drainMs) };
}
