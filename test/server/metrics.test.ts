import { describe, expect, it } from "vitest";
import { counters, gauges, histograms, PrometheusMetrics } from "../../src/server/metrics.ts";

describe("the metrics", () => {
  it.each(Object.entries({ ...counters, ...gauges, ...histograms }))(
    "%s has only labels whose values do not grow with the fleet",
    (_, { labels }) => {
      const perObject = ["node", "pod", "departure", "instance", "machine", "zone", "namespace"];
      expect(labels.filter((label) => perObject.includes(label))).toEqual([]);
    },
  );

  it("ask a gauge for its value at each scrape", async () => {
    const metrics = new PrometheusMetrics();
    let left = 90;
    const labels = { policy: "spot" };
    metrics.set("lastcall_next_deadline_seconds", [{ labels, value: () => left }]);
    const shown = async () => (await metrics.exposition()).text.match(/^lastcall_next_.*$/gm);
    expect(await shown()).toEqual(['lastcall_next_deadline_seconds{policy="spot"} 90']);
    left = -5;
    expect(await shown()).toEqual(['lastcall_next_deadline_seconds{policy="spot"} -5']);
    metrics.set("lastcall_next_deadline_seconds", []);
    expect(await shown()).toBeNull();
  });

  it("count several at once, and observe by label", async () => {
    const metrics = new PrometheusMetrics();
    const labels = { policy: "spot", cause: "Planned" };
    metrics.count("lastcall_pods_killed_total", labels, 3);
    metrics.count("lastcall_pods_killed_total", labels);
    const ended = { outcome: "Planned", reason: "Drained" };
    metrics.observe("lastcall_planned_drain_seconds", 42, ended);
    const { text } = await metrics.exposition();
    expect(text).toContain('lastcall_pods_killed_total{policy="spot",cause="Planned"} 4');
    const series = 'outcome="Planned",reason="Drained"';
    expect(text).toContain(`lastcall_planned_drain_seconds_sum{${series}} 42`);
    expect(text).toContain(`lastcall_planned_drain_seconds_bucket{le="30",${series}} 0`);
    expect(text).toContain(`lastcall_planned_drain_seconds_bucket{le="60",${series}} 1`);
  });
});
