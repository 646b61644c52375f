import type { Departure } from "./departure.ts";
import { explainForecast } from "./explain-plan.ts";
import type { FleetPlan, PolicyPlan } from "./fleet-plan.ts";
import { type WaveReport, waveReport } from "./plan-report.ts";
import { hours, type Instant, type Millis, plus } from "./time.ts";
import { explainWaves, type WaveStanding } from "./wave.ts";

/** What the controller made of one policy. */
export interface PolicyStatus {
  readonly name: string;
  readonly generation: number | undefined;
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
  /** Null where the policy has none. */
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

/** Names of late nodes in a status; a fleet that is late as a whole must not fill an object. */
const lateLimit = 20;

/** The status of every policy that could be read. */
export function policyStatuses(
  plan: FleetPlan,
  departures: readonly Departure[],
): readonly PolicyStatus[] {
  const byPolicy = Map.groupBy(departures, (one) => one.policy ?? "");
  return plan.policies.map((one) => statusOf(one, byPolicy.get(one.policy.name) ?? [], plan.at));
}

function statusOf(
  { policy, matched, spacing, forecast, ...plan }: PolicyPlan,
  own: readonly Departure[],
  at: Instant,
): PolicyStatus {
  const explain = explainForecast({ policy, matched, spacing, forecast, ...plan });
  const waits = ({ status }: Departure) => status.phase === "Scheduled" || status.phase === "Held";
  const ended = ({ status }: Departure) => status.phase === "Ended";
  const recent = ({ status }: Departure) =>
    status.endedAt !== undefined && plus(status.endedAt, hours(24)) > at;
  return {
    name: policy.name,
    generation: policy.generation,
    matchedNodes: matched,
    departures: {
      scheduled: own.filter(waits).length,
      underWay: own.filter((one) => !waits(one) && !ended(one)).length,
      done24h: own.filter((one) => ended(one) && recent(one)).length,
    },
    spacing: {
      wantedSeconds: inSeconds(spacing.wantedMs),
      reachedSeconds: inSeconds(spacing.reachedMs),
      bestSeconds: inSeconds(spacing.bestMs),
    },
    forecast: {
      feasible: forecast.feasible,
      late: forecast.late.slice(0, lateLimit),
      widenBySeconds: forecast.widenBySeconds,
      explain,
    },
    waves: plan.waves === undefined ? null : waveReport(plan.waves),
    nextDepartureAt: plan.departures[0]?.departAt,
    conditions: [
      { type: "Ready", status: "True", reason: "Understood", message: "The policy is in force." },
      {
        type: "Feasible",
        status: forecast.feasible ? "True" : "False",
        reason: forecast.feasible ? "InTime" : "Late",
        message: explain,
      },
      ...(plan.waves === undefined ? [] : [waveCondition(plan.waves)]),
    ],
  };
}

function waveCondition(waves: WaveStanding): PolicyCondition {
  const passed = waves.state === "Passed";
  const message = `${upperFirst(explainWaves(waves))}.`;
  return { type: "WavesPassed", status: passed ? "True" : "False", reason: waves.state, message };
}

function upperFirst(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function inSeconds(span: Millis | null): number | null {
  return span === null ? null : span / 1000;
}
