import type { ActionRecord } from "../departure/action-record.ts";
import { cloudDeadline, type Departure, type DrainCounts } from "../departure/departure.ts";
import { formatInstant, type Instant } from "../time/time.ts";

interface TimelineStep {
  readonly at: Instant;
  readonly text: string;
}

/**
 * A departure for people, as far as it has come: who leaves and why, each step with its time and
 * its seconds since the first, what was done around it, and what became of the pods.
 */
export function departureSummary(departure: Departure): string {
  const { status, noticedAt } = departure;
  const steps = [
    ...status.timeline.map(({ at, result }) => ({ at, text: result })),
    ...(status.actions ?? []).flatMap(actionStep),
  ].toSorted((a, b) => a.at - b.at);
  const firstAt = noticedAt ?? steps[0]?.at;
  const lines = steps.map(({ at, text }) => `${formatInstant(at)} ${since(firstAt, at)} ${text}`);
  return [headline(departure), ...lines, ...podLine(status.drain)].join("\n");
}

function headline(departure: Departure): string {
  const { node, cause, policy, status } = departure;
  const deadlineAt = cloudDeadline(departure);
  const parts = [
    `${node.name} leaves: ${cause}`,
    ...(policy === undefined ? [] : [`policy ${policy}`]),
    ...(deadlineAt === undefined ? [] : [`deadline ${formatInstant(deadlineAt)}`]),
    ...(status.outcome === undefined ? [] : [`outcome ${status.outcome}`]),
  ];
  return parts.join(", ");
}

function since(firstAt: Instant | undefined, at: Instant): string {
  return `+${(Math.max(0, at - (firstAt ?? at)) / 1000).toFixed(1)}s`;
}

/** What has not begun has no time; what was skipped is no step. A failure is told by its code. */
function actionStep(record: ActionRecord): readonly TimelineStep[] {
  const { name, kind, state, result, startedAt, seconds, detail } = record;
  if (startedAt === undefined) return [];
  const took = seconds === undefined ? "" : ` in ${seconds.toFixed(1)} s`;
  const about = detail === undefined ? "" : `: ${detail}`;
  const end = state === "Failed" && result !== undefined ? `${state} (${result})` : state;
  return [{ at: startedAt, text: `action ${name} (${kind}) ${end}${took}${about}` }];
}

function podLine(drain: DrainCounts | undefined): readonly string[] {
  if (drain === undefined) return [];
  const { total, evicted, forced, cut, left } = drain;
  return [
    `pods: ${total} in all, ${evicted} evicted, ${forced} deleted past their budget, ${cut} cut short, ${left} left`,
  ];
}
