import type { NodeFacts } from "../cluster/node.ts";
import { cloudDeadline, type Departure, isNoticed, isVoluntary } from "../departure/departure.ts";
import { defaultPolicy, type NoticeReaction, type Policy, selectPolicy } from "../policy/policy.ts";
import { hours, type Instant, type Millis, plus } from "../time/time.ts";
import { outlivedAt } from "./notice.ts";

/** How long a recommendation counts: it has no end, and the machine may run for weeks. */
const recommendedMs = hours(1);

/**
 * The policy of a departure: the one it names, otherwise the one that selects its node, otherwise
 * the defaults. Agents do not know policies, so their departures name none.
 */
export function policyFor(
  departure: Departure,
  node: NodeFacts | undefined,
  policies: readonly Policy[],
): Policy {
  const name = departure.policy ?? departure.status.policy;
  const named = policies.find((policy) => policy.name === name);
  if (named !== undefined) return named;
  return (node && selectPolicy(node, policies)?.policy) ?? defaultPolicy;
}

/**
 * Whether the policy of a planned departure under way is gone and no other one selects its node. It
 * then ends, because the defaults might release a machine that the policy kept. A requested release
 * continues.
 */
export function hasLostPolicy(
  departure: Departure,
  node: NodeFacts | undefined,
  policies: readonly Policy[],
): boolean {
  const { cause, status } = departure;
  if (cause !== "Planned" || isNoticed(departure)) return false;
  if (status.phase === "RollingBack" || status.machine !== undefined) return false;
  return policyFor(departure, node, policies) === defaultPolicy;
}

/**
 * The policy's reaction to a notice. A cause without a rule drains, since notices fail open to
 * draining. A policy in dry run only notifies.
 */
export function reactionTo(departure: Pick<Departure, "cause">, policy: Policy): NoticeReaction {
  if (isVoluntary(departure.cause)) return "Drain";
  if (policy.dryRun) return "Notify";
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

/** Whether the node departs by this reaction, even if its pods are not evicted. */
export function makesLeave(reaction: NoticeReaction): boolean {
  return reaction !== "Ignore" && reaction !== "Notify";
}

/**
 * How long a drained node waits for others to take its machine before it is uncordoned. Undefined
 * if we release the machine, or the cloud takes it.
 */
export function awaitedUntil(departure: Departure, { instance }: Policy): Instant | undefined {
  if (instance.release !== "None" || isNoticed(departure)) return undefined;
  return drainedFor(departure, instance.awaitMachineMs);
}

/** How long a release is retried after retryable errors. */
export function releaseTriedUntil(departure: Departure, { instance }: Policy): Instant | undefined {
  return drainedFor(departure, instance.awaitMachineMs);
}

function drainedFor({ status }: Departure, spanMs: Millis): Instant | undefined {
  const drained = status.timeline.findLast(({ step }) => step === "Releasing");
  return drained && plus(drained.at, spanMs);
}

/**
 * When to stop waiting for the cloud to take a machine and uncordon its node. Undefined: without
 * limit, as with a lifecycle hook.
 */
export function givenUpAt(departure: Departure): Instant | undefined {
  const { cause, noticedAt, status } = departure;
  const deadlineAt = cloudDeadline(departure);
  if (deadlineAt !== undefined) return outlivedAt({ cause, deadlineAt });
  if (cause !== "RebalanceRecommendation" || noticedAt === undefined) return undefined;
  // It may have waited longer than that before it started.
  return plus(status.startedAt ?? noticedAt, recommendedMs);
}
