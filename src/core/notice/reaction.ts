import type { NodeFacts } from "../cluster/node.ts";
import { cloudDeadline, type Departure, isNoticed, isVoluntary } from "../departure/departure.ts";
import { defaultPolicy, type NoticeReaction, type Policy } from "../policy/policy.ts";
import { selectPolicy } from "../policy/selector.ts";
import { hours, type Instant, type Millis, plus } from "../time/time.ts";
import { outlivedAt } from "./notice.ts";

/** A recommendation names no end, and its machine may run on for weeks. */
const recommendedMs = hours(1);

/**
 * The policy by which a departure is carried out: the one it names, else the one that its node
 * falls under, else the defaults. A notice comes from an agent that knows of no policy.
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
 * Whether a planned departure that is under way has lost its policy, and no other one has its node.
 * Who takes it up then knows no rules for it, and the defaults might release a machine that the
 * policy kept. A release that was asked for goes on.
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
 * What the policy says to do at a notice. A cause that no rule names drains: a notice fails
 * open to draining. A policy in dry run only says that there was one.
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

/** Whether the node leaves by this reaction, be it that its pods stay until they are gone. */
export function makesLeave(reaction: NoticeReaction): boolean {
  return reaction !== "Ignore" && reaction !== "Notify";
}

/**
 * Until when others may take the machine of a drained node that we do not release; then the node
 * is uncordoned. Undefined: the machine is ours to release, or the cloud's to take.
 */
export function awaitedUntil(departure: Departure, { instance }: Policy): Instant | undefined {
  if (instance.release !== "None" || isNoticed(departure)) return undefined;
  return drainedFor(departure, instance.awaitMachineMs);
}

/** Until when a release is tried again that failed for a reason that may pass. */
export function releaseTriedUntil(departure: Departure, { instance }: Policy): Instant | undefined {
  return drainedFor(departure, instance.awaitMachineMs);
}

function drainedFor({ status }: Departure, spanMs: Millis): Instant | undefined {
  const drained = status.timeline.findLast(({ step }) => step === "Releasing");
  return drained && plus(drained.at, spanMs);
}

/**
 * From when on a machine that the cloud has not taken will not be taken, and its node goes back to
 * work. Undefined: it goes at some time, as with a lifecycle hook.
 */
export function givenUpAt(departure: Departure): Instant | undefined {
  const { cause, noticedAt, status } = departure;
  const deadlineAt = cloudDeadline(departure);
  if (deadlineAt !== undefined) return outlivedAt({ cause, deadlineAt });
  if (cause !== "RebalanceRecommendation" || noticedAt === undefined) return undefined;
  // It may have waited for its turn for longer than that.
  return plus(status.startedAt ?? noticedAt, recommendedMs);
}
