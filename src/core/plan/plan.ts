import { mayBeSameMachine, type NodeFacts, removesNodes, zoneOf } from "../cluster/node.ts";
import {
  type Decision,
  indexDepartures,
  newestStarts,
  type Snapshot,
  withLaunchTimes,
} from "../departure/decision.ts";
import {
  type Departure,
  isLive,
  isNoticed,
  isUnderWay,
  isVoluntary,
  pressingFrom,
} from "../departure/departure.ts";
import type { RunningDrain } from "../departure/drain-reason.ts";
import { type BudgetUsage, type WaveStanding, waveStanding } from "../limits/budget.ts";
import { type FleetHealth, fleetHealth, healthy } from "../limits/fleet-health.ts";
import { type GateHold, windowHold } from "../limits/gate.ts";
import { windowProblem } from "../limits/windows.ts";
import { type BadPolicy, defaultNodeSelector, type Policy, selectedBy } from "../policy/policy.ts";
import {
  type ReleasabilityQuestion,
  type ReleaseVerdict,
  releaseStanding,
  releaseVerdict,
} from "../policy/release-answer.ts";
import { earlier, hours, type Instant, minus, minutes, plus, seconds } from "../time/time.ts";
import {
  type Candidate,
  type FleetPlan,
  type PlanInput,
  type PlannedDeparture,
  type PolicyPlan,
  type PolicyTie,
  type Triage,
  triage,
} from "./fleet-plan.ts";
import {
  type EarlierStart,
  forecastBudgets,
  forecastPolicy,
  type PlannedStarts,
  type RequestedStart,
} from "./forecast.ts";
import type { NotPlanned } from "./not-planned.ts";
import { type PlacedPolicy, planPolicy } from "./policy-plan.ts";

/**
 * Plans the departures of a fleet: the nodes of each policy together, and the policies one by one.
 * Pure and repeatable: the same input in any order gives the same plan. A policy with an invalid
 * window counts as unreadable.
 */
export function planFleet(given: PlanInput): FleetPlan {
  const departures = indexDepartures(given.departures, given.at);
  const { begun } = departures;
  // Departures that have not started, nearly all of them, are looked up by node and scanned once.
  const input = { ...given, nodes: withLaunchTimes(given.nodes, begun), departures: begun };
  const { at } = input;
  const { good, bad } = sortPolicies(input);
  const starts = newestStarts(begun, at);
  const context = { policies: good, badPolicies: bad, departures, at };
  const triaged = input.nodes.map((node) => triage(node, context));
  const groups = good.map((policy) => groupOf(policy, triaged));
  // Those that have not started show since when a node is there.
  const nodes = nodesByPolicy(triaged);
  const health = fleetHealth({ policies: good, nodes, departures: given.departures, at });
  const placed = groups.map(({ policy, candidates, requested }) =>
    planPolicy({
      ...{ policy, candidates, at, newestStart: starts.get(policy.name) },
      requested: requested.map(({ departAt }) => departAt),
    }),
  );
  return {
    at,
    policies: withForecasts(input, { groups, placed, health }),
    notPlanned: notPlannedOf(triaged),
    bad: bad.map((policy) => ({ policy, nodes: blockedBy(policy, triaged) })),
    ties: tiesOf(triaged),
  };
}

function blockedBy({ name }: BadPolicy, triaged: readonly Triage[]): number {
  return triaged.filter((one) => one.kind === "NotPlanned" && one.entry.blockedBy === name).length;
}

interface SortedPolicies {
  readonly good: readonly Policy[];
  readonly bad: readonly BadPolicy[];
}

function sortPolicies({ policies, badPolicies }: PlanInput): SortedPolicies {
  const good: Policy[] = [];
  const bad = [...badPolicies];
  for (const policy of [...policies].sort((a, b) => compare(a.name, b.name))) {
    const problem = policy.windows.map(windowProblem).find((found) => found !== undefined);
    if (problem === undefined) good.push(policy);
    else bad.push({ ...policy, nodeSelector: policy.nodeSelector ?? defaultNodeSelector, problem });
  }
  return { good, bad: bad.sort((a, b) => compare(a.name, b.name)) };
}

interface Group {
  readonly policy: Policy;
  readonly candidates: readonly Candidate[];
  readonly matched: number;
  readonly matchedByZone: ReadonlyMap<string, number>;
  readonly requested: readonly RequestedStart[];
}

function groupOf(policy: Policy, triaged: readonly Triage[]): Group {
  const candidates: Candidate[] = [];
  const requested: RequestedStart[] = [];
  const matchedByZone = new Map<string, number>();
  let matched = 0;
  for (const one of triaged) {
    if (one.policy !== policy) continue;
    const zone = one.kind === "Candidate" ? one.candidate.zone : zoneOf(one.entry.node);
    matched += 1;
    matchedByZone.set(zone, (matchedByZone.get(zone) ?? 0) + 1);
    if (one.kind === "Candidate") candidates.push(one.candidate);
    else if (one.requestedAt !== undefined) requested.push({ departAt: one.requestedAt, zone });
  }
  return { policy, candidates, matched, matchedByZone, requested };
}

interface Groups {
  readonly groups: readonly Group[];
  readonly placed: readonly PlacedPolicy[];
  readonly health: ReadonlyMap<string, FleetHealth>;
}

/** The nodes that each policy selects, and under `undefined` those of no policy. */
function nodesByPolicy(
  triaged: readonly Triage[],
): ReadonlyMap<string | undefined, readonly NodeFacts[]> {
  const nodes = new Map<string | undefined, NodeFacts[]>();
  for (const one of triaged) {
    const node = one.kind === "Candidate" ? one.candidate.node : one.entry.node;
    const some = nodes.get(one.policy?.name);
    if (some === undefined) nodes.set(one.policy?.name, [node]);
    else some.push(node);
  }
  return nodes;
}

function withForecasts(
  input: PlanInput,
  { groups, placed, health }: Groups,
): readonly PolicyPlan[] {
  const matchedInCluster = groups.reduce((sum, group) => sum + group.matched, 0);
  const plans = groups.map((group, at): PlannedStarts => {
    const { departures, hours: open } = placed[at] as PlacedPolicy;
    const waves = waveStanding({ ...group, departures: input.departures });
    return { ...group, matchedInCluster, waves, departures, hours: open };
  });
  const budgets = forecastBudgets({ plans, earlier: earlierStarts(input, groups) });
  return plans.map((plan, at) => {
    const { spacing, moved } = placed[at] as PlacedPolicy;
    const held = (one: PlannedDeparture): PlannedDeparture => {
      const heldBackTo = budgets.heldBackTo.get(one);
      return heldBackTo === undefined ? one : { ...one, heldBackTo };
    };
    return {
      ...{ policy: plan.policy, matched: plan.matched, spacing, moved },
      outranked: plan.matched > 0 ? 0 : selectedBy(plan.policy, input.nodes).length,
      forecast: forecastPolicy({ ...plan, budgets }),
      health: health.get(plan.policy.name) ?? healthy,
      release: releaseStanding(plan.policy, plan.departures, {
        answers: input.releaseAnswers,
        at: input.at,
      }),
      waves: plan.waves,
      held: heldBack(groups[at] as Group, plan.departures, input.at),
      departures: budgets.heldBackTo.size === 0 ? plan.departures : plan.departures.map(held),
    };
  });
}

/** How many departures are due and held, or held by a person. */
function heldBack(
  { candidates }: Group,
  departures: readonly PlannedDeparture[],
  at: Instant,
): number {
  const due = new Set(departures.flatMap((one) => (one.departAt <= at ? [one.node.uid] : [])));
  return candidates.filter(
    ({ node, isHeld, isHeldByPerson }) => isHeldByPerson || (isHeld && due.has(node.uid)),
  ).length;
}

/** Starts that may still count in a budget, in chronological order. */
function earlierStarts(
  { departures, nodes, at }: PlanInput,
  groups: readonly Group[],
): readonly EarlierStart[] {
  const policies = new Map(groups.map(({ policy }) => [policy.name, policy]));
  const starts: (EarlierStart & { readonly uid: string })[] = [];
  for (const { policy: name, node, status, cause } of departures) {
    const policy = name === undefined ? undefined : policies.get(name);
    const { startedAt } = status;
    if (policy === undefined || startedAt === undefined || startedAt > at) continue;
    const state = status.phase === "Ended" ? "Ended" : "UnderWay";
    const isLongAgo = at - startedAt >= Math.max(hours(1), policy.drain.timeoutMs);
    if (isLongAgo && state === "Ended") continue;
    const voluntary = isVoluntary(cause);
    starts.push({ policy, zone: "", at: startedAt, state, voluntary, uid: node.uid });
  }
  if (starts.length === 0) return starts;
  const zones = new Map(nodes.map((node) => [node.uid, zoneOf(node)]));
  return starts
    .sort((a, b) => a.at - b.at)
    .map((start) => ({ ...start, zone: zones.get(start.uid) ?? "" }));
}

function tiesOf(triaged: readonly Triage[]): readonly PolicyTie[] {
  const ties = new Map<string, { tiedWith: Set<string>; nodes: number }>();
  for (const { policy, tiedWith } of triaged) {
    if (policy === undefined || tiedWith.length === 0) continue;
    const tie = ties.get(policy.name) ?? { tiedWith: new Set<string>(), nodes: 0 };
    for (const name of tiedWith) tie.tiedWith.add(name);
    tie.nodes += 1;
    ties.set(policy.name, tie);
  }
  return [...ties]
    .map(([policy, { tiedWith, nodes }]) => ({ policy, tiedWith: [...tiedWith].sort(), nodes }))
    .sort((a, b) => compare(a.policy, b.policy));
}

function notPlannedOf(triaged: readonly Triage[]): readonly NotPlanned[] {
  const entries: NotPlanned[] = [];
  for (const one of triaged) if (one.kind === "NotPlanned") entries.push(one.entry);
  return entries.sort(byName);
}

function byName(a: NotPlanned, b: NotPlanned): number {
  return compare(a.node.name, b.node.name) || compare(a.node.uid, b.node.uid);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** A node's entry in the plan, and the policy whose plan it is. */
export interface Planned {
  readonly entry: PlannedDeparture;
  readonly policy: Policy;
}

/** The state of one pass: the snapshot, indexed, and the plan made from it. */
export interface Pass {
  readonly snapshot: Snapshot;
  readonly now: Instant;
  readonly planned: ReadonlyMap<string, Planned>;
  readonly left: ReadonlyMap<string, NotPlanned>;
  readonly former: ReadonlyMap<string, readonly Departure[]>;
  readonly named: ReadonlyMap<string, Departure>;
  readonly nodes: ReadonlyMap<string, NodeFacts>;
  /** The last voluntary start of each policy. */
  readonly lastStarts: ReturnType<typeof newestStarts>;
  /** By node uid, without advice that waits. */
  readonly live: ReadonlyMap<string, readonly Departure[]>;
  /** Policies that cannot be read, by name. */
  readonly bad: ReadonlyMap<string, BadPolicy>;
  /**
   * Includes the starts of this pass, because all policies' budgets are checked one after the
   * other.
   */
  ledger: BudgetUsage;
  /** Policies with a start in this pass: their next departure waits until that start is visible. */
  readonly begun: Set<string>;
  /** The uids of the nodes that start to leave in this pass. */
  readonly leaving: Set<string>;
  /** By policy. */
  readonly health: ReadonlyMap<string, FleetHealth>;
  /** The progress of each policy's waves. */
  readonly waves: ReadonlyMap<string, WaveStanding | undefined>;
  /** The hold by a policy's windows now, if any; computed once per policy. */
  readonly windows: (policy: Policy) => GateHold | undefined;
  /** The drains that hold budgets. */
  readonly drains: readonly RunningDrain[];
  /** When the first hold ends. */
  wakeAt: Instant | undefined;
  /** The questions that the clouds have to answer before more can be decided. */
  readonly asks: ReleasabilityQuestion[];
}

/** Whether another departure of the node is under way, or starts in this pass. */
export function isLeavingByAnother(departure: Departure, pass: Pass): boolean {
  const { uid } = departure.node;
  if (pass.leaving.has(uid)) return true;
  const others = pass.former.get(uid) ?? [];
  return others.some((one) => one.uid !== departure.uid && isLive(one) && isUnderWay(one));
}

/**
 * Names what removed a node whose departure had not started, if it was not the cloud: another
 * departure, or a tool that removes nodes and had marked this one when last seen. A Node that was
 * simply deleted proves nothing, and counts as taken by the cloud.
 */
export function takenBy(departure: Departure, pass: Pass): string | undefined {
  const leader = leftBy(departure, pass);
  if (leader !== undefined) return `it left with departure ${leader}`;
  // The tool may merely have acted on the cloud's notice.
  if (isNoticed(departure)) return undefined;
  const { leftTo } = departure.status;
  return leftTo !== undefined && removesNodes(leftTo) ? `${leftTo} removed it` : undefined;
}

/**
 * The name of the other departure by which this one's machine left; undefined if this one counts as
 * its end. A departure that never started gives way to one that did. Of several that never started,
 * one counts: one with a notice before a planned one. The Node object may have had other machines
 * before.
 */
function leftBy(departure: Departure, { former }: Pass): string | undefined {
  const others = former.get(departure.node.uid) ?? [];
  return others.find((one) => {
    const { startedAt, outcome } = one.status;
    const stayed = outcome === "RolledBack" || outcome === "Cancelled" || outcome === "Failed";
    if (one.uid === departure.uid || stayed) return false;
    if (startedAt === undefined && standing(one) <= standing(departure)) return false;
    return mayBeSameMachine(one.node, departure.node);
  })?.name;
}

function standing(departure: Departure): number {
  if (isNoticed(departure)) return 2;
  return departure.cause === "Planned" ? 1 : 0;
}

/** A held departure is checked again at least this often. */
const heldAgainMs = minutes(1);

/** How long before its instant a departure's cloud is asked, so that the answer arrives in time. */
const askAheadMs = seconds(15);

/** When to decide again about a departure that has not started, even if nothing changes. */
function looksAt(departure: Departure, now: Instant): readonly Instant[] {
  if (isUnderWay(departure)) return [];
  const { departAt = now, status } = departure;
  const againAt = status.phase === "Held" ? plus(now, heldAgainMs) : now;
  return [departAt > now ? departAt : againAt, pressingFrom(departure) ?? now];
}

/** What its cloud has to be asked by now; undefined if nothing, or not yet. */
export function questionOf(
  planned: Planned,
  pass: Pass,
): Pick<ReleasabilityQuestion, "mode"> | undefined {
  if (minus(planned.entry.beginAt, askAheadMs) > pass.now) return undefined;
  const release = releaseAtBegin(planned, pass);
  return release.kind === "NotAsked" ? release : undefined;
}

/** The departure's instant, or the earlier one at which its cloud has to be asked. */
function beforeBegin(planned: Planned, pass: Pass): Instant {
  const { beginAt } = planned.entry;
  const askAt = minus(beginAt, askAheadMs);
  return releaseAtBegin(planned, pass).kind === "NotAsked" && askAt > pass.now ? askAt : beginAt;
}

function releaseAtBegin({ entry, policy }: Planned, { snapshot }: Pass): ReleaseVerdict {
  const { node, beginAt: at } = entry;
  return releaseVerdict({ policy, node, answer: snapshot.releaseAnswers.get(node.uid), at });
}

/**
 * When to decide again: the earliest of the next departure's instant, the end of a hold, an instant
 * from which fewer holds apply to a due departure, and the next check of held departures.
 */
export function nextLook(decisions: readonly Decision[], pass: Pass): Instant | undefined {
  const { now, wakeAt } = pass;
  let at = wakeAt !== undefined && wakeAt > now ? wakeAt : undefined;
  const look = (next: Instant): void => {
    if (next > now) at = at === undefined ? next : earlier(at, next);
  };
  for (const planned of pass.planned.values()) {
    const { entry } = planned;
    look(beforeBegin(planned, pass));
    if (entry.beginAt > now) continue;
    for (const next of [entry.deadlineAt, entry.overridesBudgetAt, plus(now, heldAgainMs)])
      look(next);
  }
  for (const departure of pass.snapshot.departures) {
    for (const next of looksAt(departure, now)) look(next);
  }
  const waits = decisions.some((one) => one.kind === "Note" && one.event === "Blocked");
  if (waits) look(plus(now, heldAgainMs));
  return at;
}

/** Returns the hold by a policy's windows now, if any; computed once for all of its nodes. */
export function windowsAt(now: Instant): Pass["windows"] {
  const asked = new Map<string, GateHold | undefined>();
  return (policy) => {
    const { name } = policy;
    if (!asked.has(name)) asked.set(name, windowHold(policy, now));
    return asked.get(name);
  };
}
