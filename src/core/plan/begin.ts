import type { NodeFacts } from "../cluster/node.ts";
import { because, type Decision } from "../departure/decision.ts";
import type { Departure } from "../departure/departure.ts";
import { withStart } from "../limits/budget.ts";
import type { Policy } from "../policy/policy.ts";
import type { ReleasabilityQuestion } from "../policy/release-answer.ts";
import type { Reason } from "../reason/reason.ts";
import type { Pass } from "./pass.ts";

interface Start {
  readonly departure: Departure;
  readonly reason: Reason;
  readonly policy: Policy;
  readonly node: NodeFacts;
}

/** Starts a departure and counts it in the budgets, even if it waits for no budget itself. */
export function begin({ departure, reason, policy, node }: Start, pass: Pass): Decision {
  pass.begun.add(policy.name);
  pass.leaving.add(node.uid);
  pass.ledger = withStart(pass.ledger, { policy, node });
  return { kind: "Begin", departure, event: "Due", ...because(reason, departure) };
}

/** Asks the cloud about the machine; nothing is decided about the node until the answer arrives. */
export function ask(
  node: NodeFacts,
  { mode }: Pick<ReleasabilityQuestion, "mode">,
  pass: Pass,
): Decision[] {
  pass.asks.push({ node, mode });
  return [];
}
