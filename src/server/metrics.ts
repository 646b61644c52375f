import { Counter, Gauge, Histogram, Registry } from "prom-client";
import {
  type CounterName,
  type GaugeName,
  type GaugeSample,
  type HistogramName,
  type MetricLabels,
  type Metrics,
  metricNames,
} from "../contracts/telemetry.ts";

/** A metric's purpose and labels, as Prometheus and the reference show them. */
export interface Described {
  readonly help: string;
  readonly labels: readonly string[];
}

export const counters: Readonly<Record<CounterName, Described>> = {
  lastcall_notices_total: {
    help: "Notices received, by cloud, kind and source.",
    labels: ["cloud", "kind", "source"],
  },
  lastcall_departures_total: {
    help: "Departures that ended, by outcome; of those that had not started, only the preempted ones.",
    labels: ["policy", "cause", "outcome"],
  },
  lastcall_evictions_total: {
    help: "Requests to the eviction API, by result.",
    labels: ["result"],
  },
  lastcall_pods_forced_total: {
    help: "Pods deleted regardless of their budget, by reason.",
    labels: ["reason"],
  },
  lastcall_pods_killed_total: {
    help: "Pods killed at the end of their grace period, counted when their departure ends.",
    labels: ["policy", "cause"],
  },
  lastcall_pods_lost_total: {
    help: "Pods that were still on a machine when it ended, of departures that had started, counted when they end.",
    labels: ["policy", "cause"],
  },
  lastcall_actions_total: {
    help: "Actions around a departure, by result.",
    labels: ["action", "result"],
  },
  lastcall_errors_total: { help: "Errors by code (docs/errors.md).", labels: ["code"] },
};

export const gauges: Readonly<Record<GaugeName, Described>> = {
  lastcall_departures: {
    help: "Departures that have not ended, by phase.",
    labels: ["policy", "phase"],
  },
  lastcall_plan_departures: {
    help: "Planned departures by reason; DeadlineBeatsWindow and Overdue are those that are late.",
    labels: ["policy", "reason"],
  },
  lastcall_plan_unreleasable: {
    help: "Planned departures that cannot start, because their nodes could not be drained or their machines not be released: DrainImpossible, ReleaseImpossible or CloudUnreachable.",
    labels: ["policy", "reason"],
  },
  lastcall_plan_spacing_seconds: {
    help: "The smallest gap between departures: wanted, reached, and the largest possible.",
    labels: ["policy", "kind"],
  },
  lastcall_plan_failing: {
    help: "1 while the last planning pass has failed: no planned departures start, notices are still handled.",
    labels: [],
  },
  lastcall_next_deadline_seconds: {
    help: "Time until the first deadline of a node that has not left, planned or announced by the cloud; negative if it has passed.",
    labels: ["policy"],
  },
  lastcall_nodes_managed: { help: "Nodes that a policy matches.", labels: ["policy"] },
  lastcall_nodes_missing: {
    help: "Machines of a policy that have left and that nothing has replaced yet.",
    labels: ["policy"],
  },
  lastcall_fleet_unhealthy: {
    help: "1 while no voluntary departure of a policy starts, because too many nodes are not Ready or are not replaced.",
    labels: ["policy"],
  },
  lastcall_audit_findings: {
    help: "Audit findings on workloads that can run on a policy's nodes, by rule.",
    labels: ["policy", "rule", "severity"],
  },
  lastcall_audit_workloads: {
    help: "Workloads that can run on a policy's nodes, by whether their grace period is truncated.",
    labels: ["policy", "platform", "grace"],
  },
  lastcall_watch_silence_seconds: {
    help: "Time since a watch last received anything from the API server, by resource; up to a minute is normal.",
    labels: ["kind"],
  },
};

/** The buckets of what happens within a notice. */
export const secondsBuckets = [0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 30, 60, 90, 120, 300];

/** Drains without a notice may take as long as grace periods and `drain.timeout` allow. */
const drainBuckets = [1, 5, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200];

export const histograms: Readonly<
  Record<HistogramName, Described & { readonly buckets: readonly number[] }>
> = {
  lastcall_notice_to_cordon_seconds: {
    help: "From a notice to the node's cordon.",
    ...{ labels: [], buckets: secondsBuckets },
  },
  lastcall_notice_to_detached_seconds: {
    help: "From a notice to the machine's deregistration from its target groups (the action deregisterTargets).",
    ...{ labels: [], buckets: secondsBuckets },
  },
  lastcall_notice_to_last_pod_seconds: {
    help: "From a notice to the exit of the node's last pod.",
    ...{ labels: [], buckets: secondsBuckets },
  },
  lastcall_deadline_left_seconds: {
    help: "Time left until the deadline of the notice when the last pod had terminated.",
    ...{ labels: [], buckets: secondsBuckets },
  },
  lastcall_planned_drain_seconds: {
    help: "Drains without a notice, by the outcome of the departure and by what ended the drain: Drained, CutShort, GaveUp, Cancelled, NodeGone or MachineReplaced.",
    ...{ labels: ["outcome", "reason"], buckets: drainBuckets },
  },
};

/** The metrics of docs/reference/telemetry.md, in the form that Prometheus reads. */
export class PrometheusMetrics implements Metrics {
  readonly #registry = new Registry();
  readonly #counters = new Map<CounterName, Counter>();
  readonly #gauges = new Map<GaugeName, Gauge>();
  readonly #samples = new Map<GaugeName, readonly GaugeSample[]>();
  readonly #histograms = new Map<HistogramName, Histogram>();

  constructor() {
    const registers = [this.#registry];
    for (const name of metricNames.counters) {
      const { help, labels } = counters[name];
      this.#counters.set(name, new Counter({ name, help, labelNames: [...labels], registers }));
    }
    for (const name of metricNames.gauges) {
      const { help, labels } = gauges[name];
      this.#gauges.set(name, new Gauge({ name, help, labelNames: [...labels], registers }));
    }
    for (const name of metricNames.histograms) {
      const { help, labels, buckets } = histograms[name];
      const shape = { name, help, labelNames: [...labels], buckets: [...buckets], registers };
      this.#histograms.set(name, new Histogram(shape));
    }
  }

  count(name: CounterName, labels: MetricLabels, by = 1): void {
    this.#counters.get(name)?.inc({ ...labels }, by);
  }

  set(name: GaugeName, series: readonly GaugeSample[]): void {
    this.#samples.set(name, series);
  }

  observe(name: HistogramName, value: number, labels: MetricLabels = {}): void {
    this.#histograms.get(name)?.observe({ ...labels }, value);
  }

  /** The text exposition format, and its content type. */
  async exposition(): Promise<{ readonly type: string; readonly text: string }> {
    for (const [name, series] of this.#samples) {
      const gauge = this.#gauges.get(name);
      gauge?.reset();
      for (const { labels, value } of series) {
        gauge?.set({ ...labels }, typeof value === "number" ? value : value());
      }
    }
    return { type: this.#registry.contentType, text: await this.#registry.metrics() };
  }
}
