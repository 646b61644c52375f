import { compareNames } from "../cluster/name-order.ts";
import { holdOf, type NodeFacts } from "../cluster/node.ts";
import {
  type Departure,
  isLive,
  isNoticed,
  isUnderWay,
  policyNameOf,
} from "../departure/departure.ts";
import type { Saying, Sentence } from "../reason/english.ts";
import { firstNames } from "../reason/first-names.ts";
import type { Reason } from "../reason/reason.ts";
import { earliest, type Instant } from "../time/time.ts";
import { areWavesHalted } from "./explain-forecast.ts";
import type { FleetPlan, PlannedDeparture, PolicyPlan } from "./fleet-plan.ts";
import type { NotPlanned } from "./not-planned.ts";
import { blockedNodes, isInfeasible, policyStanding } from "./policy-standing.ts";
import { asTheyStand } from "./present-hold.ts";

/** `Bad`: a person has to look. `Note`: not as usual, but as somebody wanted it. */
export type HeadlineTone = "Good" | "Note" | "Bad";

export type HeadlineSubject = "Policy" | "Next" | "Leaving" | "Held" | "Controller" | "Agents";

/** One line of the headline. */
export interface HeadlineLine {
  readonly subject: HeadlineSubject;
  /** The policy, if it is about one. */
  readonly policy: string | null;
  readonly tone: HeadlineTone;
  /** Without the period. */
  readonly says: Saying;
  /** Why due departures of the policy do not start, the most frequent reason first. */
  readonly waiting: readonly WaitingCount[];
}

export interface WaitingCount {
  readonly reason: Reason;
  readonly departures: number;
}

/** Whether anybody acts on the plan, as far as the caller may read it. */
export interface OperationStanding {
  readonly controller: ControllerStanding;
  readonly agents: AgentStanding;
}

export type ControllerStanding =
  /** `holder`: as in its Lease. */
  | { readonly kind: "Leads"; readonly holder: string }
  /** The Lease has expired: the controller that held it has stopped or cannot write. */
  | { readonly kind: "Expired"; readonly holder: string; readonly renewedAt: Instant | null }
  /** Nobody holds a Lease. */
  | { readonly kind: "None" }
  | { readonly kind: "Unreadable" };

export type AgentStanding =
  | { readonly kind: "Found"; readonly ready: number; readonly wanted: number }
  | { readonly kind: "None" }
  | { readonly kind: "Unreadable" };

export interface HeadlineFacts {
  readonly plan: FleetPlan;
  readonly nodes: readonly NodeFacts[];
  readonly departures: readonly Departure[];
  /** Absent if nobody has asked, as for a plan from files. */
  readonly operation?: OperationStanding | undefined;
  /** What the caller may not list: it is unknown, not absent. */
  readonly unread?: readonly UnreadList[] | undefined;
}

export type UnreadList = "nodes" | "policies" | "departures";

/**
 * What a person who looks once has to know first: a line for each policy, the next departure, who
 * is leaving, what is held, and whether anybody acts.
 */
export function fleetHeadline(facts: HeadlineFacts): readonly HeadlineLine[] {
  const { operation } = facts;
  return [
    ...policyLines(facts),
    ...nextLine(facts),
    ...leavingLine(facts),
    ...heldLine(facts),
    ...(operation === undefined ? [] : [controllerLine(operation), agentLine(operation)]),
  ];
}

function line(
  subject: HeadlineSubject,
  tone: HeadlineTone,
  says: Saying,
  more: Partial<Pick<HeadlineLine, "policy" | "waiting">> = {},
): HeadlineLine {
  return { subject, tone, says, policy: null, waiting: [], ...more };
}

function policyLines(facts: HeadlineFacts): readonly HeadlineLine[] {
  const { plan, departures, unread = [] } = facts;
  if (unread.includes("policies")) return [line("Policy", "Note", unreadWords.policies)];
  if (unread.includes("nodes")) return [line("Policy", "Note", unreadWords.nodes)];
  if (plan.policies.length + plan.bad.length === 0) {
    return [line("Policy", "Bad", { says: "headline.NoPolicies" })];
  }
  const onHold = new Set(heldNodes(facts).map(({ uid }) => uid));
  // The line of the held nodes counts those.
  const isTold = ({ node, status: { reason } }: Departure) =>
    (reason === "OnHold" || reason === "HeldByPerson") && onHold.has(node.uid);
  const held = Map.groupBy(
    asTheyStand(departures, plan).filter(
      (one) => isHeldBack(one) && !isTold(one) && (one.departAt ?? plan.at) <= plan.at,
    ),
    (one) => policyNameOf(one) ?? null,
  );
  return [
    ...plan.policies.map((one) => {
      const { name } = one.policy;
      return policyLine(one, {
        blocked: blockedNodes(plan, name),
        held: held.get(name) ?? [],
        isUnread: unread.includes("departures"),
        at: plan.at,
      });
    }),
    ...plan.bad.map(({ policy, nodes: stay }) => {
      const nodes = stay === 0 ? undefined : stay;
      const says: Sentence = { says: "headline.PolicyUnread", nodes, detail: policy.problem };
      return line("Policy", "Bad", says, { policy: policy.name });
    }),
  ];
}

/** One that another departure of its node has overtaken waits for nothing: that one is counted. */
function isHeldBack({ status: { phase, reason } }: Departure): boolean {
  return phase === "Held" && reason !== "Requested" && reason !== "Started";
}

interface HeldAndBlocked {
  readonly blocked: readonly NotPlanned[];
  /** Due departures that do not start. */
  readonly held: readonly Departure[];
  /** Whether departures may not be read, so that nobody knows which of them are held or late. */
  readonly isUnread: boolean;
  readonly at: Instant;
}

function policyLine(
  plan: PolicyPlan,
  { blocked, held, isUnread, at }: HeldAndBlocked,
): HeadlineLine {
  const { policy } = plan;
  const { reason, explain } = policyStanding(plan, blocked);
  if (isUnread && (reason === "InTime" || reason === "Late")) {
    return line("Policy", "Note", unreadWords.departures, { policy: policy.name });
  }
  const { freezeUntil } = policy.gates;
  const until = freezeUntil !== undefined && freezeUntil > at ? freezeUntil : undefined;
  const isIdle = reason === "Paused" || reason === "NoNodes" || policy.dryRun;
  const isNoted = isIdle || until !== undefined || plan.held > 0 || held.length > 0;
  const isBad = isInfeasible(reason) || reason === "WaveHalted";
  const says: Saying =
    until === undefined ? explain : { says: "headline.Frozen", until, rest: explain };
  return line("Policy", isBad ? "Bad" : isNoted ? "Note" : "Good", says, {
    policy: policy.name,
    waiting: waitingOf(held),
  });
}

function waitingOf(held: readonly Departure[]): readonly WaitingCount[] {
  const byReason = Map.groupBy(held, ({ status }) => status.reason ?? "NotYet");
  return [...byReason]
    .map(([reason, all]) => ({ reason, departures: all.length }))
    .toSorted((a, b) => b.departures - a.departures || (a.reason < b.reason ? -1 : 1));
}

/**
 * A paused or dry-run policy has no next departure, because none of its nodes leaves. Neither has
 * one whose departures wait for a person, or for a fleet that is healthy: nobody knows how long.
 */
function nextLine({ plan, departures, unread = [] }: HeadlineFacts): readonly HeadlineLine[] {
  // The other lines say what may not be read, and that is why nothing is known to be ahead.
  if (unread.length > 0) return [];
  const all = plan.policies
    .filter((one) => !one.policy.dryRun && one.health.hold === undefined && !areWavesHalted(one))
    .flatMap(({ departures: one }) => one);
  // A deadline overrides a freeze.
  const thaws = (one: PlannedDeparture) =>
    one.frozenUntil !== undefined && one.frozenUntil !== one.deadlineAt;
  const planned = all
    .filter((one) => !thaws(one))
    .map(({ node, departAt, heldBackTo, frozenUntil }) => {
      return { node: node.name, at: frozenUntil ?? heldBackTo ?? departAt };
    });
  const requests = departures.filter(
    (one) => one.cause === "Manual" && !isUnderWay(one) && !one.hold,
  );
  // It leaves as soon as others have left, before all that are planned, and nobody knows when.
  if (requests.some(({ status }) => status.reason === "BudgetSpent")) return [];
  const requested = requests.flatMap(({ node, departAt }) =>
    departAt === undefined ? [] : [{ node: node.name, at: departAt }],
  );
  let next: (typeof planned)[number] | undefined;
  for (const one of [...planned, ...requested]) {
    if (one.at >= plan.at && (next === undefined || one.at < next.at)) next = one;
  }
  // What a freeze holds is planned again when it ends, and may come first.
  let thawsAt: Instant | undefined;
  for (const { frozenUntil } of all.filter(thaws)) thawsAt = earliest(thawsAt, frozenUntil);
  if (next !== undefined && (thawsAt === undefined || next.at < thawsAt)) {
    const { node, at: departAt } = next;
    return [line("Next", "Good", { says: "headline.Next", node, departAt })];
  }
  return [line("Next", "Note", { says: "headline.NoneAhead", until: thawsAt })];
}

const unreadWords: Readonly<Record<UnreadList, Sentence>> = {
  nodes: { says: "headline.NodesUnread" },
  policies: { says: "headline.PoliciesUnread" },
  departures: { says: "headline.DeparturesUnread" },
};

function leavingLine({ departures, unread = [] }: HeadlineFacts): readonly HeadlineLine[] {
  if (unread.includes("departures")) {
    return [line("Leaving", "Note", unreadWords.departures)];
  }
  const leaving = departures.filter((one) => isLive(one) && isUnderWay(one));
  const nodes = leaving.length;
  if (nodes === 0) return [line("Leaving", "Good", { says: "headline.NoneLeaving" })];
  const noticed = leaving.filter(isNoticed).length;
  // The names come last: where a line is cut, they are the least of it.
  const names = firstNames(leaving.map(({ node }) => node.name).toSorted(compareNames));
  if (noticed === 0)
    return [line("Leaving", "Good", { says: "headline.Leaving", nodes, ...names })];
  const says: Sentence =
    noticed === nodes
      ? { says: "headline.AllNoticed", nodes, ...names }
      : { says: "headline.SomeNoticed", nodes, noticed, ...names };
  return [line("Leaving", "Note", says)];
}

/**
 * Held by a person, for good or for now. One that is leaving counts as that alone: a notice drains
 * it even so, and a hold is still undoing what has been done.
 */
function heldNodes({ nodes, departures, plan }: HeadlineFacts): readonly NodeFacts[] {
  const live = departures.filter(isLive);
  const byDeparture = new Set(live.filter(({ hold }) => hold).map(({ node }) => node.uid));
  const leaving = new Set(live.filter(isUnderWay).map(({ node }) => node.uid));
  const isHeld = (node: NodeFacts) => {
    const hold = holdOf(node);
    return hold.kind === "Until" ? hold.until > plan.at : hold.kind === "Always";
  };
  return nodes.filter(
    (node) => !leaving.has(node.uid) && (isHeld(node) || byDeparture.has(node.uid)),
  );
}

/** The end that all holds have in common; undefined if one has another, or none. */
function commonEnd(held: readonly NodeFacts[], { departures }: HeadlineFacts): Instant | undefined {
  const uids = new Set(held.map(({ uid }) => uid));
  if (departures.some((one) => isLive(one) && one.hold && uids.has(one.node.uid))) return undefined;
  const ends = held.map(holdOf).map((hold) => (hold.kind === "Until" ? hold.until : undefined));
  return ends.every((end) => end === ends[0]) ? ends[0] : undefined;
}

function heldLine(facts: HeadlineFacts): readonly HeadlineLine[] {
  const held = heldNodes(facts);
  if (held.length === 0) return [];
  const untilAt = commonEnd(held, facts);
  let sinceAt: Instant | undefined;
  // A hold that ends is not one that somebody has forgotten.
  for (const { holdWriter } of untilAt === undefined ? held : []) {
    sinceAt = earliest(sinceAt, holdWriter?.at);
  }
  const names = firstNames(held.map(({ name }) => name).toSorted(compareNames));
  const says: Sentence = {
    says: "headline.OnHold",
    nodes: held.length,
    untilAt,
    sinceAt,
    ...names,
  };
  return [line("Held", "Note", says)];
}

export function controllerLine({ controller }: OperationStanding): HeadlineLine {
  switch (controller.kind) {
    case "Leads":
      return line("Controller", "Good", { says: "headline.Leads", holder: controller.holder });
    case "Expired": {
      const { holder, renewedAt } = controller;
      const says: Sentence = {
        says: "headline.NotRenewed",
        holder,
        renewedAt: renewedAt ?? undefined,
      };
      return line("Controller", "Bad", says);
    }
    case "None":
      return line("Controller", "Note", { says: "headline.NoLease" });
    default:
      return line("Controller", "Note", { says: "headline.LeaseUnread" });
  }
}

function agentLine({ agents }: OperationStanding): HeadlineLine {
  switch (agents.kind) {
    case "Found": {
      const { ready, wanted } = agents;
      if (wanted === 0) return line("Agents", "Note", { says: "headline.NoAgentFits" });
      return ready >= wanted
        ? line("Agents", "Good", { says: "headline.AgentsReady", ready, wanted })
        : line("Agents", "Bad", { says: "headline.AgentsMissing", ready, wanted });
    }
    case "None":
      return line("Agents", "Note", { says: "headline.NoAgent" });
    default:
      return line("Agents", "Note", { says: "headline.AgentsUnread" });
  }
}
