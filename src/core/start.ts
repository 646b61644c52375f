import { type BudgetLedger, budgetVerdict } from "./budget.ts";
import type { Departure } from "./departure.ts";
import { gateVerdict } from "./gate.ts";
import { departureAnnotation } from "./interruption.ts";
import type { NodeFacts } from "./node.ts";
import type { Policy } from "./policy.ts";
import type { Reason } from "./reason.ts";
import type { GateAnswer } from "./snapshot.ts";
import type { Instant } from "./time.ts";
import { type WaveStanding, waveVerdict } from "./wave.ts";

export interface StartQuestion {
  readonly departure: Departure;
  readonly node: NodeFacts;
  readonly policy: Policy;
  readonly ledger: BudgetLedger;
  readonly waves: WaveStanding | undefined;
  readonly gateAnswer: GateAnswer | undefined;
  readonly now: Instant;
}

export type StartVerdict =
  | { readonly kind: "Allowed"; readonly reason: Reason }
  | {
      readonly kind: "Held";
      readonly reason: Reason;
      readonly detail?: string | undefined;
      /** When it is worth asking again; absent where only a change can tell. */
      readonly retryAt?: Instant | undefined;
    };

/** What a deadline does not go past: a person's word, or others who have the node already. */
const unforced: ReadonlySet<Reason> = new Set([
  "HeldByPerson",
  "OnHold",
  "PolicyPaused",
  "LeftToOthers",
  "NodeTerminating",
]);

/**
 * Whether a planned departure whose instant has come may start. Windows, gates, waves and budgets hold
 * it back; its deadline forces it past them, and the reason says so. A node that was overdue from the
 * first is never forced: it would take all the others of its kind along.
 */
export function startVerdict(question: StartQuestion): StartVerdict {
  const held = heldBy(question);
  if (held === undefined) return { kind: "Allowed", reason: "Spaced" };
  const { departAt, deadlineAt } = question.departure;
  const overdue = departAt !== undefined && deadlineAt !== undefined && departAt > deadlineAt;
  const forced = deadlineAt !== undefined && question.now >= deadlineAt && !overdue;
  if (forced && !isFirm(held)) return { kind: "Allowed", reason: "DeadlineForces" };
  return held;
}

/** A hold that names an instant is gone past by the deadline, as the plan says; one for good is not. */
function isFirm({ reason, retryAt }: Extract<StartVerdict, { kind: "Held" }>): boolean {
  return unforced.has(reason) && !(reason === "OnHold" && retryAt !== undefined);
}

function heldBy(question: StartQuestion): Extract<StartVerdict, { kind: "Held" }> | undefined {
  const { departure, node, policy, ledger, waves, gateAnswer, now } = question;
  if (departure.hold) return { kind: "Held", reason: "HeldByPerson" };
  if (node.unschedulable && node.annotations[departureAnnotation] === undefined) {
    return { kind: "Held", reason: "CordonedByOthers" };
  }
  const gate = gateVerdict({ policy, node, answer: gateAnswer, now });
  if (gate.kind === "Held") return gate;
  const wave = waveVerdict(waves);
  if (wave.kind === "Held") return wave;
  const budget = budgetVerdict(ledger, { policy, node });
  return budget.kind === "Held" ? budget : undefined;
}
