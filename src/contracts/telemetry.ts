import type { PodIdentity } from "../core/pod.ts";

/** Where log lines go. `event` is a stable word, `fields` are data; no secret belongs in either. */
export interface Log {
  debug(event: string, fields?: LogFields): void;
  info(event: string, fields?: LogFields): void;
  warn(event: string, fields?: LogFields): void;
  error(event: string, fields?: LogFields): void;
}

export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

/** The metrics of contract.md section 4, and gauges of the audit and of the plan beside them. No label holds a node, pod or event id. */
export const metricNames = {
  counters: [
    "lastcall_notices_total",
    "lastcall_departures_total",
    "lastcall_evictions_total",
    "lastcall_pods_forced_total",
    "lastcall_actions_total",
    "lastcall_errors_total",
  ],
  gauges: [
    "lastcall_departures",
    "lastcall_plan_departures",
    "lastcall_plan_spacing_seconds",
    "lastcall_nodes_managed",
    "lastcall_audit_findings",
    "lastcall_audit_workloads",
  ],
  histograms: [
    "lastcall_notice_to_cordon_seconds",
    "lastcall_notice_to_detached_seconds",
    "lastcall_notice_to_last_pod_seconds",
    "lastcall_deadline_left_seconds",
  ],
} as const;

export type CounterName = (typeof metricNames.counters)[number];
export type GaugeName = (typeof metricNames.gauges)[number];
export type HistogramName = (typeof metricNames.histograms)[number];
export type MetricLabels = Readonly<Record<string, string>>;

export interface Metrics {
  count(name: CounterName, labels: MetricLabels): void;
  /** Replaces every series of the gauge, so that what is gone is not shown for ever. */
  set(name: GaugeName, series: readonly { labels: MetricLabels; value: number }[]): void;
  observe(name: HistogramName, value: number): void;
}

export type EventTarget =
  | { readonly kind: "Node"; readonly name: string; readonly uid: string }
  | ({ readonly kind: "Pod" } & PodIdentity)
  | ({ readonly kind: "PodDisruptionBudget" } & PodIdentity);

/** A Kubernetes Event: `reason` is stable, the same one about the same thing is counted up. */
export interface ClusterEvent {
  readonly type: "Normal" | "Warning";
  readonly reason: string;
  readonly message: string;
  readonly about: EventTarget;
}

export interface EventSink {
  /** Never throws and never blocks: an Event that cannot be written is counted and dropped. */
  emit(event: ClusterEvent): void;
}
