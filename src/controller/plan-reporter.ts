import type { MetricLabels, Telemetry } from "../contracts/telemetry.ts";
import { type Departure, isLive } from "../core/departure/departure.ts";
import type { FleetPlan, PolicyPlan } from "../core/plan/fleet-plan.ts";

interface Sample {
  readonly labels: MetricLabels;
  readonly value: number;
}

/**
 * Shows the plan as gauges: nodes managed, departures by reason and by phase, spacing. And tells of
 * policies that cannot be read.
 */
export class PlanReporter {
  readonly #telemetry: Telemetry;
  /** What was told of each policy, so that it is told once until it is another. */
  #told: ReadonlyMap<string, string> = new Map();

  constructor(telemetry: Telemetry) {
    this.#telemetry = telemetry;
  }

  show(plan: FleetPlan, departures: readonly Departure[]): void {
    const { metrics } = this.#telemetry;
    metrics.set(
      "lastcall_nodes_managed",
      plan.policies.map(({ policy, matched }) => ({
        labels: { policy: policy.name },
        value: matched,
      })),
    );
    metrics.set("lastcall_plan_failing", [{ labels: {}, value: 0 }]);
    metrics.set("lastcall_plan_departures", plan.policies.flatMap(reasonSamples));
    metrics.set("lastcall_plan_unreleasable", plan.policies.flatMap(unreleasableSamples));
    metrics.set("lastcall_plan_spacing_seconds", plan.policies.flatMap(spacingSamples));
    metrics.set("lastcall_departures", phaseSamples(departures));
  }

  /** By log and Event; the number of nodes changes all the time and is no news by itself. */
  tellInvalid({ bad }: FleetPlan): void {
    const { log, events } = this.#telemetry;
    for (const { policy, nodes } of bad) {
      const { name, uid, problem } = policy;
      if (this.#told.get(name) === problem) continue;
      log.warn("policy-invalid", { policy: name, problem, nodes });
      if (uid === undefined) continue;
      const message = `The policy cannot be read, ${nodes} nodes that it might own are held back: ${problem}`;
      const about = { kind: "DeparturePolicy", name, uid } as const;
      events.emit({ type: "Warning", reason: "PolicyInvalid", message, about });
    }
    this.#told = new Map(bad.map(({ policy }) => [policy.name, policy.problem]));
  }
}

function reasonSamples({ policy, departures }: PolicyPlan): Sample[] {
  const byReason = Map.groupBy(departures, ({ reason }) => reason);
  return [...byReason].map(([reason, those]) => ({
    labels: { policy: policy.name, reason },
    value: those.length,
  }));
}

function unreleasableSamples({ policy, release }: PolicyPlan): Sample[] {
  if (release === undefined) return [];
  const { reason, nodes } = release;
  return [{ labels: { policy: policy.name, reason }, value: nodes.length }];
}

function spacingSamples({ policy, spacing }: PolicyPlan): Sample[] {
  const { wantedMs, reachedMs, bestMs } = spacing;
  const kinds = { wanted: wantedMs, reached: reachedMs, best: bestMs };
  return Object.entries(kinds).flatMap(([kind, spanMs]) =>
    spanMs === null ? [] : [{ labels: { policy: policy.name, kind }, value: spanMs / 1000 }],
  );
}

function phaseSamples(departures: readonly Departure[]): Sample[] {
  const counts = new Map<string, { labels: MetricLabels; value: number }>();
  for (const departure of departures.filter(isLive)) {
    const labels = { policy: departure.policy ?? "", phase: departure.status.phase };
    const key = `${labels.policy}/${labels.phase}`;
    counts.set(key, { labels, value: (counts.get(key)?.value ?? 0) + 1 });
  }
  return [...counts.values()];
}
