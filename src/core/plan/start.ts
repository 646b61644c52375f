import type { NodeFacts } from "../cluster/node.ts";
import type { GateAnswer } from "../departure/decision.ts";
import type { Departure } from "../departure/departure.ts";
import {
  type BudgetUsage,
  budgetVerdict,
  type WaveStanding,
  waveVerdict,
} from "../limits/budget.ts";
import { type GateHold, gateHolds, wereAsked } from "../limits/gate.ts";
import { departureAnnotation } from "../notice/interruption.ts";
import type { Policy } from "../policy/policy.ts";
import {
  isReleaseReason,
  type ReleasabilityQuestion,
  type ReleaseAnswer,
  type ReleaseVerdict,
  releaseVerdict,
} from "../policy/release-answer.ts";
import type { Reason } from "../reason/reason.ts";
import type { Instant } from "../time/time.ts";
import type { PlannedDeparture } from "./fleet-plan.ts";

export interface StartQuestion {
  readonly departure: Departure;
  /** Its entry in the plan. */
  readonly planned: Pick<PlannedDeparture, "reason" | "deadlineAt" | "overridesBudgetAt">;
  readonly node: NodeFacts;
  readonly policy: Policy;
  readonly ledger: BudgetUsage;
  readonly waves: WaveStanding | undefined;
  readonly gateAnswer: GateAnswer | undefined;
  readonly window: GateHold | undefined;
  readonly releaseAnswer: ReleaseAnswer | undefined;
  /** What holds all voluntary departures of the policy. */
  readonly unhealthy?: GateHold | undefined;
  /** The drains that it has to wait for. */
  readonly conflict?: GateHold | undefined;
  readonly now: Instant;
}

export type StartVerdict =
  | { readonly kind: "Allowed"; readonly reason: Reason }
  | GateHold
  /** The cloud has not answered yet whether the machine can be released. */
  | { readonly kind: "NotAsked"; readonly mode: ReleasabilityQuestion["mode"] };

/**
 * Holds that a deadline does not override: those of a person or of another owner of the node, of a
 * workload on several nodes, an unhealthy fleet, and a machine that would still exist after the
 * drain.
 */
const unforced: ReadonlySet<Reason> = new Set([
  "ReleaseImpossible",
  "CloudUnreachable",
  // At its deadline as well, the other pods would be evicted for nothing. A notice drains them.
  "DrainImpossible",
  "FleetUnhealthy",
  "HeldByPerson",
  "OnHold",
  "PolicyPaused",
  // The deadlines of its nodes would end the workload once for each of them.
  "GangWorkload",
  "LeftToOthers",
  "NodeTerminating",
]);

/**
 * Whether a planned departure that is due may start. A machine that could not be released always
 * holds it back. Windows, gates, waves and budgets hold it back as well. Its deadline overrides all
 * of these except budgets, which may use the reserve too: departures that were held up together
 * must not leave together. The end of its lifetime also overrides budgets, or an earlier instant if
 * several wait for it, and the reason records that. A node that was overdue when first planned is
 * never forced: all others of its kind would be forced with it.
 */
export function startVerdict(question: StartQuestion): StartVerdict {
  const [standing] = standingHolds(question);
  if (standing !== undefined) return standing;
  const release = releaseOf(question);
  if (release.kind !== "Allowed") return release;
  const isForced = holdsOn(question).length > 0;
  return { kind: "Allowed", reason: isForced ? "DeadlineForces" : "Spaced" };
}

function releaseOf({ policy, node, releaseAnswer, now }: StartQuestion): ReleaseVerdict {
  return releaseVerdict({ policy, node, answer: releaseAnswer, at: now });
}

function forcedAt(held: GateHold, { planned }: StartQuestion): number {
  const { reason, deadlineAt, overridesBudgetAt } = planned;
  if (reason === "Overdue") return Number.POSITIVE_INFINITY;
  return held.reason === "BudgetSpent" ? overridesBudgetAt : deadlineAt;
}

/**
 * Whether the hold that the ledger records is over; one that nobody has asked about again is not.
 */
export function isHoldOver(question: StartQuestion): boolean {
  const { departure, policy, node, gateAnswer: answer } = question;
  const { reason } = departure.status;
  if (isReleaseReason(reason) && releaseOf(question).kind === "NotAsked") return false;
  if (!wereAsked({ policy, node, answer })) return false;
  return !standingHolds(question).some((held) => held.reason === reason);
}

/** The holds that no deadline overrides now. */
function standingHolds(question: StartQuestion): readonly GateHold[] {
  const { now } = question;
  return holdsOn(question).filter((held) => isFirm(held) || now < forcedAt(held, question));
}

/**
 * Whether a deadline cannot override the hold. As in the plan, it overrides a hold that ends at an
 * instant, but not a permanent one.
 */
export function isFirm({ reason, retryAt, isUnasked = false }: GateHold): boolean {
  return isUnasked || (unforced.has(reason) && !(reason === "OnHold" && retryAt !== undefined));
}

/** All holds; the first one is reported. */
function holdsOn(question: StartQuestion): readonly GateHold[] {
  const { departure, node, policy, ledger, waves, gateAnswer, window, now } = question;
  const isForeign = node.unschedulable && node.annotations[departureAnnotation] === undefined;
  const release = releaseOf(question);
  const verdicts: readonly (GateHold | { readonly kind: "Allowed" })[] = [
    ...(departure.hold ? [{ kind: "Held", reason: "HeldByPerson" } as const] : []),
    ...(isForeign ? [{ kind: "Held", reason: "CordonedByOthers" } as const] : []),
    ...(release.kind === "Held" ? [release] : []),
    ...(question.unhealthy === undefined ? [] : [question.unhealthy]),
    ...gateHolds({ policy, node, answer: gateAnswer, window, now }),
    waveVerdict(waves),
    budgetVerdict(ledger, { policy, node }),
    ...(question.conflict === undefined ? [] : [question.conflict]),
  ];
  return verdicts.filter((verdict) => verdict.kind === "Held");
}
