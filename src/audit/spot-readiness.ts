import { isGraceful } from "../core/drain-plan/grace-budget.ts";
import { inOrder } from "./audit.ts";
import type { AuditReport } from "./report.ts";
import type { Finding, Severity } from "./rule.ts";

/** What a live audit says in one line, for a status condition. */
export interface SpotReadiness {
  readonly status: "True" | "False" | "Unknown";
  readonly reason: "NothingFound" | "FindingsOpen" | "NoWorkloads";
  readonly message: string;
}

export interface RuleCount {
  readonly rule: string;
  readonly severity: Severity;
  readonly count: number;
}

/** What reports come to in numbers; sums over the namespaces of a cluster add up. */
export interface ReadinessSum {
  /** Workloads that can be placed on Spot nodes. */
  readonly workloads: number;
  readonly platforms: AuditReport["platforms"];
  /** By platform: how many workloads are judged against it, and how many of them are cut. */
  readonly judged: Readonly<Record<string, number>>;
  readonly cut: Readonly<Record<string, number>>;
  /** Open findings by rule and severity; rules without one are not listed. */
  readonly counts: readonly RuleCount[];
  /** The first of those that hurt most. */
  readonly worst: Finding | undefined;
}

export function sumUp(report: AuditReport): ReadinessSum {
  const workloads = report.workloads.filter((one) => one.spot !== "Never");
  const tally = (on: (one: (typeof workloads)[number], name: string) => boolean) =>
    Object.fromEntries(
      report.platforms.map(({ name }) => [name, workloads.filter((one) => on(one, name)).length]),
    );
  const groups = Map.groupBy(report.findings, keyOf);
  return {
    workloads: workloads.length,
    platforms: report.platforms,
    judged: tally((one, name) => name in one.granted),
    cut: tally((one, name) => one.cut[name] === true),
    counts: [...groups.values()].flatMap((findings) =>
      findings
        .slice(0, 1)
        .map(({ rule, severity }) => ({ rule, severity, count: findings.length })),
    ),
    worst: report.findings.find((one) => one.severity !== "info" && !isOfPlatform(one)),
  };
}

/** Two sums over different namespaces of one cluster; what is said of a platform counts once. */
export function addUp(a: ReadinessSum, b: ReadinessSum): ReadinessSum {
  const groups = Map.groupBy([...a.counts, ...b.counts], keyOf);
  const counts = [...groups.values()].flatMap((same) => {
    const [first] = same;
    if (first === undefined) return [];
    const sizes = same.map(({ count }) => count);
    const aboutPlatforms = first.rule === "no-graceful-shutdown";
    const count = aboutPlatforms ? Math.max(...sizes) : sizes.reduce((sum, one) => sum + one, 0);
    return [{ ...first, count }];
  });
  return {
    workloads: a.workloads + b.workloads,
    platforms: a.platforms,
    judged: added(a.judged, b.judged),
    cut: added(a.cut, b.cut),
    counts,
    worst: worseOf(a.worst, b.worst),
  };
}

/** Warnings count as open, information does not. */
export function spotReadiness(sum: ReadinessSum): SpotReadiness {
  if (sum.workloads === 0) {
    return { status: "Unknown", reason: "NoWorkloads", message: "No workload can be judged." };
  }
  const cuts = sum.platforms.flatMap((platform) => cutSentence(sum, platform));
  const open = sum.counts
    .filter((one) => one.severity !== "info")
    .sort((a, b) => inOrder(a, b))
    .map((one) => `${one.count} ${one.rule}`);
  if (open.length === 0) {
    const all = `${sum.workloads} workload${sum.workloads === 1 ? "" : "s"}`;
    const clean = `No findings for ${all} on these nodes`;
    return { status: "True", reason: "NothingFound", message: sentence([clean, ...cuts]) };
  }
  const { worst } = sum;
  const example = worst === undefined ? [] : [`such as ${worst.object}: ${worst.message}`];
  const message = sentence([...cuts, `found: ${open.join(", ")}`, ...example]);
  return { status: "False", reason: "FindingsOpen", message };
}

/** `72 of 84 workloads ask for more than the 15 s that gke gives`, or nothing where none does. */
function cutSentence(sum: ReadinessSum, platform: ReadinessSum["platforms"][number]): string[] {
  const { name, groups } = platform;
  const cut = sum.cut[name] ?? 0;
  if (cut === 0) return [];
  const regular = groups.findLast((group) => group.priority <= 0) ?? groups[0];
  const what = isGraceful(groups)
    ? `ask for more than the ${regular?.seconds ?? 0} s that ${name} gives`
    : `get no time on ${name}`;
  return [`${cut} of ${sum.judged[name] ?? 0} workloads ${what}`];
}

function sentence(parts: readonly string[]): string {
  return `${parts.join("; ")}.`;
}

function keyOf({ rule, severity }: Pick<Finding, "rule" | "severity">): string {
  return `${rule}/${severity}`;
}

function isOfPlatform(finding: Finding): boolean {
  return finding.object === `Platform ${finding.platform}`;
}

function added(
  a: Readonly<Record<string, number>>,
  b: Readonly<Record<string, number>>,
): Readonly<Record<string, number>> {
  const names = new Set([...Object.keys(a), ...Object.keys(b)]);
  return Object.fromEntries([...names].map((name) => [name, (a[name] ?? 0) + (b[name] ?? 0)]));
}

function worseOf(a: Finding | undefined, b: Finding | undefined): Finding | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return inOrder(b, a) < 0 ? b : a;
}
