import type { PodFacts } from "../cluster/pod.ts";
import {
  cloudDeadline,
  type Departure,
  type DrainCounts,
  isNoticed,
  mayBeIgnored,
} from "../departure/departure.ts";
import { drainBeganAt } from "../departure/ledger.ts";
import type { DrainPlan } from "../drain-plan/drain-plan.ts";
import type { DrainRule } from "../policy/policy.ts";
import { inEnglish } from "../reason/english.ts";
import { between, type Instant, later, type Millis, millis, plus, seconds } from "../time/time.ts";

/**
 * How long after the cordon a scheduler that has not seen it may still bind a pod to the node.
 */
export const bindingMs: Millis = seconds(2);

/**
 * The drain rule of one departure. A requested deadline replaces the policy's timeout, whether
 * longer or shorter; the policy still decides what happens when time is up. If the cloud takes the
 * machine without a deadline, there is no timeout: blocked pods are retried until the machine is
 * gone.
 */
export function drainRuleOf(
  departure: Departure,
  { rule, now }: { readonly rule: DrainRule; readonly now: Instant },
): DrainRule {
  const wanted = withPersonsTime(departure, { rule, now });
  return isTakenEventually(departure) && rule.onTimeout === "RollBack"
    ? { ...wanted, onTimeout: "Wait" }
    : wanted;
}

/** Whether the cloud takes the machine and does not say when. */
export function isTakenEventually(departure: Departure): boolean {
  const isNamed = cloudDeadline(departure) !== undefined;
  return isNoticed(departure) && !isNamed && !mayBeIgnored(departure.cause);
}

function withPersonsTime(
  { cause, deadlineAt, status }: Departure,
  { rule, now }: { readonly rule: DrainRule; readonly now: Instant },
): DrainRule {
  const beganAt = drainBeganAt(status) ?? now;
  return cause === "Manual" ? ruleWithin(rule, { beganAt, deadlineAt }) : rule;
}

/** The rule of a drain that a person wants to be over by an instant, unless that has passed. */
export function ruleWithin(
  rule: DrainRule,
  { beganAt, deadlineAt }: { readonly beganAt: Instant; readonly deadlineAt?: Instant | undefined },
): DrainRule {
  if (deadlineAt === undefined || deadlineAt <= beganAt) return rule;
  return { ...rule, timeoutMs: between(beganAt, deadlineAt) };
}

/**
 * How long to evict the pods of a machine that has already stopped, regardless of budgets.
 */
export const clearingMs: Millis = seconds(30);

/**
 * The deadline of a drain. If it has passed when the drain starts, or when it becomes known, the
 * drain gets `clearingMs`: the machine may still be there, and if not, its pods are needed
 * elsewhere.
 */
export function drainDeadline(
  deadlineAt: Instant | undefined,
  since: DrainSince,
): Instant | undefined {
  const fromAt = noticeKnownAt(since);
  return deadlineAt === undefined || deadlineAt > fromAt ? deadlineAt : plus(fromAt, clearingMs);
}

export interface DrainSince {
  readonly beganAt: Instant;
  readonly noticedAt?: Instant | undefined;
}

/**
 * Since when a drain has known its notice. The time before does not count for the budget's share.
 */
export function noticeKnownAt({ beganAt, noticedAt }: DrainSince): Instant {
  return later(beganAt, noticedAt ?? beganAt);
}

/**
 * For a resumed drain: the pods that were there when it started. Creation times have a resolution
 * of one second, so a pod created in the second of the start counts as created after it.
 */
export function thereBefore(pods: readonly PodFacts[], beganAt: Instant): readonly PodFacts[] {
  const secondAt = beganAt - (beganAt % seconds(1));
  return pods.filter(({ createdAt }) => createdAt === undefined || createdAt < secondAt);
}

/**
 * The rule for the deadline from `drainDeadline`: without a budget share if that is not the
 * announced one, see `clearingMs`.
 */
export function ruleUntil(
  deadlineAt: Instant | undefined,
  { rule, namedAt }: { readonly rule: DrainRule; readonly namedAt: Instant | undefined },
): DrainRule {
  return deadlineAt === namedAt ? rule : { ...rule, budgetShare: 0 };
}

/** What limits a drain. Its plan and its steps depend on it. */
export interface DrainTerms {
  readonly rule: DrainRule;
  /** When the machine may be gone, under a notice. */
  readonly deadlineAt: Instant | undefined;
  /** Since when the drain has known that deadline. */
  readonly knownAt: Instant;
}

/**
 * What limits the drain of a departure as it is now: a notice may have arrived since it began.
 */
export function drainTermsOf(
  departure: Departure,
  { rule, beganAt }: { readonly rule: DrainRule; readonly beganAt: Instant },
): DrainTerms {
  const since = { beganAt, noticedAt: departure.noticedAt };
  const namedAt = cloudDeadline(departure);
  const deadlineAt = drainDeadline(namedAt, since);
  const asked = drainRuleOf(departure, { rule, now: beganAt });
  return {
    rule: ruleUntil(deadlineAt, { rule: asked, namedAt }),
    ...{ deadlineAt, knownAt: noticeKnownAt(since) },
  };
}

/**
 * How long a pod took from its eviction until it was gone. `Killed`: it was still running at the
 * end of its grace period, so its time is unknown.
 */
export type TerminationTime = Millis | "Killed";

/** The termination time of one pod, by the uid of its controller. */
export interface Termination {
  readonly workload: string;
  readonly took: TerminationTime;
}

/** The known termination times of a workload's pods. */
export interface TerminationRecord {
  readonly longest: TerminationTime;
  /** How many pods have been observed. */
  readonly pods: number;
}

/** By the uid of the controller. */
export type TerminationRecords = ReadonlyMap<string, TerminationRecord>;

export function withTermination(
  record: TerminationRecord | undefined,
  took: TerminationTime,
): TerminationRecord {
  if (record === undefined) return { longest: took, pods: 1 };
  return { longest: longer(took, record.longest), pods: record.pods + 1 };
}

function longer(a: TerminationTime, b: TerminationTime): TerminationTime {
  return a === "Killed" || b === "Killed" ? "Killed" : millis(Math.max(a, b));
}

const leastSlackMs: Millis = seconds(3);

/**
 * The time that a pod of the workload is expected to need: the longest observed time, extended the
 * more the fewer pods were observed (fourfold after one pod, twofold after three), by at least 3 s.
 * Undefined if unknown.
 */
export function neededTime(record: TerminationRecord | undefined): Millis | undefined {
  if (record === undefined || record.longest === "Killed") return undefined;
  const { longest, pods } = record;
  return millis(longest + Math.max(leastSlackMs, Math.round((3 * longest) / pods)));
}

/**
 * The records for a drain: those of its workloads with what has just ended, and extended by pods
 * that have been `leaving` for longer than any before.
 */
export function currentRecords(
  known: TerminationRecords,
  about: {
    readonly workloads: readonly (string | undefined)[];
    readonly ended: readonly Termination[];
    readonly leaving: readonly Termination[];
  },
): TerminationRecords {
  const records = new Map<string, TerminationRecord>();
  for (const workload of about.workloads) {
    const record = workload === undefined ? undefined : known.get(workload);
    if (workload !== undefined && record !== undefined) records.set(workload, record);
  }
  for (const { workload, took } of about.ended) {
    records.set(workload, withTermination(records.get(workload) ?? known.get(workload), took));
  }
  for (const { workload, took } of about.leaving) {
    const record = records.get(workload);
    if (record === undefined) continue;
    records.set(workload, { ...record, longest: longer(record.longest, took) });
  }
  return records;
}

/** How many workloads are remembered, the most recent ones. */
const workloadsKept = 4096;

/**
 * Termination times over many drains, so that drains learn from each other. It is only an
 * optimization: without it, each pod is assumed to need its full grace period.
 */
export class TerminationMemory {
  readonly #records = new Map<string, TerminationRecord>();

  get records(): TerminationRecords {
    return this.#records;
  }

  remember({ workload, took }: Termination): void {
    const record = withTermination(this.#records.get(workload), took);
    // Moves it to the end: a Map keeps the order of insertion.
    this.#records.delete(workload);
    this.#records.set(workload, record);
    if (this.#records.size <= workloadsKept) return;
    const [oldest] = this.#records.keys();
    if (oldest !== undefined) this.#records.delete(oldest);
  }
}

export interface DrainHistory {
  /** The plan that the drain started or was resumed with. */
  readonly plan: DrainPlan;
  readonly startedAt: Instant;
  readonly endedAt: Instant;
  readonly counts: DrainCounts;
}

/**
 * Compares a drain with its plan, such as `3 pods in 8 s, planned within 62 s`; adds the pods whose
 * grace was cut, whether the plan predicted that, and the forced pods.
 */
export function drainAccount({ plan, startedAt, endedAt, counts }: DrainHistory): string {
  if (counts.total === 0) return inEnglish({ says: "drain.NoPods" });
  const ends = plan.pods
    .filter(({ action }) => action !== "Block")
    .map(({ startMs, graceSeconds }) => startMs + graceSeconds * 1000);
  const plannedMs = between(startedAt, plan.at) + Math.max(0, ...ends);
  const plannedCut = plan.pods.filter((pod) => pod.cut).length;
  return inEnglish({
    says: "drain.Account",
    pods: counts.total,
    tookSeconds: wholeSeconds(between(startedAt, endedAt)),
    plannedSeconds: wholeSeconds(plannedMs),
    ...cutOf(counts.cut, plannedCut),
    ...(counts.forced > 0 && { forced: counts.forced }),
    ...leftOf(counts),
  });
}

/** How many pods the summary of a drain names. */
const namedPods = 3;

function leftOf({ leftBehind: left = 0, notClean = [] }: DrainCounts) {
  if (left === 0) return {};
  const pods = notClean.filter(({ outcome }) => outcome === "LeftBehind").slice(0, namedPods);
  return { left, names: pods.map(({ namespace, name }) => `${namespace}/${name}`).join(" ") };
}

function cutOf(cut: number, plannedCut: number) {
  if (cut === plannedCut) return cut === 0 ? {} : { cutAsPlanned: cut };
  return cut === 0 ? { missedCut: plannedCut } : { cut, plannedCut };
}

function wholeSeconds(ms: number): number {
  return Math.round(ms / 1000);
}

/** What can go wrong for a pod in a drain that the audit can predict. */
export type Loss =
  /** It got less than its grace period. */
  | "Cut"
  /** It got its full grace period and was still running at the end of it. */
  | "OverGrace"
  /** Its disruption budget never allowed the eviction. */
  | "Blocked"
  /** Several budgets select it, so no eviction can succeed. */
  | "TwoBudgets";

/**
 * The rule of `lastcall audit` that predicts each loss, with its page `docs/audit/<rule>.md`. Core
 * does not import the rules: a test keeps the two in step.
 */
const rulesByLoss: Readonly<Record<Loss, string>> = {
  Cut: "grace-cut",
  OverGrace: "exec-sigterm-lost",
  Blocked: "pdb-blocks-forever",
  TwoBudgets: "two-pdbs",
};

export const losses = Object.keys(rulesByLoss) as readonly Loss[];

export function ruleOfLoss(loss: Loss): string {
  return rulesByLoss[loss];
}

/** A reference for the end of a sentence: `(audit rule grace-cut, …)`. */
export function ruleReference(rule: string): string {
  return `(audit rule ${rule}, docs/audit/${rule}.md)`;
}
