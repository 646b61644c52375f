import { type Departure, isVoluntary } from "./departure.ts";
import type { NodeFacts } from "./node.ts";
import type { NoticeReaction, Policy } from "./policy.ts";
import { defaultPolicy } from "./policy-default.ts";
import { selectPolicy } from "./selector.ts";

/**
 * The policy by which a departure is carried out: the one it names, else the one that its node
 * falls under, else the defaults. A notice comes from an agent that knows of no policy.
 */
export function policyFor(
  departure: Departure,
  node: NodeFacts | undefined,
  policies: readonly Policy[],
): Policy {
  const named = policies.find((policy) => policy.name === departure.policy);
  if (named !== undefined) return named;
  return (node && selectPolicy(node, policies)?.policy) ?? defaultPolicy;
}

/**
 * What the policy says to do at the cloud's word. A word that no rule names drains: a notice fails
 * open to draining.
 */
export function reactionTo(departure: Pick<Departure, "cause">, policy: Policy): NoticeReaction {
  if (isVoluntary(departure.cause)) return "Drain";
  switch (departure.cause) {
    case "SpotInterruption":
      return policy.onNotice.spotInterruption;
    case "RebalanceRecommendation":
      return policy.onNotice.rebalance;
    case "ScheduledMaintenance":
      return policy.onNotice.maintenance;
    default:
      return "Drain";
  }
}
