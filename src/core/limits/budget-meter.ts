import type { Amount, Budget, Policy } from "../policy/policy.ts";
import { inEnglish } from "../reason/english.ts";
import { hours, type Millis } from "../time/time.ts";
import { amountOf, type WaveStanding } from "./budget.ts";

/** One limit of the forecast: at most `limit` starts, each of which counts for a while. */
export interface Meter {
  readonly policy: string;
  /** The zone that it counts; undefined for all zones. */
  readonly zone: string | undefined;
  /** Whether it counts the starts of other policies as well. */
  readonly wide: boolean;
  readonly limit: number;
  /** How many nodes a percentage is of; undefined if the limit is a count. */
  readonly percentOf: number | undefined;
  /** How long a start counts; undefined: the drain timeout of its policy. */
  readonly durationMs: Millis | undefined;
  /** For example `6 an hour`. */
  readonly title: string;
  /** When the starts so far stop counting: sorted, those before `head` have stopped. */
  readonly ends: number[];
  head: number;
  /** How many departures it has held back. */
  heldBack: number;
  /** Set if the meter represents waves, which have no limit. */
  readonly waves?: MeteredWaves | undefined;
}

interface MeteredWaves {
  /** The number of starts that fills each wave; the next start waits until all have ended. */
  readonly fullAt: readonly number[];
  /** When the starts before the current wave have ended. */
  opensAt: number;
}

/** A start, actual or intended. */
export interface MeteredStart {
  readonly policy: Policy;
  readonly zone: string;
  readonly at: number;
}

export interface MeteredFleet {
  readonly policy: Policy;
  readonly matched: number;
  readonly matchedByZone: ReadonlyMap<string, number>;
  readonly matchedInCluster: number;
  readonly waves?: WaveStanding | undefined;
}

/**
 * The meters of one policy's waves and budgets. A budget of scope Zone has one meter per zone.
 */
export function metersOf(fleet: MeteredFleet): readonly Meter[] {
  return [...metersOfBudgets(fleet), ...meterOfWaves(fleet)];
}

function metersOfBudgets(fleet: MeteredFleet): readonly Meter[] {
  return fleet.policy.budgets.flatMap((budget) => {
    if (budget.kind === "PerHour") {
      return [meter(fleet, { budget, limit: budget.perHour, percentOf: undefined })];
    }
    if (budget.scope === "Zone") {
      return [...fleet.matchedByZone].map(([zone, matched]) =>
        meter(fleet, { budget, zone, ...limitOf(budget.nodes, matched) }),
      );
    }
    const matched = budget.scope === "Cluster" ? fleet.matchedInCluster : fleet.matched;
    return [meter(fleet, { budget, ...limitOf(budget.nodes, matched) })];
  });
}

function limitOf(nodes: Amount, matched: number): Pick<Meter, "limit" | "percentOf"> {
  const percentOf = "count" in nodes ? undefined : matched;
  return { limit: amountOf(nodes, matched), percentOf };
}

/**
 * The meter of the waves. None if the waves have passed, or are halted, because it is unknown when
 * a person continues them.
 */
function meterOfWaves({ policy, matched, waves }: MeteredFleet): readonly Meter[] {
  if (policy.waves === undefined || waves?.state !== "UnderWay") return [];
  const { sizes } = policy.waves;
  let starts = waves.size - waves.succeeded;
  const fullAt = [starts];
  for (const size of sizes.slice(waves.wave)) {
    starts += amountOf(size, matched);
    fullAt.push(starts);
  }
  const names = sizes.map(amountText).join(", ");
  const title = inEnglish({ says: "limit.WaveSizes", names });
  const limit = Number.POSITIVE_INFINITY;
  const kind = { zone: undefined, wide: false, limit, percentOf: undefined, durationMs: undefined };
  const none = { ends: [], head: 0, heldBack: 0 };
  return [{ policy: policy.name, ...kind, title, ...none, waves: { fullAt, opensAt: 0 } }];
}

/** The earliest time from `at` on at which the meter allows a start. Called in order of time. */
export function capacityAt(meter: Meter, at: number): number {
  if (meter.waves !== undefined) return Math.max(at, waveOpensAt(meter.waves, meter.ends));
  while ((meter.ends[meter.head] ?? Number.POSITIVE_INFINITY) <= at) meter.head += 1;
  const running = meter.ends.length - meter.head;
  if (running < meter.limit) return at;
  return meter.ends[meter.head + running - meter.limit] ?? at;
}

function waveOpensAt({ fullAt, opensAt }: MeteredWaves, ends: readonly number[]): number {
  return fullAt.includes(ends.length) ? (ends.at(-1) ?? opensAt) : opensAt;
}

/** Whether the meter limits the starts of this policy in this zone. */
export function limits(meter: Meter, start: MeteredStart): boolean {
  return meter.policy === start.policy.name && (meter.zone ?? start.zone) === start.zone;
}

/** Whether a start of this policy in this zone counts. */
export function counts(meter: Meter, start: MeteredStart): boolean {
  return meter.wide || limits(meter, start);
}

/** Counts a start. */
export function record(meter: Meter, { policy, at }: MeteredStart): void {
  const end = at + durationOf(meter, policy);
  if (meter.waves !== undefined) meter.waves.opensAt = waveOpensAt(meter.waves, meter.ends);
  let place = meter.ends.length;
  while (place > meter.head && (meter.ends[place - 1] ?? 0) > end) place -= 1;
  meter.ends.splice(place, 0, end);
}

export function durationOf(meter: Meter, policy: Policy): Millis {
  return meter.durationMs ?? policy.drain.timeoutMs;
}

function meter(
  { policy }: MeteredFleet,
  of: Pick<Meter, "limit" | "percentOf"> & { readonly budget: Budget; readonly zone?: string },
): Meter {
  const { budget, limit, percentOf, zone } = of;
  return {
    ...{ policy: policy.name, zone, limit, percentOf, title: budgetTitle(budget) },
    wide: budget.kind === "Nodes" && budget.scope === "Cluster",
    durationMs: budget.kind === "PerHour" ? hours(1) : undefined,
    ...{ ends: [], head: 0, heldBack: 0 },
  };
}

/** For example `6 an hour`, `10 % of nodes at once in a zone`. */
export function budgetTitle(budget: Budget): string {
  if (budget.kind === "PerHour") {
    return inEnglish({ says: "limit.PerHour", perHour: budget.perHour });
  }
  const { nodes, scope } = budget;
  const place = { Policy: "", Zone: "InZone", Cluster: "InCluster" } as const;
  return "count" in nodes
    ? inEnglish({ says: `limit.Nodes${place[scope]}`, nodes: nodes.count })
    : inEnglish({ says: `limit.Percent${place[scope]}`, percent: nodes.percent });
}

function amountText(amount: Amount): string {
  return "count" in amount ? String(amount.count) : `${amount.percent} %`;
}
