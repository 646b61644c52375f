import { instanceIdOf } from "../cluster/node.ts";
import {
  type ActionRecord,
  cloudDeadline,
  type Departure,
  type DrainCounts,
  type Outcome,
} from "../departure/departure.ts";
import { formatInstant, type Instant } from "../time/time.ts";
import type { TemplateFacts } from "./template.ts";

interface TimelineStep {
  readonly at: Instant;
  readonly text: string;
}

/**
 * Summarizes a departure for people, as far as it has come: which node leaves and why, each step
 * with its time and the seconds since the first, the actions, and what became of the pods.
 */
export function departureSummary(departure: Departure): string {
  const { status, noticedAt } = departure;
  const steps = [
    ...status.timeline.map(({ at, result }) => ({ at, text: result })),
    ...(status.actions ?? []).flatMap(actionStep),
  ].toSorted((a, b) => a.at - b.at);
  const firstAt = noticedAt ?? steps[0]?.at;
  const lines = steps.map(({ at, text }) => `${formatInstant(at)} ${since(firstAt, at)} ${text}`);
  return [headline(departure), ...lines, ...podLines(status.drain)].join("\n");
}

/** For the person on call: what became of the machine, and what failed. */
function headline(departure: Departure): string {
  const { node, cause, policy, status } = departure;
  const deadlineAt = cloudDeadline(departure);
  const instanceId = instanceIdOf(node);
  const isNamed = instanceId !== undefined && instanceId !== node.name;
  const failed = (status.actions ?? []).filter(({ state }) => state === "Failed");
  const parts = [
    `${node.name} ${verbOf(status.outcome)}: ${cause}`,
    ...(isNamed ? [`instance ${instanceId}`] : []),
    ...(policy === undefined ? [] : [`policy ${policy}`]),
    ...(deadlineAt === undefined ? [] : [`deadline ${formatInstant(deadlineAt)}`]),
    ...(status.outcome === undefined ? [] : [`outcome ${status.outcome}`]),
    ...(failed.length === 0 ? [] : [`failed: ${failed.map(({ name }) => name).join(" and ")}`]),
  ];
  return parts.join(", ");
}

function verbOf(outcome: Outcome | undefined): string {
  switch (outcome) {
    case undefined:
      return "leaves";
    case "RolledBack":
    case "Cancelled":
    case "Failed":
      return "stays";
    default:
      return "has left";
  }
}

function since(firstAt: Instant | undefined, at: Instant): string {
  return `+${(Math.max(0, at - (firstAt ?? at)) / 1000).toFixed(1)}s`;
}

/**
 * Actions that have not started have no time, and skipped ones are not steps. A failure is shown by
 * its code.
 */
function actionStep(record: ActionRecord): readonly TimelineStep[] {
  const { name, kind, state, result, startedAt, seconds, detail } = record;
  if (startedAt === undefined) return [];
  const took = seconds === undefined ? "" : ` in ${seconds.toFixed(1)} s`;
  const about = detail === undefined ? "" : `: ${detail}`;
  const end = state === "Failed" && result !== undefined ? `${state} (${result})` : state;
  return [{ at: startedAt, text: `action ${name} (${kind}) ${end}${took}${about}` }];
}

function podLines(drain: DrainCounts | undefined): readonly string[] {
  if (drain === undefined) return [];
  const { total, evicted, forced, cut, left, killed = 0, leftBehind = 0 } = drain;
  const { forcedPods = [], notClean = [] } = drain;
  const unclean = (outcome: "Killed" | "LeftBehind") =>
    notClean.filter((pod) => pod.outcome === outcome);
  return [
    `pods: ${total} in total, ${evicted} evicted, ${forced} deleted without eviction, ${cut} cut short, ${left} left`,
    ...named("deleted without eviction", forcedPods, forced),
    ...named("killed at the end of their grace period", unclean("Killed"), killed),
    ...named("left behind", unclean("LeftBehind"), leftBehind),
  ];
}

/** The status names only the first ones. */
function named(
  what: string,
  pods: readonly { readonly namespace: string; readonly name: string }[],
  count: number,
): readonly string[] {
  if (pods.length === 0) return [];
  const names = pods.map(({ namespace, name }) => `${namespace}/${name}`).join(", ");
  const more = count > pods.length ? ` and ${count - pods.length} more` : "";
  return [`${what}: ${names}${more}`];
}

/** The facts that templates of a departure's actions may use, as they are now. */
export function templateFacts(departure: Departure, policy: string): TemplateFacts {
  const { node, cause, status, name } = departure;
  const deadlineAt = cloudDeadline(departure) ?? departure.deadlineAt;
  return {
    node: node.name,
    instanceId: instanceIdOf(node) ?? "",
    providerID: node.providerID ?? "",
    cause,
    deadline: deadlineAt === undefined ? "" : formatInstant(deadlineAt),
    outcome: status.outcome ?? "",
    policy,
    departure: name,
    summary: departureSummary(departure),
  };
}
