import type { PodFacts } from "../../../src/core/cluster/pod.ts";
import type { DrainView } from "../../../src/core/drain/drain-memory.ts";
import type { DrainAct } from "../../../src/core/drain/drain-progress.ts";
import { type Instant, millis, minus, minutes, plus } from "../../../src/core/time/time.ts";

interface AskedView extends DrainView {
  /** The pods as they are, which the watch may not show yet. */
  readonly there: readonly PodFacts[];
}

/**
 * What a drain may ask at the earliest, and with how little grace: from docs/drain.md, and without
 * anything that a drain remembers. Returns what is wrong with one act of a step.
 */
export function breachesOf(act: DrainAct, view: AskedView): readonly string[] {
  const pod = view.livePods.find(({ uid }) => uid === act.pod.uid);
  if (pod === undefined) return [`${act.pod.name}: is not there`];
  const found = [...graceBreaches(act, { pod, view }), ...tierBreaches(pod, view)];
  const earliestAt = allowedFrom(act, { pod, view });
  if (view.now < earliestAt)
    found.push(`${act.kind} ${(earliestAt - view.now) / 1000} s too early`);
  return found.map((what) => `${pod.name}: ${what}`);
}

interface Asked {
  readonly pod: PodFacts;
  readonly view: DrainView;
}

/** All of it in a planned eviction, otherwise what is left. */
function graceBreaches(act: DrainAct, { pod, view }: Asked): string[] {
  if (act.kind === "RestartOwner") return [];
  const grace = act.graceSeconds ?? pod.graceSeconds;
  const isWhole = act.kind === "Evict" && view.deadlineAt === undefined;
  const least = isWhole ? ownGrace(pod) : leastGrace(pod, view);
  const most = Math.max(pod.graceSeconds, 1);
  return grace < least || grace > most ? [`${grace} s of grace, not ${least} to ${most}`] : [];
}

function ownGrace({ graceSeconds }: PodFacts): number {
  return Math.max(1, graceSeconds);
}

function leastGrace(pod: PodFacts, view: DrainView): number {
  const endAt =
    view.deadlineAt ?? (view.rule.onTimeout === "Proceed" ? timeoutAt(view) : undefined);
  return endAt === undefined ? ownGrace(pod) : graceLeft(ownGrace(pod), { endAt, now: view.now });
}

/** In whole seconds, and at least one. */
export function graceLeft(
  wanted: number,
  { endAt, now }: { readonly endAt: Instant; readonly now: Instant },
): number {
  return Math.max(1, Math.min(wanted, Math.floor((endAt - now) / 1000)));
}

function timeoutAt({ startedAt, rule }: DrainView): Instant {
  return plus(startedAt, rule.timeoutMs);
}

const marginMs = 2000;

function allowedFrom(act: DrainAct, asked: Asked): Instant {
  const { pod, view } = asked;
  const action = actionOf(asked);
  const isDeletedAnyway = action === "Delete" || nameOf(act) === "NamespaceTerminating";
  if (view.deadlineAt !== undefined) {
    return act.kind === "Delete" && !isDeletedAnyway ? forcedFrom(pod, view) : view.knownAt;
  }
  const heldAt = action === "Block" ? never : markedUntil(asked);
  if (heldAt > view.now) return heldAt;
  const { startedAt, rule } = view;
  const isProceeding = rule.onTimeout === "Proceed";
  const needMs = Math.min(ownGrace(pod) * 1000 + marginMs, rule.timeoutMs / 2);
  const pressedAt = isProceeding ? minus(timeoutAt(view), millis(needMs)) : never;
  if (act.kind === "Delete" && !isDeletedAnyway) return pressedAt;
  if (action !== "WaitCompleted") return startedAt;
  const waitsFrom = Math.max(startedAt, pod.startedAt ?? startedAt) as Instant;
  const waitedAt = plus(waitsFrom, ruleOf(asked)?.timeoutMs ?? rule.timeoutMs);
  return Math.min(waitedAt, pressedAt) as Instant;
}

const never = Number.POSITIVE_INFINITY as Instant;

function nameOf(act: DrainAct): string | undefined {
  return act.kind === "Delete" ? act.reason : undefined;
}

function ruleOf({ pod, view }: Asked) {
  return view.rule.podRules.find(({ selector }) => selector.matchLabels?.app === pod.labels.app);
}

function actionOf(asked: Asked): string | undefined {
  return ruleOf(asked)?.action;
}

/** When a mark of the pod expires; a rule that deletes it takes precedence. */
function markedUntil(asked: Asked): Instant {
  const { pod, view } = asked;
  const mark = pod.annotations["lastcall.dev/do-not-disturb"];
  if (mark === undefined || mark === "false" || actionOf(asked) === "Delete") return view.startedAt;
  if (mark === "true") return never;
  return plus(pod.startedAt ?? view.now, minutes(Number.parseInt(mark, 10)));
}

/** A budget holds a pod for its share of the notice, and longer while the grace still fits. */
function forcedFrom(pod: PodFacts, { deadlineAt, knownAt, rule }: DrainView): Instant {
  const endAt = deadlineAt as Instant;
  const restMs = Math.round((1 - rule.budgetShare) * (endAt - knownAt));
  return minus(endAt, millis(Math.min(ownGrace(pod) * 1000, restMs) + marginMs));
}

/** A critical pod leaves after all others; only time that runs out may change that. */
function tierBreaches(pod: PodFacts, view: AskedView): string[] {
  const { rule, deadlineAt, now, startedAt } = view;
  const isPressed =
    rule.onTimeout === "Proceed" && now >= plus(startedAt, millis(rule.timeoutMs / 2));
  if (deadlineAt !== undefined || isPressed || !isCritical(pod)) return [];
  const own = new Set(view.ownPods.map(({ uid }) => uid));
  const lower = view.there.filter((one) => own.has(one.uid) && !isCritical(one));
  return lower.filter(isToLeave).map(({ name }) => `asked before ${name} has left`);
}

function isCritical({ priority }: PodFacts): boolean {
  return priority >= 2_000_000_000;
}

function isToLeave({ tolerations, deletionAt }: PodFacts): boolean {
  return tolerations.length === 0 && deletionAt === undefined;
}
