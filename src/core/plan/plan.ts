import { type NodeFacts, zoneOf } from "../cluster/node.ts";
import { indexDepartures, newestStarts } from "../departure/decision.ts";
import { isVoluntary } from "../departure/departure.ts";
import { withLaunchTimes } from "../departure/launch-time.ts";
import { waveStanding } from "../limits/budget.ts";
import { type FleetHealth, fleetHealth, healthy } from "../limits/fleet-health.ts";
import { nextOpen, type OpenTime, openTime } from "../limits/gate.ts";
import { windowProblem } from "../limits/windows.ts";
import { type BadPolicy, defaultNodeSelector, type Policy, selectedBy } from "../policy/policy.ts";
import { releaseStanding } from "../policy/release-answer.ts";
import { earlier, hours, type Instant, instant, later } from "../time/time.ts";
import type {
  Candidate,
  FleetPlan,
  PlanInput,
  PlannedDeparture,
  PolicyPlan,
  PolicyTie,
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
import { isFleetHoldOver } from "./present-hold.ts";
import { type Triage, triage } from "./triage.ts";

/**
 * Plans the departures of a fleet: the nodes of each policy together, and the policies one by one.
 * Pure and repeatable: the same input in any order gives the same plan. A policy with an invalid
 * window counts as unreadable.
 */
export function planFleet(given: PlanInput): FleetPlan {
  const departures = indexDepartures(given.departures, given.at);
  const { begun } = departures;
  // Departures that have not started, nearly all of them, are looked up by node and scanned once.
  const input = {
    ...given,
    nodes: withLaunchTimes(given.nodes, given.departures),
    departures: begun,
  };
  const { at } = input;
  const { good, bad } = sortPolicies(input);
  const starts = newestStarts(begun, at);
  const context = { policies: good, badPolicies: bad, departures, at };
  const triaged = input.nodes.map((node) => triage(node, context));
  const groups = good.map((policy) => groupOf(policy, triaged));
  // Those that have not started show since when a node is there.
  const nodes = nodesByPolicy(triaged);
  const { departures: all, unheard } = given;
  const health = fleetHealth({ policies: good, nodes, departures: all, unheard, at });
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
  const budgets = forecastBudgets({ plans, earlier: earlierStarts(input, groups) }, input.at);
  return plans.map((plan, at) => {
    const { spacing, moved } = placed[at] as PlacedPolicy;
    const its = health.get(plan.policy.name) ?? healthy;
    return {
      ...{ policy: plan.policy, matched: plan.matched, spacing, moved },
      outranked: plan.matched > 0 ? 0 : selectedBy(plan.policy, input.nodes).length,
      forecast: forecastPolicy({ ...plan, budgets }),
      health: its,
      release: releaseStanding(plan.policy, plan.departures, {
        answers: input.releaseAnswers,
        at: input.at,
      }),
      waves: plan.waves,
      ...expected(plan, groups[at] as Group, {
        ...{ byBudget: budgets.heldBackTo, at: input.at, health: its },
      }),
    };
  });
}

interface StartOutlook {
  readonly byBudget: ReadonlyMap<PlannedDeparture, Instant>;
  readonly health: FleetHealth;
  readonly at: Instant;
}

function expected(
  plan: PlannedStarts,
  group: Group,
  { byBudget, health, at }: StartOutlook,
): Pick<PolicyPlan, "departures" | "held"> {
  const { freezeUntil = at } = plan.policy.gates;
  const departures = withExpected(plan, group, byBudget).map((one) => ({
    ...one,
    // One whose instant passed under a freeze that has ended is held by something else, if at all.
    frozenUntil: freezeUntil > at ? frozenTo(one, freezeUntil) : undefined,
  }));
  return { departures, held: heldBack(group, departures, { at, health, waves: plan.waves }) };
}

/** A deadline overrides a freeze, but not for a node that was overdue from the start. */
function frozenTo(
  { departAt, deadlineAt, reason }: PlannedDeparture,
  freezeUntil: Instant,
): Instant | undefined {
  const until = reason === "Overdue" ? freezeUntil : earlier(freezeUntil, deadlineAt);
  return departAt <= until && departAt < freezeUntil ? until : undefined;
}

/** What else holds a departure may last, so that nothing is expected of it. */
function withExpected(
  { departures, policy, hours: { spans } }: PlannedStarts,
  { candidates }: Group,
  byBudget: ReadonlyMap<PlannedDeparture, Instant>,
): readonly PlannedDeparture[] {
  if (byBudget.size === 0 && departures.every((one) => one.heldBackTo === undefined)) {
    return departures;
  }
  const shut = { open: openTime(spans), freezeUntil: policy.gates.freezeUntil };
  const held = new Set(
    candidates.flatMap(({ node, waitsForOthers }) => (waitsForOthers ? [] : [node.uid])),
  );
  return departures.map((one) => {
    if (held.has(one.node.uid)) return { ...one, heldBackTo: undefined };
    const times = [byBudget.get(one), turnOf(one, shut)].filter((time) => time !== undefined);
    return { ...one, heldBackTo: times.length === 0 ? undefined : times.reduce(later) };
  });
}

/** When it may start once it is its turn: a deadline overrides windows and a freeze. */
function turnOf(
  { heldBackTo: turnAt, deadlineAt, reason }: PlannedDeparture,
  { open, freezeUntil }: { readonly open: OpenTime; readonly freezeUntil: Instant | undefined },
): Instant | undefined {
  if (turnAt === undefined) return undefined;
  const thawedAt = later(turnAt, freezeUntil ?? turnAt);
  const forcedAt = reason === "Overdue" ? Number.POSITIVE_INFINITY : later(turnAt, deadlineAt);
  const startAt = Math.min(nextOpen(open, thawedAt), forcedAt);
  // Whether it is open after the last deadline is not computed.
  return Number.isFinite(startAt) ? instant(startAt) : thawedAt;
}

/**
 * How many departures are due and held, or will wait for a budget or for their turn, or are held by
 * a person or a freeze.
 */
function heldBack(
  { candidates }: Group,
  departures: readonly PlannedDeparture[],
  { at, ...standing }: Pick<PolicyPlan, "health" | "waves"> & { readonly at: Instant },
): number {
  const planned = new Map(departures.map((one) => [one.node.uid, one]));
  return candidates.filter(({ node, isHeld, heldBy, isHeldByPerson }) => {
    const its = planned.get(node.uid);
    const waits = its?.frozenUntil ?? its?.heldBackTo;
    if (isHeldByPerson || waits !== undefined) return true;
    if (its === undefined || its.departAt > at) return false;
    return isHeld && !isFleetHoldOver(heldBy, standing);
  }).length;
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
