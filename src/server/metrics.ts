import { Counter, Gauge, Histogram, Registry } from "prom-client";
import {
  type CounterName,
  type GaugeName,
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

export const histograms: Readonly<Record<HistogramName, string>> = {
  lastcall_notice_to_cordon_seconds: "From a notice to the node's cordon.",
  lastcall_notice_to_detached_seconds:
    "From a notice to the machine's deregistration from its target groups (the action deregisterTargets).",
  lastcall_notice_to_last_pod_seconds: "From a notice to the exit of the node's last pod.",
  lastcall_deadline_left_seconds:
    "Time left until the deadline of the notice when the last pod had terminated.",
};

export const secondsBuckets = [0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 30, 60, 90, 120, 300];

/** The metrics of docs/reference/telemetry.md, in the form that Prometheus reads. */
export class PrometheusMetrics implements Metrics {
  readonly #registry = new Registry();
  readonly #counters = new Map<CounterName, Counter>();
  readonly #gauges = new Map<GaugeName, Gauge>();
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
      const help = histograms[name];
      const histogram = new Histogram({ name, help, buckets: secondsBuckets, registers });
      this.#histograms.set(name, histogram);
    }
  }

  count(name: CounterName, labels: MetricLabels): void {
    this.#counters.get(name)?.inc({ ...labels });
  }

  set(name: GaugeName, series: readonly { labels: MetricLabels; value: number }[]): void {
    const gauge = this.#gauges.get(name);
    gauge?.reset();
    for (const { labels, value } of series) gauge?.set({ ...labels }, value);
  }

  observe(name: HistogramName, value: number): void {
    this.#histograms.get(name)?.observe(value);
  }

  /** The text exposition format, and its content type. */
  async exposition(): Promise<{ readonly type: string; readonly text: string }> {
    return { type: this.#registry.contentType, text: await this.#registry.metrics() };
  }
}
