import {
  bornAt,
  holdOf,
  isKnownProviderId,
  type NodeFacts,
  rivalOf,
  zoneOf,
} from "../cluster/node.ts";
import { sliceOf } from "../cluster/slice.ts";
import { type DepartureIndex, keptInstant } from "../departure/decision.ts";
import { type Departure, isUnderWay, isVoluntary } from "../departure/departure.ts";
import { hasJustLeft, nodeRest, restsUntil } from "../departure/node-rest.ts";
import {
  type BadPolicy,
  defaultNodeSelector,
  lifetimeLimit,
  matchesNodeSelector,
  type Policy,
  selectPolicy,
} from "../policy/policy.ts";
import { isKarpenters } from "../policy/release-answer.ts";
import { inEnglish } from "../reason/english.ts";
import type { Reason } from "../reason/reason.ts";
import { markMeant } from "../time/named-time.ts";
import { earliest, formatInstant, type Instant, later, plus } from "../time/time.ts";
import type { Candidate } from "./fleet-plan.ts";
import { lifetimeEnd } from "./lifetime-end.ts";
import type { NotPlanned } from "./not-planned.ts";

export type Triage =
  | {
      readonly kind: "Candidate";
      readonly policy: Policy;
      readonly tiedWith: readonly string[];
      readonly candidate: Candidate;
    }
  | {
      readonly kind: "NotPlanned";
      /** The policy that selects the node, if there is one. */
      readonly policy: Policy | undefined;
      readonly tiedWith: readonly string[];
      readonly entry: NotPlanned;
      /** When a requested departure will start, if nobody holds it. */
      readonly requestedAt?: Instant | undefined;
    };

export interface TriageInput {
  readonly policies: readonly Policy[];
  readonly badPolicies: readonly BadPolicy[];
  readonly departures: DepartureIndex;
  readonly at: Instant;
}

type PlanRefusal = Pick<NotPlanned, "reason" | "detail" | "blockedBy">;

/** Decides whether a node gets a planned departure, by which policy, or why not. */
export function triage(node: NodeFacts, context: TriageInput): Triage {
  const choice = selectPolicy(node, context.policies);
  const policy = choice?.policy;
  const tiedWith = choice?.tiedWith ?? [];
  const departure = context.departures.of(node);
  const request = context.departures.requestOf(node);
  const former = context.departures.former.get(node.uid) ?? [];
  const leaving = leavingAlready(departure);
  const refused =
    leaving ?? refusal(node, policy, context.badPolicies) ?? resting(node, former, context.at);
  const born = bornAt(node);
  const end = policy && lifetimeEnd(node, policy);
  if (refused === undefined && policy && end && born !== undefined) {
    const { deadlineAt, endsAt } = end;
    const plannedAt = earliest(departure?.createdAt, request?.createdAt) ?? deadlineAt;
    const candidate: Candidate = {
      node,
      zone: zoneOf(node),
      bornAt: born,
      bornFrom: node.instanceBornAt === undefined ? "Node" : "Instance",
      earliestAt: earliestOf(node, later(context.at, plus(born, policy.lifetime.minMs))),
      ...{ deadlineAt, endsAt },
      rest: nodeRest(former),
      keptAt: keptInstant(departure, node),
      keptDeadlineAt: departure?.deadlineAt,
      plannedInTime: plannedAt <= deadlineAt,
      heldBy: departure?.status.phase === "Held" ? departure.status.reason : undefined,
      isHeld: departure?.status.phase === "Held" || departure?.isResting === true,
      isHeldByPerson: departure?.hold === true,
      waitsForBudget: isHeldBy(departure, "BudgetSpent"),
      waitsForOthers:
        departure?.status.phase !== "Held" ||
        isHeldBy(departure, "BudgetSpent") ||
        isHeldBy(departure, "WaveWait"),
    };
    const isFree = request === undefined || isTooLate(request, candidate, context.at);
    if (isFree) return { kind: "Candidate", policy, tiedWith, candidate };
  }
  const asked: PlanRefusal | undefined = request && { reason: "Requested", detail: request.name };
  const why: PlanRefusal = leaving ?? asked ?? refused ?? { reason: "NoLaunchTime" };
  const { reason, detail } = why;
  const blockedBy = refused?.blockedBy;
  const entry = { node, policy: policy?.name ?? null, reason, detail, blockedBy };
  const requestedAt = leaving === undefined ? startOf(request, context.at) : undefined;
  return { kind: "NotPlanned", policy, tiedWith, entry, requestedAt };
}

/**
 * Whether a person's request does not replace the plan, because the node might be lost: its instant
 * is past the deadline, or it has waited until then. A held request keeps the node like any other
 * hold by a person. If a request is due, an overdue node needs no plan, which would only wait in
 * the same way.
 */
function isTooLate(
  { hold, departAt, createdAt }: Departure,
  { deadlineAt, plannedInTime }: Candidate,
  at: Instant,
): boolean {
  const startAt = departAt ?? createdAt ?? at;
  if (hold || later(startAt, at) <= deadlineAt) return false;
  return startAt > at || plannedInTime;
}

function isHeldBy(departure: Departure | undefined, reason: Reason): boolean {
  return departure?.status.phase === "Held" && departure.status.reason === reason;
}

/**
 * The earliest start: the latest of now, launch time + min and the end of a hold. The deadline is
 * launch time + max - reserve. A hold can move the earliest start past the deadline; then the
 * deadline wins.
 */
function earliestOf(node: NodeFacts, grownAt: Instant): Instant {
  const hold = holdOf(node);
  return hold.kind === "Until" ? later(grownAt, hold.until) : grownAt;
}

/**
 * The start for the plan. A departure that waits for a budget stays at its planned instant, so that
 * it does not keep moving the others.
 */
function startOf(departure: Departure | undefined, at: Instant): Instant | undefined {
  if (departure === undefined || departure.hold) return undefined;
  return departure.departAt ?? departure.createdAt ?? at;
}

function leavingAlready(departure: Departure | undefined): PlanRefusal | undefined {
  if (departure === undefined) return undefined;
  if (!isVoluntary(departure.cause)) return { reason: "Noticed", detail: departure.name };
  if (departure.cause === "Manual") return { reason: "Requested", detail: departure.name };
  return isUnderWay(departure) ? { reason: "Started", detail: departure.name } : undefined;
}

function refusal(
  node: NodeFacts,
  policy: Policy | undefined,
  badPolicies: readonly BadPolicy[],
): PlanRefusal | undefined {
  for (const bad of badPolicies) {
    if (!mightOwn(node, { bad, policy })) continue;
    const detail = `${bad.name}: ${bad.problem}`;
    return { reason: "PolicyInvalid", detail, blockedBy: bad.name };
  }
  if (policy === undefined) return { reason: "NoPolicy" };
  if (node.deletionAt !== undefined) return { reason: "NodeTerminating" };
  const rival = rivalOf(node);
  if (rival !== undefined) return { reason: "LeftToOthers", detail: rival };
  if (policy.paused) return { reason: "PolicyPaused" };
  if (lifetimeLimit(node, policy) === undefined) {
    const { isPlatforms = false } = policy.lifetime;
    const detail = isPlatforms ? inEnglish({ says: "detail.NoPlatformLimit" }) : undefined;
    return { reason: "NoLifetimeLimit", detail };
  }
  const hold = holdOf(node);
  if (hold.kind === "Always") {
    return { reason: "OnHold", detail: hold.readable ? hold.mark : unreadable(node, hold.mark) };
  }
  const slice = policy.gates.gangWorkloads === "Hold" ? sliceOf(node) : undefined;
  if (slice !== undefined) return { reason: "GangWorkload", detail: slice };
  if (!node.providerID) return { reason: "NoProviderID" };
  if (!isKnownProviderId(node.providerID) && !isKarpenters(node)) {
    return { reason: "UnknownProvider", detail: node.providerID };
  }
  return bornAt(node) === undefined ? { reason: "NoLaunchTime" } : undefined;
}

function resting(
  node: NodeFacts,
  former: readonly Departure[],
  at: Instant,
): PlanRefusal | undefined {
  // A watch that lags shows a Node after it has gone with its machine.
  if (hasJustLeft(node, former, at)) return { reason: "NodeTerminating" };
  const until = restsUntil(node, former);
  if (until === undefined || until <= at) return undefined;
  return { reason: "MachineStayed", detail: formatInstant(until) };
}

function unreadable({ annotations }: NodeFacts, mark: string): string {
  const value = annotations[mark] ?? "";
  const about = { mark, value: JSON.stringify(value), meant: markMeant(value) };
  return inEnglish({ says: "limit.HoldUnreadable", ...about });
}

/**
 * Whether an unreadable policy might select the node. Fails closed, because that policy might
 * protect it: the node is certainly not its own only if its selector is known and does not match,
 * or its weight is known and lower.
 */
function mightOwn(
  node: NodeFacts,
  { bad, policy }: { readonly bad: BadPolicy; readonly policy: Policy | undefined },
): boolean {
  if (policy !== undefined && bad.weight !== undefined) {
    if (bad.weight < policy.weight) return false;
    if (bad.weight === policy.weight && bad.name > policy.name) return false;
  }
  if (bad.nodeSelector !== undefined) return matchesNodeSelector(node, bad.nodeSelector);
  return policy !== undefined || matchesNodeSelector(node, defaultNodeSelector);
}
