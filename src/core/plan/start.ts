import type { NodeFacts } from "../cluster/node.ts";
import type { GateAnswer } from "../departure/decision.ts";
import type { Departure } from "../departure/departure.ts";
import {
  type BudgetUsage,
  budgetVerdict,
  type WaveStanding,
  waveVerdict,
} from "../limits/budget.ts";
import { type GateHold, gateHolds } from "../limits/gate.ts";
import { openHours } from "../limits/windows.ts";
import { departureAnnotation } from "../notice/interruption.ts";
import type { Policy } from "../policy/policy.ts";
import {
  type ReleasabilityQuestion,
  type ReleaseAnswer,
  type ReleaseVerdict,
  releaseVerdict,
} from "../policy/release-answer.ts";
import type { Reason } from "../reason/reason.ts";
import { type Instant, instant } from "../time/time.ts";
import type { PlanCandidates } from "./candidate.ts";
import type { PlannedDeparture, PlannedReason } from "./fleet-plan.ts";
import type { Job, Pace } from "./planned-departure.ts";

/** A departure whose time has come. It has not begun yet, and keeps its instant. */
export interface DueDeparture {
  readonly job: Job;
  readonly at: number;
  /** That of the plan that gave it the instant. */
  readonly reason: PlannedReason;
  /** Whether it came more than a moment ago. */
  readonly isLate: boolean;
}

export interface DueTime extends Pick<PlanCandidates, "at" | "policy"> {
  /** When the windows open next, or now. */
  readonly opensAt: number;
  readonly pace: Pace;
}

/**
 * Departures whose time has come keep it, unless a hold has put it off or the window has shut.
 * Those that wait for a budget stand in a queue, which nobody leaves or overtakes. Of those that
 * are late the oldest keeps its time, and those that something holds do until another has left:
 * whatever was missed, be it that a gate was shut or that nobody looked, is planned again, so that
 * it does not all leave at once.
 */
export function dueDepartures(jobs: readonly Job[], time: DueTime): readonly DueDeparture[] {
  const { at, opensAt, pace, policy } = time;
  const due: DueDeparture[] = [];
  for (const job of jobs) {
    const { keptAt, release, deadline, candidate } = job;
    if (keptAt === undefined || keptAt > at || release > at) continue;
    if (opensAt > at && opensAt <= deadline) continue;
    const isLate = at - keptAt > pace.lagMs && !candidate.waitsForBudget;
    due.push({ job, at: keptAt, reason: reasonOf(job, keptAt, policy), isLate });
  }
  const sorted = due.sort((a, b) => a.at - b.at || a.job.rank - b.job.rank);
  const leftAt = pace.leftAt ?? Number.NEGATIVE_INFINITY;
  const isQueue = sorted.some(waitsForBudget);
  const kept = sorted.filter(({ job, at: dueAt, reason, isLate }, place) => {
    const { isHeld, endsAt } = job.candidate;
    if (isLate) return leftAt <= dueAt && (place === 0 || isHeld);
    // Who was due already as another left late is put off once, and stays where that puts it; but
    // not past the end of its lifetime, which would make it overdue.
    const isLast = reason !== "Overdue" && endsAt <= at;
    return isQueue || pace.isOnTime || dueAt > leftAt || isLast;
  });
  return overdueInTurn(sorted, new Set(kept));
}

function waitsForBudget({ job }: DueDeparture): boolean {
  return job.candidate.waitsForBudget;
}

/** Of overdue nodes none keeps a time at which it would leave before one that is put off. */
function overdueInTurn(
  sorted: readonly DueDeparture[],
  kept: ReadonlySet<DueDeparture>,
): readonly DueDeparture[] {
  let isPutOff = false;
  return sorted.filter((one) => {
    if (one.reason !== "Overdue" || waitsForBudget(one)) return kept.has(one);
    isPutOff ||= !kept.has(one);
    return !isPutOff;
  });
}

/**
 * From when on the first of those that are due may begin where any of them waits for a budget: a
 * gap after the newest start, as far as the lifetimes of all of them allow. Undefined where nobody
 * waits. Instants are whole milliseconds.
 */
export function queueOpensAt(
  due: readonly DueDeparture[],
  { lastStart, gap }: { readonly lastStart: number; readonly gap: number },
): number | undefined {
  if (!due.some(waitsForBudget)) return undefined;
  const gaps = due
    .filter(({ reason }) => reason !== "Overdue")
    .map(({ job }, place) => (job.candidate.endsAt - lastStart) / (place + 1));
  return lastStart + Math.floor(Math.max(0, Math.min(gap, ...gaps)));
}

/**
 * The instants that others keep their gap from: they cannot be moved. Of departures that are late
 * only the newest counts, because how near these lie to each other is past mending.
 */
export function wallsOf(due: readonly DueDeparture[]): readonly number[] {
  const onTime = due.filter(({ isLate }) => !isLate);
  return (onTime.length > 0 ? onTime : due.slice(-1)).map(({ at }) => at);
}

/** The one that is late and begins now, where nothing holds it: those on time go before it. */
export function lateDeparture(due: readonly DueDeparture[]): DueDeparture | undefined {
  const [first] = due;
  const begins = due.every(({ isLate }) => isLate) && first?.job.candidate.isHeld === false;
  return begins ? first : undefined;
}

/** Past its deadline is what was overdue from the first or missed its time, or it had no choice. */
function reasonOf(
  { deadline, candidate }: Job,
  keptAt: number,
  { windows }: PlanCandidates["policy"],
): PlannedReason {
  const { plannedInTime, endsAt } = candidate;
  if (keptAt > deadline) return plannedInTime && keptAt <= endsAt ? "Missed" : "Overdue";
  if (keptAt < deadline) return "Spaced";
  const hours = openHours(windows, { startAt: instant(keptAt), endAt: instant(keptAt + 1) });
  return hours.spans.length === 0 ? "DeadlineBeatsWindow" : "Spaced";
}

export interface StartQuestion {
  readonly departure: Departure;
  /** Its place in the plan. */
  readonly planned: Pick<PlannedDeparture, "reason" | "deadlineAt" | "endsAt">;
  readonly node: NodeFacts;
  readonly policy: Policy;
  readonly ledger: BudgetUsage;
  readonly waves: WaveStanding | undefined;
  readonly gateAnswer: GateAnswer | undefined;
  readonly window: GateHold | undefined;
  readonly releaseAnswer: ReleaseAnswer | undefined;
  readonly now: Instant;
}

export type StartVerdict =
  | { readonly kind: "Allowed"; readonly reason: Reason }
  | GateHold
  /** Its cloud has not answered yet whether its machine can be released. */
  | { readonly kind: "NotAsked"; readonly mode: ReleasabilityQuestion["mode"] };

/**
 * What a deadline does not go past: a person's hold, others who have the node already, and a
 * machine that would still be there after its node was drained.
 */
const unforced: ReadonlySet<Reason> = new Set([
  "ReleaseImpossible",
  "CloudUnreachable",
  "HeldByPerson",
  "OnHold",
  "PolicyPaused",
  "LeftToOthers",
  "NodeTerminating",
]);

/**
 * Whether a planned departure whose instant has come may start. A machine that could not be
 * released holds it back, whatever else there is. Windows, gates, waves and budgets hold it back.
 * Its deadline forces it past all but the budgets, which have the reserve on top: what has been
 * held up together must not leave together. The end of its lifetime forces it past them as well,
 * and the reason says so. A node that was overdue from the first is never forced: it would take all
 * the others of its kind along.
 */
export function startVerdict(question: StartQuestion): StartVerdict {
  const holds = holdsOn(question);
  const standing = holds.find((held) => isFirm(held) || question.now < forcedAt(held, question));
  if (standing !== undefined) return standing;
  const release = releaseOf(question);
  if (release.kind !== "Allowed") return release;
  return { kind: "Allowed", reason: holds.length === 0 ? "Spaced" : "DeadlineForces" };
}

function releaseOf({ policy, node, releaseAnswer, now }: StartQuestion): ReleaseVerdict {
  return releaseVerdict({ policy, node, answer: releaseAnswer, at: now });
}

function forcedAt(held: GateHold, { planned }: StartQuestion): number {
  const { reason, deadlineAt, endsAt } = planned;
  if (reason === "Overdue") return Number.POSITIVE_INFINITY;
  return held.reason === "BudgetSpent" ? endsAt : deadlineAt;
}

/**
 * A hold that names an instant is gone past by the deadline, as the plan says; one for good is not.
 */
function isFirm({ reason, retryAt }: GateHold): boolean {
  return unforced.has(reason) && !(reason === "OnHold" && retryAt !== undefined);
}

/** The first of them is what is said. */
function holdsOn(question: StartQuestion): readonly GateHold[] {
  const { departure, node, policy, ledger, waves, gateAnswer, window, now } = question;
  const isForeign = node.unschedulable && node.annotations[departureAnnotation] === undefined;
  const release = releaseOf(question);
  const verdicts: readonly (GateHold | { readonly kind: "Allowed" })[] = [
    ...(departure.hold ? [{ kind: "Held", reason: "HeldByPerson" } as const] : []),
    ...(isForeign ? [{ kind: "Held", reason: "CordonedByOthers" } as const] : []),
    ...(release.kind === "Held" ? [release] : []),
    ...gateHolds({ policy, node, answer: gateAnswer, window, now }),
    waveVerdict(waves),
    budgetVerdict(ledger, { policy, node }),
  ];
  return verdicts.filter((verdict) => verdict.kind === "Held");
}
