import type { PodFacts, PodIdentity } from "../cluster/pod.ts";
import type { DrainCounts } from "../departure/departure.ts";
import { budgetAnswers, type DrainReason } from "../departure/drain-reason.ts";
import { type DrainLimit, limitOf } from "../drain-plan/drain-limit.ts";
import type { DrainPlan, PlannedPod } from "../drain-plan/drain-plan.ts";
import { explainDrain } from "../drain-plan/drain-plan-report.ts";
import type { DrainRule } from "../policy/policy.ts";
import { inEnglish, type Sentence } from "../reason/english.ts";
import { between, earliest, type Instant, type Millis, millis, plus } from "../time/time.ts";
import { hasUnasked, unaskedUntil } from "./drain-overtime.ts";
import {
  countDrain,
  type DrainAct,
  type DrainProgress,
  goneFrom,
  type InFlightPod,
  lastTrouble,
  observeDrain,
  type PodProgress,
  stuckFrom,
  type Trouble,
  troubleThatHolds,
  withReturned,
} from "./drain-progress.ts";
import { currentRecords, type Termination, type TerminationRecords } from "./drain-time.ts";
import { isUntouchable, type Turn, type TurnView, turnOf } from "./drain-turn.ts";

export interface DrainState {
  readonly plan: DrainPlan;
  /**
   * When the drain started: its timeout counts from here, across restarts of the controller.
   */
  readonly startedAt: Instant;
  /** The longest wait for a pod in an earlier plan of this drain; see `timeoutSpan`. */
  readonly longestWaitMs?: Millis | undefined;
  /** The current pods of the node. */
  readonly livePods: readonly PodFacts[];
  readonly progress: DrainProgress;
  readonly rule: DrainRule;
  /** Whether the cloud takes the machine in any case, so that a rollback would help nobody. */
  readonly isTaken?: boolean | undefined;
  /** Known termination times, including `ended` of this drain's earlier steps. */
  readonly known?: TerminationRecords | undefined;
  readonly now: Instant;
}

/**
 * `TimedOut`: the policy's timeout passed with pods remaining, and the node is rolled back.
 * `Proceeded`: likewise, and the policy goes on without those, which have all been asked to leave.
 * `DeadlineReached`: the machine may be gone from now on.
 */
export type DrainVerdict = "Running" | "Done" | "TimedOut" | "Proceeded" | "DeadlineReached";

export interface DrainStep {
  readonly acts: readonly DrainAct[];
  /** The progress to continue with, in which the acts are in flight. */
  readonly progress: DrainProgress;
  /** When to step again if nothing changes; absent if only a change can help. */
  readonly askAgainAt?: Instant | undefined;
  readonly verdict: DrainVerdict;
  /** When the machine may be gone, under a notice. */
  readonly deadlineAt?: Instant | undefined;
  readonly counts: DrainCounts;
  /** What blocks pods; once the drain is over, the last problem of each pod that is left. */
  readonly blocked: readonly HeldPod[];
  /** Pods that the plan does not know: plan again; progress carries over. */
  readonly unplanned: readonly PodIdentity[];
  /** The pods that have terminated since the last step, and how long they took. */
  readonly ended: readonly Termination[];
}

export interface HeldPod {
  readonly pod: PodIdentity;
  readonly reason: DrainReason;
  readonly budget?: string | undefined;
  /** The budgets that cause it. */
  readonly budgets: readonly PodIdentity[];
  /** The server's message, or the reason as a sentence. */
  readonly message: string;
}

/**
 * Decides the next step of a drain. Call it when a pod changes, a response was recorded or
 * `askAgainAt` is reached; it is deterministic. Perform every act, call `recordSending` when it is
 * sent and `recordAnswer` with each response, and continue with `progress` (lost progress is
 * rebuilt from the live pods).
 *
 * Invariants of every step (test/core/drain/drain-run.test.ts checks them on random drains):
 * - without a deadline no pod is deleted regardless of its budget, unless the rule says Delete or
 *   Proceed;
 * - a tier starts when all lower ones are gone, or when the deadline requires it;
 * - the grace period is at least 1 s and at most the pod's own;
 * - a pod has at most one act in flight, and no pod waits for another's pause;
 * - if the verdict is not Running, every pod has exactly one outcome, and no act follows.
 */
export function nextDrainActs(state: DrainState): DrainStep {
  const { plan, now } = state;
  const progress = observeDrain(state);
  const ended = newTerminations(state.progress, progress);
  const unplanned = unplannedPods(state, progress);
  const verdict = verdictOf(state, { progress, unplanned });
  const workloads = plan.pods.map(({ owner }) => owner?.uid);
  const about = { workloads, ended, leaving: leavingSoFar(progress, now) };
  const records = currentRecords(state.known ?? new Map(), about);
  const view: TurnView = { plan, limit: limitNow(state), records, now };
  if (verdict !== "Running") {
    return { ...finalStep(progress, { verdict, view, returned: returnedPods(state) }), ended };
  }
  const turns = turnsOf(state, { view, progress });
  const acting = turns.flatMap(({ turn, ...of }) => (turn.kind === "Act" ? [{ turn, ...of }] : []));
  const next: Record<string, PodProgress> = { ...progress };
  for (const one of acting) next[one.live.uid] = inFlight(progress[one.live.uid], { ...one, now });
  const blocked = plan.pods.flatMap((planned) => {
    const state = next[planned.uid];
    return heldUp(planned, { state, view, trouble: troubleThatHolds(state) });
  });
  return {
    acts: acting.map(({ turn }) => turn.act),
    progress: next,
    askAgainAt: soonest([...turns.map(({ turn }) => lookAt(turn)), ...endsOf(state, next)], now),
    verdict,
    deadlineAt: plan.deadlineAt,
    counts: withReturned(
      countDrain(next, new Set(blocked.map(({ pod }) => pod.uid))),
      returnedPods(state),
    ),
    blocked,
    unplanned,
    ended,
  };
}

function limitNow(state: DrainState): DrainLimit {
  const { rule, startedAt, plan } = state;
  const { deadlineAt, knownAt = plan.at } = plan;
  const notice = deadlineAt === undefined ? undefined : { deadlineAt, knownAt };
  return limitOf({ rule, notice, startedAt, spanMs: timeoutSpan(state) });
}

/** The timeout starts after the longest wait of a rule, such as an hour for a job. */
function timeoutSpan(state: DrainState): Millis {
  return millis(state.rule.timeoutMs + Math.max(state.longestWaitMs ?? 0, longestWait(state.plan)));
}

/** The longest wait for completion among the rules of a plan's pods. */
export function longestWait({ pods }: DrainPlan): Millis {
  return millis(Math.max(0, ...pods.map((pod) => pod.waitMs ?? 0)));
}

function endOf(state: DrainState): Instant | undefined {
  const { deadlineAt } = state.plan;
  if (deadlineAt !== undefined || state.rule.onTimeout === "Wait") return deadlineAt;
  return plus(state.startedAt, timeoutSpan(state));
}

/** When the verdict may change by time alone. */
function endsOf(state: DrainState, progress: DrainProgress): readonly (Instant | undefined)[] {
  const endAt = endOf(state);
  const isPast = endAt !== undefined && state.now >= endAt;
  return isPast ? overtimeOf(state, progress) : [endAt];
}

function overtimeOf(state: DrainState, progress: DrainProgress): readonly Instant[] {
  return unaskedUntil({ ...state, progress, limit: limitNow(state), spanMs: timeoutSpan(state) });
}

function verdictOf(
  state: DrainState,
  about: { readonly progress: DrainProgress; readonly unplanned: readonly PodIdentity[] },
): DrainVerdict {
  const allGone = Object.values(about.progress).every((pod) => pod.kind === "Gone");
  if (allGone && about.unplanned.length === 0) return "Done";
  const endAt = endOf(state);
  if (endAt === undefined || state.now < endAt) return "Running";
  if (state.plan.deadlineAt !== undefined) return "DeadlineReached";
  if (isEnding(state, about) || overtimeOf(state, about.progress).length > 0) return "Running";
  if (state.rule.onTimeout !== "Proceed") return "TimedOut";
  if (!hasUnasked({ ...state, progress: about.progress, limit: limitNow(state) })) {
    return "Proceeded";
  }
  return state.isTaken === true ? "Running" : "TimedOut";
}

/**
 * Whether all remaining pods are terminating, with grace periods longer than the timeout: rolling
 * back would bring none of them back. Pods that are stuck long after their grace period do not
 * count.
 */
function isEnding(
  { rule, now }: DrainState,
  about: { readonly progress: DrainProgress; readonly unplanned: readonly PodIdentity[] },
): boolean {
  if (rule.onTimeout !== "RollBack" || about.unplanned.length > 0) return false;
  return Object.values(about.progress).every(
    (pod) => pod.kind === "Gone" || (pod.kind === "Leaving" && now <= stuckFrom(pod.deadlineAt)),
  );
}

function finalStep(
  progress: DrainProgress,
  about: {
    readonly verdict: DrainVerdict;
    readonly view: TurnView;
    readonly returned: readonly PodIdentity[];
  },
): Omit<DrainStep, "ended"> {
  const { verdict, view } = about;
  const final: Record<string, PodProgress> = {};
  for (const [uid, pod] of Object.entries(progress)) {
    final[uid] = pod.kind === "Gone" ? pod : goneFrom(pod, { at: view.now, how: "LeftBehind" });
  }
  const counts = withReturned(countDrain(final), about.returned);
  const blocked = view.plan.pods.flatMap((planned) => {
    const state = progress[planned.uid];
    return heldUp(planned, { state, view, trouble: lastTrouble(state) });
  });
  return { acts: [], progress: final, verdict, counts, blocked, unplanned: [] };
}

function turnsOf(
  state: DrainState,
  about: { readonly view: TurnView; readonly progress: DrainProgress },
): readonly PodTurn[] {
  const { view, progress } = about;
  const live = new Map(state.livePods.map((pod) => [pod.uid, pod]));
  const firstTier = lowestTier(view, progress);
  return state.plan.pods.flatMap((planned) => {
    const pod = live.get(planned.uid);
    const now = progress[planned.uid];
    if (pod === undefined || now === undefined) return [];
    const lowerGone = planned.tier <= firstTier;
    const turner = { planned, state: now, live: pod, lowerGone };
    return [{ live: pod, turn: turnOf(turner, view) }];
  });
}

interface PodTurn {
  readonly live: PodFacts;
  readonly turn: Turn;
}

interface ActingPod {
  readonly live: PodFacts;
  readonly turn: Extract<Turn, { kind: "Act" }>;
  readonly now: Instant;
}

/** The lowest tier with a remaining pod, which is the one to evict now. */
function lowestTier(view: TurnView, progress: DrainProgress): number {
  const there = view.plan.pods.filter((pod) => progress[pod.uid]?.kind !== "Gone");
  return Math.min(Number.POSITIVE_INFINITY, ...there.map((pod) => pod.tier));
}

function inFlight(state: PodProgress | undefined, { live, turn, now }: ActingPod): InFlightPod {
  const tried = state !== undefined && "attempts" in state ? state : undefined;
  const { act, graceSeconds, cut } = turn;
  return {
    trouble: tried?.trouble,
    asked: tried?.asked,
    answeredInMs: tried?.answeredInMs,
    kind: "InFlight",
    decidedAt: now,
    // A pod that is not running or ready may terminate faster than the others.
    workload:
      live.phase === "Running" && live.ready ? live.controller?.uid || undefined : undefined,
    pod: act.pod,
    attempts: (tried?.attempts ?? 0) + 1,
    held: act.kind === "Evict" ? troubleThatHolds(state) : undefined,
    act,
    graceSeconds,
    cut,
  };
}

function newTerminations(before: DrainProgress, after: DrainProgress): readonly Termination[] {
  return Object.entries(after).flatMap(([uid, state]) =>
    state.kind === "Gone" && state.termination !== undefined && before[uid]?.kind !== "Gone"
      ? [state.termination]
      : [],
  );
}

function leavingSoFar(progress: DrainProgress, now: Instant): readonly Termination[] {
  return Object.values(progress).flatMap((state) => {
    if (state.kind !== "Leaving" || state.measured === undefined) return [];
    const { workload, askedAt } = state.measured;
    return [{ workload, took: between(askedAt, now) }];
  });
}

function heldUp(
  planned: PlannedPod,
  about: {
    readonly state: PodProgress | undefined;
    readonly view: TurnView;
    readonly trouble: Trouble | undefined;
  },
): HeldPod[] {
  const { namespace, name, uid } = planned;
  const pod = { namespace, name, uid };
  const { state, trouble } = about;
  if (state?.kind === "Leaving" && about.view.now > stuckFrom(state.deadlineAt)) {
    // Only a pod of a node that does not respond is still there by then.
    const message = explainDrain("NodeUnreachable", planned);
    return [{ pod, reason: "NodeUnreachable", message, budgets: [] }];
  }
  const isOpen = state?.kind === "Waiting" || state?.kind === "Blocked";
  if (isOpen && isUntouchable(planned, about.view)) {
    const message = explainDrain(planned.reason, planned);
    return [{ pod, reason: planned.reason, message, budgets: [] }];
  }
  if (trouble === undefined) return [];
  const budgets = budgetAnswers.has(trouble.reason) ? planned.budgets : [];
  return [{ pod, ...trouble, budgets }];
}

/**
 * The pods on the node that the drain leaves there because others would follow them. They end with
 * the machine.
 */
function returnedPods({ plan, livePods }: DrainState): readonly PodIdentity[] {
  const live = new Set(livePods.map(({ uid }) => uid));
  return plan.skipped.filter(({ reason, uid }) => reason === "ComesBack" && live.has(uid));
}

function unplannedPods(state: DrainState, progress: DrainProgress): readonly PodIdentity[] {
  const { plan } = state;
  const known = new Set([...plan.skipped.map((pod) => pod.uid), ...Object.keys(progress)]);
  return state.livePods
    .filter((pod) => pod.nodeName === plan.node && !known.has(pod.uid))
    .map(({ namespace, name, uid }) => ({ namespace, name, uid }));
}

function lookAt(turn: Turn): Instant | undefined {
  return turn.kind === "Look" ? turn.at : undefined;
}

function soonest(times: readonly (Instant | undefined)[], now: Instant): Instant | undefined {
  return times.reduce(
    (found, at) => (at === undefined || at <= now ? found : earliest(found, at)),
    undefined,
  );
}

/** How many distinct messages fit the one line of a status. */
const mostMessages = 2;

/**
 * What blocks a drain. Each message appears once, for the first pod that has it:
 * `shop/web-0: The disruption budget web needs 2 healthy pods and has 2 currently; and 1 more pod`.
 */
export function explainHeld(held: readonly HeldPod[]): string | undefined {
  const said = new Map<string, Sentence>();
  for (const { pod, message } of held) {
    // A budget's message names it without its namespace.
    const key = JSON.stringify([pod.namespace, message]);
    const name = `${pod.namespace}/${pod.name}`;
    if (said.has(key)) continue;
    said.set(key, { says: "drain.PodHeld", pod: name, detail: message.replace(/\.$/, "") });
  }
  if (said.size === 0) return undefined;
  const told = [...said.values()].slice(0, mostMessages);
  const more = held.length - told.length;
  return inEnglish(more === 0 ? told : [...told, { says: "drain.MorePods", more }]);
}
