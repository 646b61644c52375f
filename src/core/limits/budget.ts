import { type NodeFacts, rivalOf, zoneInProviderId, zoneOf } from "../cluster/node.ts";
import { indexDepartures, type Snapshot } from "../departure/decision.ts";
import {
  type Departure,
  isLive,
  isUnderWay,
  isVoluntary,
  mayBeIgnored,
} from "../departure/departure.ts";
import {
  type Amount,
  type Budget,
  type Policy,
  selectPolicy,
  type Waves,
} from "../policy/policy.ts";
import { inEnglish, type Sentence } from "../reason/english.ts";
import { hours, type Instant, plus } from "../time/time.ts";
import type { MissingMachine } from "./missing-machine.ts";
import { heirsOf } from "./policy-heir.ts";

/** The nodes that are out and the recent starts, counted once per pass. */
export interface BudgetUsage {
  readonly at: Instant;
  /** Nodes of any policy. */
  readonly cluster: NodeCount;
  readonly byPolicy: ReadonlyMap<string, NodeCount>;
  /** By policy and zone, see `zoneKey`. */
  readonly byZone: ReadonlyMap<string, NodeCount>;
  /** Starts of the last 60 minutes by policy, in order. */
  readonly starts: ReadonlyMap<string, readonly Instant[]>;
}

export interface NodeCount {
  /** The nodes that there should be, including those that are missing. */
  readonly matched: number;
  /** Names of the nodes that are unavailable, and the departures of those that are missing. */
  readonly out: ReadonlySet<string>;
  /** How many of those that are out are missing. */
  readonly missing: number;
}

export type BudgetVerdict =
  | { readonly kind: "Allowed" }
  | {
      readonly kind: "Held";
      readonly reason: "BudgetSpent";
      /** For example `2 of 2 nodes of the zone europe-west1-b are out`. */
      readonly detail: string;
      /**
       * When it certainly allows a start; absent if that depends on a change in the cluster.
       */
      readonly retryAt?: Instant | undefined;
    };

const hourMs = hours(1);

/** Resolves a count, or a percentage of the matched nodes, rounded down, at least 1. */
export function amountOf(amount: Amount, matched: number): number {
  if ("count" in amount) return amount.count;
  return Math.max(1, Math.floor((matched * amount.percent) / 100));
}

type Missing = ReadonlyMap<string, { readonly missing: readonly MissingMachine[] }>;

/**
 * Counts what budgets limit. A node is out if it is not Ready, cordoned by anyone, terminating,
 * under a notice that is more than advice, or departing by Lastcall or another tool. A policy's
 * departure under way counts although its node has been given to another policy or is gone, and so
 * does a released machine that is missing. One that the cloud took is no longer out, but a
 * percentage is of the nodes that there should be.
 */
export function readBudgets(
  snapshot: Pick<Snapshot, "departures" | "nodes" | "policies">,
  at: Instant,
  health: Missing = new Map(),
): BudgetUsage {
  const departures = indexDepartures(snapshot.departures, at);
  const counts = new Counts();
  const nodes = new Map<string, { readonly node: NodeFacts; readonly policy: string }>();
  const byPolicy = new Map<string, NodeFacts[]>();
  for (const node of snapshot.nodes) {
    const policy = selectPolicy(node, snapshot.policies)?.policy.name;
    if (policy === undefined) continue;
    nodes.set(node.uid, { node, policy });
    slot(byPolicy, policy, (): NodeFacts[] => []).push(node);
    const out = isOut(node, departures.of(node)) ? node.name : undefined;
    counts.add({ policy, zone: zoneOf(node), out });
  }
  for (const departure of snapshot.departures) {
    const { policy, node } = departure;
    if (policy === undefined || !isLive(departure) || !isUnderWay(departure)) continue;
    const there = nodes.get(node.uid);
    if (there?.policy === policy) continue;
    const zone = there === undefined ? zoneInProviderId(node) : zoneOf(there.node);
    const { policies } = snapshot;
    const counting = there ? [policy] : heirsOf(policy, { policies, nodes: byPolicy });
    for (const [index, name] of counting.entries()) {
      // In the count of the cluster its node is out already.
      const isCounted = there !== undefined || index > 0;
      counts.add({ policy: name, zone, out: node.name, isCounted });
    }
  }
  const counted = new Set<string>();
  for (const [policy, { missing }] of health) {
    for (const { departure, isReleased } of missing) {
      const zone = zoneInProviderId(departure.node);
      const out = isReleased ? `departure ${departure.name}` : undefined;
      // Several policies may have taken nodes of its own one over: the cluster lacks one machine.
      const isCounted = counted.has(departure.name);
      counts.add({ policy, zone, out, isCounted, isMissing: isReleased });
      counted.add(departure.name);
    }
  }
  return { at, ...counts, starts: recentStarts(snapshot.departures, at) };
}

/** The counts while they are being made. */
class Counts {
  readonly cluster = noNodes();
  readonly byPolicy = new Map<string, ReturnType<typeof noNodes>>();
  readonly byZone = new Map<string, ReturnType<typeof noNodes>>();

  add(one: {
    readonly policy: string;
    readonly zone: string;
    /** Undefined if it is not out. */
    readonly out: string | undefined;
    readonly isCounted?: boolean;
    readonly isMissing?: boolean;
  }): void {
    const { policy, zone, out, isCounted = false, isMissing = false } = one;
    const own = [
      slot(this.byPolicy, policy, noNodes),
      slot(this.byZone, zoneKey(policy, zone), noNodes),
    ];
    for (const count of isCounted ? own : [this.cluster, ...own]) {
      count.matched += 1;
      if (out !== undefined) count.out.add(out);
      if (isMissing) count.missing += 1;
    }
  }
}

function noNodes(): { matched: number; out: Set<string>; missing: number } {
  return { matched: 0, out: new Set(), missing: 0 };
}

/**
 * Whether the policy's budgets allow this node to start now. The node itself does not count as out.
 */
export function budgetVerdict(
  ledger: BudgetUsage,
  { policy, node }: { readonly policy: Policy; readonly node: NodeFacts },
): BudgetVerdict {
  for (const budget of policy.budgets) {
    const verdict =
      budget.kind === "PerHour"
        ? perHourVerdict(ledger, { policy, perHour: budget.perHour })
        : nodesVerdict(ledger, { policy, node, budget });
    if (verdict.kind === "Held") return verdict;
  }
  return { kind: "Allowed" };
}

/** The usage after one more start, for the next decision of the same pass. */
export function withStart(
  ledger: BudgetUsage,
  { policy, node }: { readonly policy: Policy; readonly node: NodeFacts },
): BudgetUsage {
  // A node without a policy is in no budget.
  if (!ledger.byPolicy.has(policy.name)) return ledger;
  const starts = new Map(ledger.starts);
  starts.set(policy.name, [...(starts.get(policy.name) ?? []), ledger.at]);
  const key = zoneKey(policy.name, zoneOf(node));
  return {
    ...ledger,
    cluster: withOut(ledger.cluster, node),
    byPolicy: new Map(ledger.byPolicy).set(
      policy.name,
      withOut(ledger.byPolicy.get(policy.name), node),
    ),
    byZone: new Map(ledger.byZone).set(key, withOut(ledger.byZone.get(key), node)),
    starts,
  };
}

function withOut(count: NodeCount | undefined, node: NodeFacts): NodeCount {
  const { matched = 1, out, missing = 0 } = count ?? {};
  return { matched, missing, out: new Set(out).add(node.name) };
}

function isOut(node: NodeFacts, departure: Departure | undefined): boolean {
  if (!node.ready || node.unschedulable || node.deletionAt !== undefined) return true;
  if (rivalOf(node) !== undefined) return true;
  if (departure === undefined) return false;
  return isUnderWay(departure) || !isVoluntary(departure.cause);
}

function recentStarts(
  departures: readonly Departure[],
  at: Instant,
): ReadonlyMap<string, readonly Instant[]> {
  const starts = new Map<string, Instant[]>();
  for (const { policy, status } of departures) {
    const { startedAt } = status;
    if (policy === undefined || startedAt === undefined) continue;
    // A start in the future was written by a clock ahead of ours, and counts as well.
    if (at - startedAt >= hourMs) continue;
    slot(starts, policy, (): Instant[] => []).push(startedAt);
  }
  for (const list of starts.values()) list.sort((a, b) => a - b);
  return starts;
}

function perHourVerdict(
  { starts }: BudgetUsage,
  { policy, perHour }: { readonly policy: Policy; readonly perHour: number },
): BudgetVerdict {
  const recent = starts.get(policy.name) ?? [];
  if (recent.length < perHour) return { kind: "Allowed" };
  const oldest = recent[recent.length - perHour];
  const detail = inEnglish({ says: "limit.HourSpent", departures: recent.length, perHour });
  const retryAt = oldest === undefined ? undefined : plus(oldest, hourMs);
  return { kind: "Held", reason: "BudgetSpent", detail, retryAt };
}

function nodesVerdict(
  ledger: BudgetUsage,
  ask: {
    readonly policy: Policy;
    readonly node: NodeFacts;
    readonly budget: Extract<Budget, { kind: "Nodes" }>;
  },
): BudgetVerdict {
  const { policy, node, budget } = ask;
  const count = headcount(ledger, ask);
  const limit = amountOf(budget.nodes, count?.matched ?? 0);
  const out = (count?.out.size ?? 0) - (count?.out.has(node.name) ? 1 : 0);
  if (out < limit) return { kind: "Allowed" };
  const where: Record<typeof budget.scope, Sentence> = {
    Policy: { says: "limit.ThePolicy", policy: policy.name },
    Zone: { says: "limit.TheZone", zone: zoneOf(node) },
    Cluster: { says: "limit.TheCluster" },
  };
  const missing = count?.missing ?? 0;
  const told = { nodes: out, where: where[budget.scope], most: limit };
  const detail = inEnglish(
    missing === out && missing > 0
      ? { says: "limit.NodesGone", ...told }
      : { says: "limit.NodesOut", ...told, missing: missing > 0 ? missing : undefined },
  );
  return { kind: "Held", reason: "BudgetSpent", detail };
}

function headcount(
  ledger: BudgetUsage,
  { policy, node, budget }: { policy: Policy; node: NodeFacts; budget: { scope: string } },
): NodeCount | undefined {
  if (budget.scope === "Cluster") return ledger.cluster;
  if (budget.scope === "Policy") return ledger.byPolicy.get(policy.name);
  return ledger.byZone.get(zoneKey(policy.name, zoneOf(node)));
}

/** Unambiguous, because policy names contain no space. */
function zoneKey(policy: string, zone: string): string {
  return `${policy} ${zone}`;
}

function slot<Value>(map: Map<string, Value>, key: string, make: () => Value): Value {
  const there = map.get(key);
  if (there !== undefined) return there;
  const made = make();
  map.set(key, made);
  return made;
}

/** The progress of one policy's waves. */
export interface WaveStanding {
  /** `Passed`: every wave has succeeded, and only budgets limit the rest. */
  readonly state: "UnderWay" | "Passed" | "Halted";
  /** The current wave, from 1 (the canary); the last one if all have passed. */
  readonly wave: number;
  readonly of: number;
  /** The size of the wave and the progress of its departures. */
  readonly size: number;
  readonly succeeded: number;
  readonly underWay: number;
  /** The newest failed departure, if the waves are halted. */
  readonly haltedBy?: { readonly departure: string; readonly outcome: string } | undefined;
}

export type WaveVerdict =
  | { readonly kind: "Allowed" }
  | {
      readonly kind: "Held";
      readonly reason: "WaveWait" | "WaveHalted";
      readonly detail: string;
    };

export interface WaveQuestion {
  readonly policy: Policy;
  /** The nodes of the policy, for sizes in percent. */
  readonly matched: number;
  readonly departures: readonly Departure[];
}

/**
 * The progress of a policy's waves, derived from the existing Departures; undefined if it has no
 * waves. A wave ends when as many departures as its size have succeeded; a failed one halts all
 * waves. Ended Departures are kept for three days, so after three days without any it starts with
 * the canary again.
 */
export function waveStanding({
  policy,
  matched,
  departures,
}: WaveQuestion): WaveStanding | undefined {
  const { waves } = policy;
  if (waves === undefined) return undefined;
  const own = departures.filter((one) => one.policy === policy.name && hasWaves(one));
  const ended = own.filter((one) => countsFor(one, waves));
  const done = ended.filter(hasSucceeded).length;
  const failed = ended.filter(endedBadly).sort(newestFirst)[0];
  const counted = {
    ...waveAt(waves, { done, matched }),
    of: waves.sizes.length,
    underWay: own.filter((one) => isLive(one) && isUnderWay(one)).length,
  };
  if (failed === undefined) return counted;
  const haltedBy = { departure: failed.name, outcome: failed.status.outcome ?? "" };
  return { ...counted, state: "Halted", haltedBy };
}

/** Whether the waves allow one more departure to start. */
export function waveVerdict(standing: WaveStanding | undefined): WaveVerdict {
  if (standing === undefined || standing.state === "Passed") return { kind: "Allowed" };
  const detail = inEnglish(explainWaves(standing));
  if (standing.state === "Halted") return { kind: "Held", reason: "WaveHalted", detail };
  const { succeeded: done, underWay, size } = standing;
  if (done + underWay < size) return { kind: "Allowed" };
  return { kind: "Held", reason: "WaveWait", detail };
}

/** The progress: `wave 1 of 3: 0 of 1 has succeeded, 1 is under way`. */
export function explainWaves(standing: WaveStanding): Sentence {
  const { state, wave, of: waves, size, succeeded, underWay, haltedBy } = standing;
  if (state === "Passed") {
    return waves === 0 ? { says: "limit.NoWave" } : { says: "limit.WavesPassed", waves };
  }
  if (haltedBy !== undefined) return { says: "limit.WaveHalted", wave, waves, ...haltedBy };
  return { says: "limit.WaveGoing", wave, waves, size, succeeded, underWay };
}

function waveAt(
  { sizes }: Waves,
  { done, matched }: { readonly done: number; readonly matched: number },
): Pick<WaveStanding, "state" | "wave" | "size" | "succeeded"> {
  let before = 0;
  let size = 0;
  for (const [index, amount] of sizes.entries()) {
    size = amountOf(amount, matched);
    if (done < before + size) {
      return { state: "UnderWay", wave: index + 1, size, succeeded: done - before };
    }
    before += size;
  }
  return { state: "Passed", wave: sizes.length, size, succeeded: size };
}

/** Whether waves apply. Advisory departures wait for their wave and count in it. */
function hasWaves({ cause }: Departure): boolean {
  return isVoluntary(cause) || mayBeIgnored(cause);
}

function countsFor({ status }: Departure, { restartedAt }: Waves): boolean {
  if (status.phase !== "Ended" || status.startedAt === undefined) return false;
  return restartedAt === undefined || (status.endedAt ?? restartedAt) > restartedAt;
}

/** Whether a departure succeeded. Deletions that the policy allows are no failure. */
function hasSucceeded({ status }: Departure): boolean {
  if (status.outcome === "Planned") return true;
  return status.outcome === "Forced" && (status.drain?.left ?? 0) === 0;
}

/** Whether a departure failed. Interruptions and cancellations are no failures. */
function endedBadly({ status }: Departure): boolean {
  if (status.outcome === "RolledBack" || status.outcome === "Failed") return true;
  return status.outcome === "Forced" && (status.drain?.left ?? 0) > 0;
}

function newestFirst(a: Departure, b: Departure): number {
  return (b.status.endedAt ?? 0) - (a.status.endedAt ?? 0) || (a.name < b.name ? -1 : 1);
}
