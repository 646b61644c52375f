/** Grafana's dashboard on Lastcall's metrics, from a list of panels. */
import type { CounterName, GaugeName, HistogramName } from "../src/contracts/telemetry.ts";

type MetricName = CounterName | GaugeName | HistogramName;

interface Panel {
  readonly title: string;
  readonly about: string;
  readonly kind: "stat" | "timeseries" | "table";
  readonly unit?: "s" | "short";
  /** The metric that it shows; it must exist. */
  readonly of: MetricName;
  /** PromQL, and the legend of its series. */
  readonly queries: readonly (readonly [expr: string, legend: string])[];
}

function quantiles(of: HistogramName): Panel["queries"] {
  const rate = `sum by (le) (rate(${of}_bucket[$__rate_interval]))`;
  return [
    [`histogram_quantile(0.5, ${rate})`, "median"],
    [`histogram_quantile(0.99, ${rate})`, "99th percentile"],
  ];
}

/** Standby replicas report the plan as well; the largest value is the leader's. */
function byPolicy(of: GaugeName, label: string, rest = ""): Panel["queries"] {
  return [
    [`max by (policy, ${label}) (${of}{policy=~"$policy"${rest}})`, `{{policy}} {{${label}}}`],
  ];
}

export const panels: readonly Panel[] = [
  {
    ...{ title: "Nodes under a policy", kind: "stat", of: "lastcall_nodes_managed" },
    about: "Number of nodes that each policy matches.",
    queries: [['max by (policy) (lastcall_nodes_managed{policy=~"$policy"})', "{{policy}}"]],
  },
  {
    ...{ title: "Late departures", kind: "stat", of: "lastcall_plan_departures" },
    about:
      "Nodes that cannot leave inside the windows before their deadline. `lastcall plan` lists them.",
    queries: [
      [
        'sum(max by (policy, reason) (lastcall_plan_departures{policy=~"$policy",reason=~"DeadlineBeatsWindow|Overdue"})) or vector(0)',
        "late",
      ],
    ],
  },
  {
    ...{ title: "Cannot be released", kind: "stat", of: "lastcall_plan_unreleasable" },
    about:
      "Departures that do not start, because the machines could not be released after the drain.",
    queries: [
      [
        'sum(max by (policy, reason) (lastcall_plan_unreleasable{policy=~"$policy"})) or vector(0)',
        "unreleasable",
      ],
    ],
  },
  {
    ...{ title: "Departures under way", kind: "timeseries", of: "lastcall_departures" },
    about: "Departures in progress, by phase.",
    queries: byPolicy("lastcall_departures", "phase", ',phase!="Scheduled"'),
  },
  {
    ...{
      title: "Departure outcomes per hour",
      kind: "timeseries",
      of: "lastcall_departures_total",
    },
    about:
      "Planned departures went as planned. Preempted, Forced and Expired ones ended because of the cloud or a deadline.",
    queries: [
      [
        'sum by (cause, outcome) (increase(lastcall_departures_total{policy=~"$policy"}[1h]))',
        "{{cause}} {{outcome}}",
      ],
    ],
  },
  {
    ...{ title: "Gap between departures", kind: "timeseries", unit: "s" },
    of: "lastcall_plan_spacing_seconds",
    about: "The wanted, the reached and the largest possible gap.",
    queries: byPolicy("lastcall_plan_spacing_seconds", "kind"),
  },
  {
    ...{ title: "Notices per hour", kind: "timeseries", of: "lastcall_notices_total" },
    about: "Notices from the clouds, by kind and source.",
    queries: [
      [
        "sum by (cloud, kind, source) (increase(lastcall_notices_total[1h]))",
        "{{cloud}} {{kind}} {{source}}",
      ],
    ],
  },
  {
    ...{ title: "Notice to cordon", kind: "timeseries", unit: "s" },
    of: "lastcall_notice_to_cordon_seconds",
    about: "Time from a notice to the cordon of its node.",
    queries: quantiles("lastcall_notice_to_cordon_seconds"),
  },
  {
    ...{ title: "Notice to last pod", kind: "timeseries", unit: "s" },
    of: "lastcall_notice_to_last_pod_seconds",
    about: "Time from a notice until the last pod of the node has terminated.",
    queries: quantiles("lastcall_notice_to_last_pod_seconds"),
  },
  {
    ...{ title: "Time left at the last pod", kind: "timeseries", unit: "s" },
    of: "lastcall_deadline_left_seconds",
    about: "Median time left before the deadline when the last pod had terminated.",
    queries: [
      [
        "histogram_quantile(0.5, sum by (le) (rate(lastcall_deadline_left_seconds_bucket[$__rate_interval])))",
        "median",
      ],
    ],
  },
  {
    ...{ title: "Evictions per hour", kind: "timeseries", of: "lastcall_evictions_total" },
    about: "Requests to the eviction API, by result.",
    queries: [["sum by (result) (increase(lastcall_evictions_total[1h]))", "{{result}}"]],
  },
  {
    ...{
      title: "Pods forced per hour",
      kind: "timeseries",
      of: "lastcall_pods_forced_total",
    },
    about:
      "Pods deleted regardless of their disruption budget, by reason. The Events `PodForced` name them.",
    queries: [["sum by (reason) (increase(lastcall_pods_forced_total[1h]))", "{{reason}}"]],
  },
  {
    ...{ title: "Pods killed per hour", kind: "timeseries", of: "lastcall_pods_killed_total" },
    about: "Pods killed at the end of their grace period. The Events `PodKilled` name them.",
    queries: [
      [
        'sum by (policy, cause) (increase(lastcall_pods_killed_total{policy=~"$policy"}[1h]))',
        "{{policy}} {{cause}}",
      ],
    ],
  },
  {
    ...{ title: "Pods lost per hour", kind: "timeseries", of: "lastcall_pods_lost_total" },
    about: "Pods that were still on a machine when it ended. The Events `PodLeftBehind` name them.",
    queries: [
      [
        'sum by (policy, cause) (increase(lastcall_pods_lost_total{policy=~"$policy"}[1h]))',
        "{{policy}} {{cause}}",
      ],
    ],
  },
  {
    ...{ title: "Drains without a notice", kind: "timeseries", unit: "s" },
    of: "lastcall_planned_drain_seconds",
    about: "The 90th percentile of their duration, by the outcome of the departure.",
    queries: [
      [
        "histogram_quantile(0.9, sum by (le, outcome) (rate(lastcall_planned_drain_seconds_bucket[1h])))",
        "{{outcome}}",
      ],
    ],
  },
  {
    ...{ title: "Next deadline", kind: "timeseries", unit: "s" },
    of: "lastcall_next_deadline_seconds",
    about: "Time until the first deadline of a node of the policy that has not left.",
    queries: [
      ['min by (policy) (lastcall_next_deadline_seconds{policy=~"$policy"})', "{{policy}}"],
    ],
  },
  {
    ...{ title: "Errors per hour", kind: "timeseries", of: "lastcall_errors_total" },
    about: "Errors by code; docs/errors.md explains the codes.",
    queries: [["sum by (code) (increase(lastcall_errors_total[1h]))", "{{code}}"]],
  },
  {
    ...{ title: "Watch silence", kind: "timeseries", unit: "s" },
    of: "lastcall_watch_silence_seconds",
    about:
      "Time since a watch last received something from the API server; up to a minute is normal.",
    queries: [["max by (kind) (lastcall_watch_silence_seconds)", "{{kind}}"]],
  },
  {
    ...{ title: "Audit findings", kind: "table", of: "lastcall_audit_findings" },
    about: "Findings for workloads that can run on the nodes of a policy.",
    queries: [
      [
        'max by (policy, rule, severity) (lastcall_audit_findings{policy=~"$policy"}) > 0',
        "{{rule}}",
      ],
    ],
  },
];

const source = { type: "prometheus", uid: "$datasource" };
const columns = 3;
const width = 8;
const height = 8;

export function dashboardText(): string {
  const dashboard = {
    uid: "lastcall",
    title: "Lastcall",
    description:
      "Planned departures of Spot and preemptible nodes, and what happened after the clouds' notices.",
    tags: ["lastcall", "kubernetes"],
    ...{ schemaVersion: 39, version: 1, editable: true, refresh: "1m", timezone: "utc" },
    time: { from: "now-24h", to: "now" },
    templating: { list: variables() },
    annotations: { list: [] },
    panels: panels.map(panelAt),
  };
  return `${JSON.stringify(dashboard, undefined, 2)}\n`;
}

function variables(): readonly object[] {
  const label = "label_values(lastcall_nodes_managed, policy)";
  return [
    { name: "datasource", label: "Data source", type: "datasource", query: "prometheus" },
    {
      ...{ name: "policy", label: "Policy", type: "query", datasource: source },
      ...{ query: label, definition: label, refresh: 2, sort: 1 },
      ...{
        multi: true,
        includeAll: true,
        allValue: ".*",
        current: { text: "All", value: "$__all" },
      },
    },
  ];
}

function panelAt(panel: Panel, index: number): object {
  const at = { x: (index % columns) * width, y: Math.floor(index / columns) * height };
  return {
    ...{ id: index + 1, title: panel.title, description: panel.about, type: panel.kind },
    datasource: source,
    gridPos: { ...at, w: width, h: height },
    fieldConfig: { defaults: { unit: panel.unit ?? "short", min: 0 }, overrides: [] },
    ...(panel.kind === "timeseries" && { options: { legend: { displayMode: "list" } } }),
    targets: panel.queries.map(([expr, legendFormat], place) => ({
      ...{ refId: String.fromCharCode(65 + place), datasource: source, expr, legendFormat },
      ...(panel.kind !== "timeseries" && { instant: true, range: false }),
      ...(panel.kind === "table" && { format: "table" }),
    })),
  };
}
