import { instanceIdOf } from "../cluster/node.ts";
import {
  type ActionRecord,
  cloudDeadline,
  type Departure,
  type DrainCounts,
  type Outcome,
  type Phase,
} from "../departure/departure.ts";
import type { Action, ActionPoint, ActionSpec, Cause } from "../policy/action.ts";
import { inEnglish } from "../reason/english.ts";
import { formatInstant, type Instant, seconds } from "../time/time.ts";
import type { TemplateFacts } from "./template.ts";

/**
 * The record of each action of the policy, in the policy's order: the existing one, or a new one.
 * Actions that have not started are evaluated again by the current cause, because a notice may have
 * changed it. If the departure continues, actions that were undone are due again, and so are those
 * that failed before it last started. Actions that the policy no longer has keep their records at
 * the end, because they may have to be undone.
 */
export function actionRecords(
  actions: readonly Action[],
  departure: {
    readonly cause: Cause;
    readonly phase: Phase;
    readonly records: readonly ActionRecord[];
    /** When it last started; it may have been held or rolled back since it first started. */
    readonly begunAt?: Instant | undefined;
    /** Set if the policy only decides and reports, and changes nothing. */
    readonly dryRun?: boolean | undefined;
  },
): readonly ActionRecord[] {
  const { cause, phase, records, begunAt, dryRun = false } = departure;
  const there = new Map(records.map((record) => [record.name, record]));
  const named = new Set(actions.map(({ name }) => name));
  const own = actions.map((action) => {
    const before = there.get(action.name);
    if (dryRun && (before === undefined || isUnfinished(before))) return dryRecord(action);
    if (before === undefined) return newRecord(action, cause);
    const isOpen = before.state === "Pending" || before.result === "CauseExcluded";
    if (isOpen || (before.state === "Undone" && isLeaving(phase))) return newRecord(action, cause);
    const isToTryAgain = before.state === "Failed" && isFormer(before, begunAt) && isLeaving(phase);
    return isToTryAgain ? openedAgain(before, newRecord(action, cause)) : before;
  });
  return [...own, ...records.filter(({ name }) => !named.has(name)).map(withoutPolicy)];
}

/** Whether an action ran before the departure last started, which undid what could be undone. */
export function isFormer({ startedAt }: ActionRecord, begunAt: Instant | undefined): boolean {
  return (startedAt ?? Infinity) < (begunAt ?? -Infinity);
}

/**
 * A change that could not be undone may still be in effect, so its undo record is kept, or that the
 * machine may be out of its group.
 */
function openedAgain(before: ActionRecord, again: ActionRecord): ActionRecord {
  const { undo } = before;
  if (undo === undefined && !mayBeDetached([before])) return again;
  if (again.state !== "Pending") return before;
  return { ...again, state: "Running", ...(undo && { undo }) };
}

/** What the action would have done is no longer known. */
function withoutPolicy(record: ActionRecord): ActionRecord {
  if (!isUnfinished(record)) return record;
  const detail = inEnglish({ says: "detail.ActionGone" });
  return { ...record, state: "Failed", result: "ACTION_UNSUPPORTED", detail };
}

function newRecord(action: Action, cause: Cause): ActionRecord {
  const { name, at, how } = action;
  const record = { name, kind: how.kind, at, attempts: 0 };
  if (isFor(action, cause)) return { ...record, state: "Pending" };
  const detail = inEnglish({ says: "detail.ActionForeign", cause });
  return { ...record, state: "Skipped", result: "CauseExcluded", detail };
}

function isFor({ causes }: Pick<Action, "causes">, cause: Cause): boolean {
  return causes === undefined || causes.includes(cause);
}

function dryRecord({ name, at, how }: Action): ActionRecord {
  const why = { result: "DryRun", detail: inEnglish({ says: "detail.ActionDryRun" }) };
  return { name, kind: how.kind, at, attempts: 0, state: "Skipped", ...why };
}

function isLeaving(phase: Phase): boolean {
  return phase === "Preparing" || phase === "Draining" || phase === "Releasing";
}

/**
 * The points that a departure has reached in this phase. `drains`: its pods are evicted; a node
 * that is only cordoned has no points before or after a drain.
 */
export function pointsReached(
  phase: Phase,
  { drains }: { readonly drains: boolean },
): readonly ActionPoint[] {
  switch (phase) {
    case "Preparing":
      return ["AtNotice"];
    case "Draining":
      return drains ? ["AtNotice", "BeforeDrain"] : ["AtNotice"];
    case "Releasing":
      return drains ? ["AtNotice", "BeforeDrain", "AfterDrain"] : ["AtNotice"];
    case "Ended":
      return ["AtEnd"];
    default:
      return [];
  }
}

/**
 * The actions to start or continue: those at these points that are neither completed nor in
 * progress here.
 */
export function dueActions(
  actions: readonly Action[],
  around: {
    readonly records: readonly ActionRecord[];
    readonly reached: readonly ActionPoint[];
    readonly underWay: (name: string) => boolean;
  },
): readonly Action[] {
  const { records, reached, underWay } = around;
  const open = new Set(records.filter(isUnfinished).map(({ name }) => name));
  return actions.filter(
    ({ name, at }) => reached.includes(at) && open.has(name) && !underWay(name),
  );
}

/** The records of an ended departure: actions that were not reached or completed will not run. */
export function recordsAtEnd(
  records: readonly ActionRecord[],
  underWay: (name: string) => boolean,
): readonly ActionRecord[] {
  return records.map((record) => {
    if (record.at === "AtEnd" || !isUnfinished(record) || underWay(record.name)) return record;
    const detail = inEnglish({ says: "detail.ActionTooLate" });
    if (record.state === "Pending") {
      return { ...record, state: "Skipped", result: "NotReached", detail };
    }
    const open = `${detail}, and whether it was carried out is unknown`;
    return { ...record, state: "Failed", result: "ACTION_DEADLINE", detail: open };
  });
}

/** Whether an action only sends a message, which may be sent while the departure is rolled back. */
export function isMessage(kind: ActionRecord["kind"]): boolean {
  switch (kind) {
    case "sns":
    case "slack":
    case "teams":
    case "telegram":
    case "cloudEvents":
      return true;
    default:
      return false;
  }
}

/**
 * Whether the actions of a departure take its machine out of its group (`detach`): `Ahead`, before
 * the release; or `Begun`, so that it may be out of it already.
 */
export type DetachState = "Ahead" | "Begun";

/** Undefined if no action of the departure detaches its machine before the release. */
export function detachState(
  actions: readonly Action[],
  { cause, records }: { readonly cause: Cause; readonly records: readonly ActionRecord[] },
): DetachState | undefined {
  if (mayBeDetached(records)) return "Begun";
  const isAhead = actions.some(
    (action) => action.how.kind === "detach" && action.at !== "AtEnd" && isFor(action, cause),
  );
  return isAhead ? "Ahead" : undefined;
}

/**
 * Whether an action has taken the machine out of its group, as far as the records tell: a request
 * without a response may have succeeded, one that was refused has not.
 */
export function mayBeDetached(records: readonly ActionRecord[]): boolean {
  return records.some(({ kind, state, result }) => {
    if (kind !== "detach") return false;
    if (state === "Failed") return unansweredResults.has(result);
    return state === "Running" || state === "Done";
  });
}

const unansweredResults: ReadonlySet<string | undefined> = new Set([
  "CLOUD_UNREACHABLE",
  "ACTION_UNREACHABLE",
  "ACTION_TIMEOUT",
  "ACTION_DEADLINE",
  "ACTION_INTERRUPTED",
]);

/**
 * Whether the machine is deregistered from all its target groups, as far as the policy requires:
 * only the completion of every action of that kind shows this.
 */
export function isDetached(records: readonly ActionRecord[]): boolean {
  const its = records.filter(
    ({ kind, state }) => kind === "deregisterTargets" && state !== "Skipped",
  );
  return its.length > 0 && its.every(({ state }) => state === "Done");
}

/** The records of actions that may have made a change that has to be undone. */
export function undoableRecords(records: readonly ActionRecord[]): readonly ActionRecord[] {
  return records.filter(
    ({ state, undo }) =>
      undo !== undefined && (state === "Running" || state === "Done" || state === "Failed"),
  );
}

/**
 * The action of a record that the policy no longer has, if the record is enough to undo it;
 * undefined if that needs an address or a Secret from the policy.
 */
export function actionOfRecord({ name, at, kind }: ActionRecord): Action | undefined {
  const how = selfContained(kind);
  return how && { name, at, how, timeoutMs: seconds(10), retries: 3, required: false };
}

function selfContained(kind: ActionRecord["kind"]): ActionSpec | undefined {
  switch (kind) {
    case "deregisterTargets":
      return { kind, wait: false };
    case "replaceSecurityGroups":
      return { kind, groupIds: [] };
    default:
      return undefined;
  }
}

/**
 * Whether an earlier leader has acted ahead of the record, under a notice that was withdrawn since:
 * the departure is recorded as not started, and has actions to undo.
 */
export function isBegunAhead({ status, withdrawnAt }: Departure): boolean {
  const isWaiting = status.phase === "Scheduled" || status.phase === "Held";
  const isWithdrawn = isWaiting && withdrawnAt !== undefined;
  return isWithdrawn && undoableRecords(status.actions ?? []).length > 0;
}

/** Whether an ended departure still has actions to complete or to record. */
export function isToFinish({ status }: Pick<Departure, "status">): boolean {
  return status.phase === "Ended" && (status.actions ?? []).some(isUnfinished);
}

export function isUnfinished({ state }: ActionRecord): boolean {
  return state === "Pending" || state === "Running";
}

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
