import type { PodIdentity } from "../core/cluster/pod.ts";

/** Structured log. `event` is a stable name, `fields` are data; neither may contain a secret. */
export interface Log {
  debug(event: string, fields?: LogFields): void;
  info(event: string, fields?: LogFields): void;
  warn(event: string, fields?: LogFields): void;
  error(event: string, fields?: LogFields): void;
}

export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

/**
 * The names of all metrics. No label contains a node, pod or event id, so that the number of series
 * does not grow with the fleet.
 */
export const metricNames = {
  counters: [
    "lastcall_notices_total",
    "lastcall_departures_total",
    "lastcall_evictions_total",
    "lastcall_pods_forced_total",
    "lastcall_pods_killed_total",
    "lastcall_pods_lost_total",
    "lastcall_actions_total",
    "lastcall_errors_total",
  ],
  gauges: [
    "lastcall_departures",
    "lastcall_plan_departures",
    "lastcall_plan_unreleasable",
    "lastcall_plan_spacing_seconds",
    "lastcall_plan_failing",
    "lastcall_next_deadline_seconds",
    "lastcall_nodes_managed",
    "lastcall_nodes_missing",
    "lastcall_fleet_unhealthy",
    "lastcall_audit_findings",
    "lastcall_audit_workloads",
    "lastcall_watch_silence_seconds",
  ],
  histograms: [
    "lastcall_notice_to_cordon_seconds",
    "lastcall_notice_to_detached_seconds",
    "lastcall_notice_to_last_pod_seconds",
    "lastcall_deadline_left_seconds",
    "lastcall_planned_drain_seconds",
  ],
} as const;

export type CounterName = (typeof metricNames.counters)[number];
export type GaugeName = (typeof metricNames.gauges)[number];
export type HistogramName = (typeof metricNames.histograms)[number];
export type MetricLabels = Readonly<Record<string, string>>;

/** A function gives the value at each scrape, such as a time that is left. */
export interface GaugeSample {
  readonly labels: MetricLabels;
  readonly value: number | (() => number);
}

export interface Metrics {
  /** Adds `by`, or 1. */
  count(name: CounterName, labels: MetricLabels, by?: number): void;
  /** Replaces every series of the gauge, so that stale series disappear. */
  set(name: GaugeName, series: readonly GaugeSample[]): void;
  observe(name: HistogramName, value: number, labels?: MetricLabels): void;
}

export type EventTarget =
  | {
      readonly kind: "Node" | "Departure" | "DeparturePolicy";
      readonly name: string;
      readonly uid: string;
    }
  | ({ readonly kind: "Pod" } & PodIdentity)
  | ({ readonly kind: "PodDisruptionBudget" } & PodIdentity);

interface EventKind {
  readonly type: "Normal" | "Warning" | "Normal or Warning";
  readonly about: readonly EventTarget["kind"][];
  readonly tells: string;
}

const aboutNode = ["Node"] as const;
const aboutDeparture = ["Node", "Departure"] as const;
const aboutPod = ["Node", "Departure", "Pod"] as const;
const aboutBudget = ["Node", "Departure", "Pod", "PodDisruptionBudget"] as const;

const aboutPolicy = ["DeparturePolicy"] as const;

/** Every Event that Lastcall writes, by its stable reason. */
export const clusterEvents = {
  PolicyInvalid: {
    ...{ type: "Warning", about: aboutPolicy },
    tells: "The policy is invalid, why, and how many nodes it holds back.",
  },
  FleetUnhealthy: {
    ...{ type: "Warning", about: aboutPolicy },
    tells:
      "No voluntary departure starts: too many nodes are not Ready, machines that have left are not replaced, or the API server shows nothing any more.",
  },
  FleetHealthy: { type: "Normal", about: aboutPolicy, tells: "Departures may start again." },
  FleetShrunk: {
    ...{ type: "Warning", about: aboutPolicy },
    tells:
      "Machines were not replaced for as long as they are expected back: the fleet counts as smaller.",
  },
  DepartureScheduled: {
    ...{ type: "Normal", about: aboutDeparture },
    tells: "The node has a departure time, and why this one.",
  },
  DeadlineBeatsWindow: {
    ...{ type: "Warning", about: aboutDeparture },
    tells: "It leaves at its deadline, because no earlier time is allowed.",
  },
  ReleaseImpossible: {
    ...{ type: "Warning", about: aboutNode },
    tells: "It is not drained, because its machine could not be released afterwards, and why.",
  },
  DrainImpossible: {
    ...{ type: "Warning", about: aboutNode },
    tells: "It is not drained, because its drain would be rolled back, and which pod is why.",
  },
  CloudUnreachable: {
    ...{ type: "Warning", about: aboutNode },
    tells:
      "It is not drained, because its cloud cannot be asked whether its machine can be released.",
  },
  DeadlineFirst: {
    ...{ type: "Warning", about: aboutNode },
    tells:
      "It was requested to leave at a time past its deadline, and leaves as planned before that.",
  },
  DepartureStarted: { type: "Normal", about: aboutDeparture, tells: "The departure has started." },
  DepartureEnded: {
    ...{ type: "Normal or Warning", about: aboutDeparture },
    tells: "The departure has ended, and how; a Warning if that was not as planned.",
  },
  NoticeReceived: {
    ...{ type: "Warning", about: aboutNode },
    tells:
      "The cloud has given notice, and the policy's reaction is `Notify`, or it is in dry run: the node keeps running.",
  },
  ActionFailed: {
    ...{ type: "Warning", about: aboutDeparture },
    tells: "An action of the policy failed at the departure of the node, and why.",
  },
  BudgetImpossible: {
    ...{ type: "Warning", about: aboutBudget },
    tells: "Before the cordon: the pod's budget can never allow a disruption.",
  },
  NoCapacityElsewhere: {
    ...{ type: "Warning", about: aboutPod },
    tells: "Before the cordon: the pod fits on no other node now.",
  },
  ReplacementTimeout: {
    ...{ type: "Warning", about: aboutDeparture },
    tells: "The capacity to reserve before the drain was not available in time.",
  },
  RequestRefused: {
    ...{ type: "Warning", about: aboutDeparture },
    tells: "A request for the departure failed and is sent again, and what the server answered.",
  },
  DrainBlocked: {
    ...{ type: "Warning", about: aboutBudget },
    tells: "The pod blocks the drain, with the reason given by its budget or by the API server.",
  },
  PodCut: {
    ...{ type: "Warning", about: aboutPod },
    tells: "The pod's grace period is truncated, because the notice leaves no more time.",
  },
  PodForced: {
    ...{ type: "Warning", about: aboutBudget },
    tells:
      "The pod was deleted instead of evicted, what the API server had answered last, and why.",
  },
  PodKilled: {
    ...{ type: "Warning", about: aboutDeparture },
    tells: "A pod had not terminated at the end of its grace period.",
  },
  PodLeftBehind: {
    ...{ type: "Warning", about: aboutDeparture },
    tells: "A pod was still on the node when the drain ended.",
  },
  VolumesAttached: {
    ...{ type: "Warning", about: aboutDeparture },
    tells: "The time ran out before the node's volumes were detached.",
  },
} as const satisfies Readonly<Record<string, EventKind>>;

export type EventReason = keyof typeof clusterEvents;

/** A Kubernetes Event. Repeats of one reason about one object increment its count. */
export interface ClusterEvent {
  readonly type: "Normal" | "Warning";
  readonly reason: EventReason;
  readonly message: string;
  readonly about: EventTarget;
}

export interface EventSink {
  /** Never throws or blocks: an Event that cannot be written is counted and dropped. */
  emit(event: ClusterEvent): void;
}

/** Log, Events and metrics of a component. */
export interface Telemetry {
  readonly log: Log;
  readonly events: EventSink;
  readonly metrics: Metrics;
}
