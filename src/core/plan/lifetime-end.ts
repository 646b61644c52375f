import { bornAt, type NodeFacts } from "../cluster/node.ts";
import { lifetimeLimit, type Policy } from "../policy/policy.ts";
import { type Instant, minus, plus } from "../time/time.ts";

/** When a policy's limit ends a machine, and by when its node has to leave. */
export interface LifetimeEnd {
  /** When `lifetime.max` is over. */
  readonly endsAt: Instant;
  /** `lifetime.reserve` before. */
  readonly deadlineAt: Instant;
}

/** Undefined if the policy has no limit, or the launch of the machine is unknown. */
export function lifetimeEnd(
  node: NodeFacts,
  policy: Pick<Policy, "lifetime">,
): LifetimeEnd | undefined {
  const born = bornAt(node);
  const limitMs = lifetimeLimit(node, policy);
  if (limitMs === undefined || born === undefined) return undefined;
  const endsAt = plus(born, limitMs);
  return { endsAt, deadlineAt: minus(endsAt, policy.lifetime.reserveMs) };
}
