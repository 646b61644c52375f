import type { NodeFacts } from "../cluster/node.ts";
import type { Departure } from "../departure/departure.ts";
import type { GateAnswer } from "../departure/snapshot.ts";
import { type BudgetUsage, budgetVerdict } from "../limits/budget.ts";
import { type GateHold, gateHolds } from "../limits/gate.ts";
import { type WaveStanding, waveVerdict } from "../limits/wave.ts";
import { departureAnnotation } from "../notice/interruption.ts";
import type { Policy } from "../policy/policy.ts";
import {
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
 * What a deadline does not go past: a person's word, others who have the node already, and a machine
 * that would still be there after its node was drained.
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
 * Whether a planned departure whose instant has come may start. A machine that could not be released holds
 * it back, whatever else there is. Windows, gates, waves and budgets hold
 * it back. Its deadline forces it past all but the budgets, which have the reserve on top: what has been
 * held up together must not leave together. The end of its lifetime forces it past them as well, and the
 * reason says so. A node that was overdue from the first is never forced: it would take all the others
 * of its kind along.
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

/** A hold that names an instant is gone past by the deadline, as the plan says; one for good is not. */
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
