import { compareNames } from "../cluster/name-order.ts";
import type { WaveStanding } from "../limits/budget.ts";
import type { ReleaseStanding } from "../policy/release-answer.ts";
import { english, inEnglish, type Saying, sentenceOf } from "../reason/english.ts";
import type { Reason } from "../reason/reason.ts";
import { between, formatInstant, type Instant, type Millis } from "../time/time.ts";
import { explainRelease } from "./explain-forecast.ts";
import type {
  Barrier,
  FleetPlan,
  LaunchTimeSource,
  PlannedDeparture,
  PolicyPlan,
} from "./fleet-plan.ts";
import type { NotPlanned, NotPlannedReason } from "./not-planned.ts";
import { blockedNodes, isInfeasible, policyStanding } from "./policy-standing.ts";
import { explainRepeated, repeatedCure, repeatedDeparture } from "./repeated-departure.ts";

/** The facts for a sentence about one node's place in the plan, or outside it. */
export interface PlanFacts {
  /** The node's name. */
  readonly node: string;
  readonly policy?: string | null | undefined;
  readonly bornAt?: Instant | undefined;
  readonly bornFrom?: LaunchTimeSource | undefined;
  readonly earliestAt?: Instant | undefined;
  readonly deadlineAt?: Instant | undefined;
  readonly departAt?: Instant | undefined;
  readonly window?: string | null | undefined;
  readonly movedFrom?: Instant | undefined;
  readonly heldBackTo?: Instant | undefined;
  readonly barrier?: Barrier | undefined;
  readonly detail?: string | undefined;
}

/** Explains in one sentence why a node leaves when it does, or has no planned departure. */
export function explainPlan(reason: Reason, facts: PlanFacts): string {
  return inEnglish(sayPlan(reason, facts));
}

export function sayPlan(reason: Reason, facts: PlanFacts): Saying {
  const { node, policy, detail, departAt, heldBackTo, barrier } = facts;
  if (departAt === undefined) {
    const hasSentence = Object.hasOwn(english.notPlanned, reason);
    if (!hasSentence) return `${node} has no planned departure: ${reason}`;
    return sentenceOf(`notPlanned.${reason as NotPlannedReason}`, { node, policy, detail });
  }
  const { bornAt, earliestAt, deadlineAt, window, movedFrom: movedAt } = facts;
  return sentenceOf(`planned.${plannedBy(reason, barrier)}`, {
    ...{ node, policy, bornAt, earliestAt, deadlineAt, departAt, window, movedAt },
    bornFrom: { says: facts.bornFrom === "Instance" ? "limit.Cloud" : "limit.NodeObject" },
    until: barrier?.untilAt,
    waitMs: heldBackTo && between(departAt, heldBackTo),
  });
}

function plannedBy(reason: Reason, barrier: Barrier | undefined) {
  if (reason === "DeadlineBeatsWindow" && barrier !== undefined) return barrierWords[barrier.by];
  const isOther = reason === "DeadlineBeatsWindow" || reason === "Missed" || reason === "Overdue";
  return isOther ? reason : "Spaced";
}

const barrierWords = { Hold: "DeadlineBeatsHold", Rest: "DeadlineBeatsRest" } as const;

/** The report of `lastcall plan -o json`. Programs read it, so names and shape must not change. */
export interface PlanReport {
  readonly apiVersion: "lastcall.dev/v1alpha1";
  readonly kind: "Plan";
  readonly at: string;
  readonly policies: readonly PolicyReport[];
  readonly notPlanned: readonly NotPlannedReport[];
}

export interface PolicyReport {
  readonly name: string;
  readonly matched: number;
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
    /** Absent if nothing is known to prevent the release of machines after the drain. */
    readonly release?: ReleaseReport;
  };
  /** How many departures have another instant than in the previous plan. */
  readonly moved: number;
  /** Absent if the policy has none. */
  readonly waves?: WaveReport;
  readonly departures: readonly DepartureReport[];
}

export interface ReleaseReport {
  readonly possible: false;
  readonly reason: Reason;
  readonly nodes: readonly string[];
}

export interface WaveReport {
  readonly state: "UnderWay" | "Passed" | "Halted";
  readonly wave: number;
  readonly of: number;
  readonly size: number;
  readonly succeeded: number;
  readonly underWay: number;
  /** The name of a Departure; null if nothing halts them. */
  readonly haltedBy: string | null;
}

export interface DepartureReport {
  readonly node: string;
  readonly uid: string;
  readonly providerID: string;
  readonly zone: string;
  readonly bornAt: string;
  /** The source of the launch time: the cloud's record of the instance, or the Node object. */
  readonly bornFrom: "Instance" | "Node";
  readonly earliestAt: string;
  readonly deadlineAt: string;
  readonly departAt: string;
  readonly window: string | null;
  readonly reason: Reason;
  readonly explain: string;
}

export interface NotPlannedReport {
  readonly node: string;
  readonly policy: string | null;
  readonly reason: Reason;
  readonly explain: string;
}

/** The plan as JSON: instants in RFC 3339 with milliseconds, spans in seconds. */
export function planReport(plan: FleetPlan): PlanReport {
  return {
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "Plan",
    at: formatInstant(plan.at),
    policies: plan.policies.map((one) => policyReport(one, plan)),
    notPlanned: plan.notPlanned
      .map(notPlannedReport)
      .toSorted((a, b) => compareNames(a.node, b.node)),
  };
}

/**
 * The warnings for stderr: policies of the same weight that select the same nodes, machines that
 * could not be released, and nodes that leave twice for one opening of the windows.
 */
export function planWarnings(plan: FleetPlan): readonly string[] {
  const stays = plan.policies.flatMap(({ policy, release, departures }) =>
    release === undefined
      ? []
      : `Policy ${policy.name}: ${inEnglish(explainRelease(release, departures.length))}`,
  );
  const twice = plan.policies.flatMap(({ policy }) => {
    const repeated = repeatedDeparture(policy, plan.at);
    return repeated === undefined
      ? []
      : `Policy ${policy.name}: ${explainRepeated(repeated)}: ${repeatedCure}`;
  });
  return [...tieWarnings(plan), ...stays, ...twice];
}

function tieWarnings(plan: FleetPlan): readonly string[] {
  return plan.ties.map(({ policy, tiedWith, nodes }) => {
    const others = tiedWith.join(", ");
    const matched = `${nodes} ${nodes === 1 ? "node" : "nodes"}`;
    return `Policies ${policy} and ${others} have the same weight and select the same ${matched}: ${policy} applies, as the first by name`;
  });
}

function policyReport(plan: PolicyPlan, fleet: FleetPlan): PolicyReport {
  const { policy, matched, spacing, forecast, moved } = plan;
  const { reason, explain } = policyStanding(plan, blockedNodes(fleet, policy.name));
  return {
    name: policy.name,
    matched,
    moved,
    spacing: {
      wantedSeconds: inSeconds(spacing.wantedMs),
      reachedSeconds: inSeconds(spacing.reachedMs),
      bestSeconds: inSeconds(spacing.bestMs),
    },
    forecast: {
      feasible: !isInfeasible(reason),
      late: forecast.late,
      widenBySeconds: forecast.widenBySeconds,
      explain: inEnglish(explain),
      ...(plan.release && { release: releaseReport(plan.release) }),
    },
    ...(plan.waves && { waves: waveReport(plan.waves) }),
    departures: plan.departures.map((one) => departureReport(one, policy.name)),
  };
}

function releaseReport({ reason, nodes }: ReleaseStanding): ReleaseReport {
  return { possible: false, reason, nodes };
}

export function waveReport({ haltedBy, ...standing }: WaveStanding): WaveReport {
  return { ...standing, haltedBy: haltedBy?.departure ?? null };
}

function departureReport(one: PlannedDeparture, policy: string): DepartureReport {
  const { node, zone, window, reason } = one;
  return {
    node: node.name,
    uid: node.uid,
    providerID: node.providerID ?? "",
    zone,
    bornAt: formatInstant(one.bornAt),
    bornFrom: one.bornFrom,
    earliestAt: formatInstant(one.earliestAt),
    deadlineAt: formatInstant(one.deadlineAt),
    departAt: formatInstant(one.departAt),
    window,
    reason,
    explain: explainPlan(reason, { ...one, node: node.name, policy }),
  };
}

function notPlannedReport({ node, policy, reason, detail }: NotPlanned): NotPlannedReport {
  const explain = explainPlan(reason, { node: node.name, policy, detail });
  return { node: node.name, policy, reason, explain };
}

function inSeconds(span: Millis | null): number | null {
  return span === null ? null : span / 1000;
}
