import type { WaveStanding } from "../limits/wave.ts";
import type { ReleaseStanding } from "../policy/release-answer.ts";
import type { Reason } from "../reason/reason.ts";
import { formatInstant, type Millis } from "../time/time.ts";
import { explainForecast, explainPlan, explainRelease } from "./explain-plan.ts";
import type { FleetPlan, NotPlanned, PlannedDeparture, PolicyPlan } from "./fleet-plan.ts";

/** The report of `lastcall plan -o json`; names and shape are pinned by the contract. */
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
    /** Absent where nothing is known that keeps machines from being released after the drain. */
    readonly release?: ReleaseReport;
  };
  /** How many departures have another instant than in the plan before. */
  readonly moved: number;
  /** Absent where the policy has none. */
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
  readonly leftWell: number;
  readonly underWay: number;
  /** The name of a Departure; null where nothing halts them. */
  readonly haltedBy: string | null;
}

export interface DepartureReport {
  readonly node: string;
  readonly uid: string;
  readonly providerID: string;
  readonly zone: string;
  readonly bornAt: string;
  /** Where the launch time comes from: the cloud's record of the instance, or the Node object. */
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

/** The plan as others read it: RFC 3339 with milliseconds, spans in seconds. */
export function planReport(plan: FleetPlan): PlanReport {
  return {
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "Plan",
    at: formatInstant(plan.at),
    policies: plan.policies.map(policyReport),
    notPlanned: plan.notPlanned.map(notPlannedReport),
  };
}

/**
 * The warnings for stderr: policies of one weight that select the same nodes, machines that would
 * stay.
 */
export function planWarnings(plan: FleetPlan): readonly string[] {
  const stays = plan.policies.flatMap(({ policy, release, departures }) =>
    release === undefined
      ? []
      : `Policy ${policy.name}: ${explainRelease(release, departures.length)}`,
  );
  return [...tieWarnings(plan), ...stays];
}

function tieWarnings(plan: FleetPlan): readonly string[] {
  return plan.ties.map(({ policy, tiedWith, nodes }) => {
    const others = tiedWith.join(", ");
    const matched = `${nodes} ${nodes === 1 ? "node" : "nodes"}`;
    return `Policies ${policy} and ${others} have the same weight and select the same ${matched}: ${policy} applies, as the first by name`;
  });
}

function policyReport(plan: PolicyPlan): PolicyReport {
  const { policy, matched, spacing, forecast, moved } = plan;
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
      feasible: forecast.feasible,
      late: forecast.late,
      widenBySeconds: forecast.widenBySeconds,
      explain: explainForecast(plan),
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
