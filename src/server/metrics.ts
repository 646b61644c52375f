import { Counter, Gauge, Histogram, Registry } from "prom-client";
import {
  type CounterName,
  type GaugeName,
  type HistogramName,
  type MetricLabels,
  type Metrics,
  metricNames,
} from "../contracts/telemetry.ts";
import { counters, gauges, histograms, secondsBuckets } from "./metric-list.ts";

/** The metrics of contract.md section 4 as Prometheus reads them. */
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
