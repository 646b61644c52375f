import type { GaugeSample, MetricLabels, Metrics } from "../../src/contracts/telemetry.ts";

/** What a controller has counted, set and observed, for tests. */
export class RecordedMetrics implements Metrics {
  /** `name label=value` for each count. */
  readonly counted: string[] = [];
  readonly observed: {
    readonly name: string;
    readonly value: number;
    readonly labels?: MetricLabels | undefined;
  }[] = [];
  /** The values are those of a scrape at the time of reading. */
  readonly gauges = new Map<string, readonly { labels: MetricLabels; value: number }[]>();

  count(name: string, labels: MetricLabels, by = 1): void {
    const pairs = Object.entries(labels).map(([label, value]) => `${label}=${value}`);
    const line = [name, ...pairs].join(" ");
    for (let left = by; left > 0; left -= 1) this.counted.push(line);
  }

  set(name: string, series: readonly GaugeSample[]): void {
    this.gauges.set(name, series.map(scraped));
  }

  observe(name: string, value: number, labels?: MetricLabels): void {
    this.observed.push({ name, value, ...(labels && { labels }) });
  }
}

function scraped({ labels, value }: GaugeSample): { labels: MetricLabels; value: number } {
  if (typeof value === "number") return { labels, value };
  return Object.defineProperty({ labels, value: 0 }, "value", { get: value, enumerable: true });
}
