import { departingSoonTaint, type NodeFacts } from "../cluster/node.ts";
import {
  type Departure,
  isLive,
  isNoticed,
  isUnderWay,
  policyNameOf,
} from "../departure/departure.ts";
import { explainWaves, type WaveStanding } from "../limits/budget.ts";
import { departureAnnotation } from "../notice/interruption.ts";
import { inEnglish } from "../reason/english.ts";
import {
  between,
  earlier,
  earliest,
  hours,
  type Instant,
  type Millis,
  minus,
  plus,
} from "../time/time.ts";
import type { FleetPlan, PolicyPlan } from "./fleet-plan.ts";
import type { NotPlanned } from "./not-planned.ts";
import { type WaveReport, waveReport } from "./plan-report.ts";
import { blockedNodes, isInfeasible, nodeCount, policyStanding } from "./policy-standing.ts";

/** The status that the controller reports for one policy. */
export interface PolicyStatus {
  readonly name: string;
  readonly generation: number | undefined;
  /** The uid of the object: a policy that was recreated under the same name has no status yet. */
  readonly uid?: string | undefined;
  /** Whether the policy is paused, so that no planned departure starts. */
  readonly paused: boolean;
  readonly matchedNodes: number;
  readonly departures: {
    readonly scheduled: number;
    readonly underWay: number;
    readonly done24h: number;
  };
  readonly spacing: {
    readonly wantedSeconds: number | null;
    readonly reachedSeconds: number | null;
    readonly bestSeconds: number | null;
  };
  readonly forecast: {
    readonly feasible: boolean;
    readonly late: readonly string[];
    readonly widenBySeconds: number;
    readonly explain: string;
  };
  /** Null if the policy has none. */
  readonly waves: WaveReport | null;
  readonly nextDepartureAt: Instant | undefined;
  readonly conditions: readonly PolicyCondition[];
}

export interface PolicyCondition {
  readonly type: "Ready" | "Feasible" | "WavesPassed" | "SpotReady";
  readonly status: "True" | "False" | "Unknown";
  readonly reason: string;
  readonly message: string;
}

/**
 * The most names of late nodes in a status, so that a fleet that is late as a whole does not fill
 * the object.
 */
const lateLimit = 20;

/** The status of every policy, including unreadable ones. */
export function policyStatuses(
  plan: FleetPlan,
  departures: readonly Departure[],
): readonly PolicyStatus[] {
  const byPolicy = Map.groupBy(departures, (one) => policyNameOf(one) ?? "");
  const nodes = nodesOf(plan);
  const countsOf = (name: string) => countsFrom(byPolicy.get(name) ?? [], { nodes, at: plan.at });
  return [
    ...plan.policies.map((one) => {
      const { name } = one.policy;
      return statusOf(one, { counts: countsOf(name), blocked: blockedNodes(plan, name) });
    }),
    ...plan.bad.map((one) => badStatusOf(one, countsOf(one.policy.name))),
  ];
}

/** The uids of all nodes that a plan has an answer for. */
function nodesOf({ policies, notPlanned }: FleetPlan): ReadonlySet<string> {
  const planned = policies.flatMap(({ departures }) => departures);
  return new Set([...planned, ...notPlanned].map(({ node }) => node.uid));
}

function countsFrom(
  own: readonly Departure[],
  { nodes, at }: { readonly nodes: ReadonlySet<string>; readonly at: Instant },
): PolicyStatus["departures"] {
  // A node may have a planned departure and a requested one, and a departure may outlast its node.
  const ahead = own.filter((one) => !isUnderWay(one)).map(({ node }) => node.uid);
  const ended = own.filter(({ status }) => status.phase === "Ended");
  const recent = ended.filter(
    ({ status }) => status.endedAt !== undefined && plus(status.endedAt, hours(24)) > at,
  );
  return {
    scheduled: new Set(ahead.filter((uid) => nodes.has(uid))).size,
    underWay: own.filter((one) => isUnderWay(one)).length - ended.length,
    done24h: recent.length,
  };
}

interface AroundPolicy {
  readonly counts: PolicyStatus["departures"];
  /** Nodes of the policy that an unreadable policy might own. */
  readonly blocked: readonly NotPlanned[];
}

function statusOf(plan: PolicyPlan, { counts, blocked }: AroundPolicy): PolicyStatus {
  const { policy, matched, spacing, forecast, waves } = plan;
  const feasible = feasibleCondition(plan, blocked);
  return {
    name: policy.name,
    generation: policy.generation,
    uid: policy.uid,
    paused: policy.paused,
    matchedNodes: matched,
    departures: counts,
    spacing: {
      wantedSeconds: inSeconds(spacing.wantedMs),
      reachedSeconds: inSeconds(spacing.reachedMs),
      bestSeconds: inSeconds(spacing.bestMs),
    },
    forecast: {
      feasible: feasible.status === "True",
      late: forecast.late.slice(0, lateLimit),
      widenBySeconds: forecast.widenBySeconds,
      explain: feasible.message,
    },
    waves: waves === undefined ? null : waveReport(waves),
    nextDepartureAt: plan.departures[0]?.departAt,
    conditions: [
      policy.paused
        ? {
            ...ready,
            reason: "Paused",
            message: "The policy is paused: no planned departure starts.",
          }
        : ready,
      feasible,
      ...(waves === undefined ? [] : [waveCondition(waves)]),
    ],
  };
}

const ready: PolicyCondition = {
  ...{
    type: "Ready",
    status: "True",
    reason: "Understood",
    message: "The policy is valid and active.",
  },
};

/**
 * Whether the policy's nodes leave in time: Unknown while it is paused or selects no node, False if
 * nodes are held back.
 */
function feasibleCondition(plan: PolicyPlan, blocked: readonly NotPlanned[]): PolicyCondition {
  const { reason, explain } = policyStanding(plan, blocked);
  const isUnknown = reason === "Paused" || reason === "NoNodes";
  const status = isUnknown ? "Unknown" : isInfeasible(reason) ? "False" : "True";
  return { type: "Feasible", status, reason, message: inEnglish(explain) };
}

function badStatusOf(
  { policy, nodes }: FleetPlan["bad"][number],
  departures: PolicyStatus["departures"],
): PolicyStatus {
  const { name, generation, uid, problem } = policy;
  const explain = `The policy cannot be read: ${nodeCount(nodes)} that it might own held back`;
  return {
    ...{ name, generation, uid, paused: false, matchedNodes: nodes, departures },
    spacing: { wantedSeconds: null, reachedSeconds: null, bestSeconds: null },
    forecast: { feasible: false, late: [], widenBySeconds: 0, explain },
    waves: null,
    nextDepartureAt: undefined,
    conditions: [
      { type: "Ready", status: "False", reason: "Invalid", message: problem },
      { type: "Feasible", status: "False", reason: "PolicyInvalid", message: explain },
    ],
  };
}

function waveCondition(waves: WaveStanding): PolicyCondition {
  const passed = waves.state === "Passed";
  const message = `${upperFirst(inEnglish(explainWaves(waves)))}.`;
  return { type: "WavesPassed", status: passed ? "True" : "False", reason: waves.state, message };
}

function upperFirst(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function inSeconds(span: Millis | null): number | null {
  return span === null ? null : span / 1000;
}

/** Whether a node should have the taint of nodes that depart soon. */
export type SoonStanding = "Soon" | "NotSoon";

export interface SoonChange {
  readonly node: NodeFacts;
  readonly to: SoonStanding;
}

export interface SoonQuestion {
  readonly nodes: readonly NodeFacts[];
  readonly departures: readonly Departure[];
  readonly plan: FleetPlan;
  readonly at: Instant;
  /** How long before its departure a node gets the taint; undefined: never. */
  readonly leadMs: Millis | undefined;
}

/**
 * The nodes that get or lose the taint now, and when the next one gets it. Nodes that are departing
 * or under notice are skipped, so that no write conflicts with their cordon.
 */
export function soonChanges(question: SoonQuestion): {
  readonly changes: readonly SoonChange[];
  readonly askAgainAt: Instant | undefined;
} {
  const { nodes, departures, at, leadMs } = question;
  const departAts = leadMs === undefined ? new Map<string, Instant>() : expectedSoon(question);
  const leaving = new Set(
    departures
      .filter((one) => isLive(one) && (isUnderWay(one) || isNoticed(one)))
      .map(({ node }) => node.uid),
  );
  const changes = nodes.flatMap((node): SoonChange[] => {
    const { uid, taints, annotations, unschedulable, deletionAt } = node;
    const departs = leaving.has(uid) || departureAnnotation in annotations;
    if (departs || deletionAt !== undefined) return [];
    const departAt = departAts.get(uid);
    const isSoon = departAt !== undefined && between(at, departAt) <= (leadMs ?? 0);
    // No pods are scheduled to a cordoned node anyway.
    const to: SoonStanding = isSoon && !unschedulable ? "Soon" : "NotSoon";
    const stands = taints.some(({ key }) => key === departingSoonTaint);
    return stands === (to === "Soon") ? [] : [{ node, to }];
  });
  const later = [...departAts.values()]
    .map((departAt) => minus(departAt, leadMs as Millis))
    .filter((soonAt) => soonAt > at);
  return {
    changes,
    askAgainAt: later.reduce<Instant | undefined>(
      (first, next) => earliest(first, next),
      undefined,
    ),
  };
}

/**
 * When each node leaves, by the plan of an active policy or by a request, whichever is first.
 */
function expectedSoon({ plan, departures }: SoonQuestion): ReadonlyMap<string, Instant> {
  const planned = plan.policies
    .filter(({ policy }) => !policy.paused && !policy.dryRun)
    .flatMap((one) => one.departures.map(({ node, departAt }) => [node.uid, departAt] as const));
  const asked = departures
    .filter((one) => isLive(one) && one.cause === "Manual" && !one.hold)
    .flatMap(({ node, departAt }) =>
      departAt === undefined ? [] : [[node.uid, departAt] as const],
    );
  const first = new Map(planned);
  for (const [uid, departAt] of asked) {
    first.set(uid, earlier(departAt, first.get(uid) ?? departAt));
  }
  return first;
}
