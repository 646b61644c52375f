import type { DrainReason } from "../departure/drain-reason.ts";
import { type DrainLimit, leastTime } from "../drain-plan/drain-limit.ts";
import type { DrainPlan, PlannedPod } from "../drain-plan/drain-plan.ts";
import type { DrainRule } from "../policy/policy.ts";
import { earlier, type Instant, type Millis, millis, minus, plus, seconds } from "../time/time.ts";
import type { DrainProgress, GonePod, LeavingPod, PodProgress } from "./drain-progress.ts";
import { isUntouchable } from "./drain-turn.ts";

interface DrainProceeding {
  readonly plan: DrainPlan;
  readonly progress: DrainProgress;
  readonly limit: DrainLimit;
  readonly now: Instant;
}

interface DrainAtTimeout extends DrainProceeding {
  readonly rule: Pick<DrainRule, "onTimeout">;
  readonly startedAt: Instant;
  /** The timeout, with the waits of its rules. */
  readonly spanMs: Millis;
}

/**
 * Whether pods are left that nobody has asked to leave, because the API server refuses both their
 * eviction and their deletion. Not even a policy that proceeds ends these with their machine.
 */
export function hasUnasked({ plan, progress, limit, now }: DrainProceeding): boolean {
  const view = { plan, limit, records: new Map(), now };
  return plan.pods.some((planned) => {
    const state = progress[planned.uid];
    const isAsked = state === undefined || state.kind === "Gone" || state.kind === "Leaving";
    return !isAsked && !isUntouchable(planned, view);
  });
}

/**
 * Until when the policy does not proceed without pods that the API server has not decided about,
 * for at most another timeout, or that have had less time since they were asked than a pod that is
 * asked at the last moment. One instant a pod, all ahead.
 */
export function unaskedUntil(drain: DrainAtTimeout): readonly Instant[] {
  const { plan, rule, progress, spanMs, limit, now } = drain;
  if (rule.onTimeout !== "Proceed") return [];
  const lastAt = plus(drain.startedAt, millis(2 * spanMs));
  const view = { plan, limit, records: new Map(), now };
  return plan.pods.flatMap((planned) => {
    const pod = progress[planned.uid];
    if (pod === undefined || pod.kind === "Gone" || isUntouchable(planned, view)) return [];
    if (pod.kind !== "Leaving" && !isUndecided(pod)) return [];
    const untilAt = pod.kind === "Leaving" ? askedEnough(planned, pod, spanMs) : lastAt;
    return untilAt > now ? [untilAt] : [];
  });
}

/** An earlier leader, or an earlier drain of these pods, may have asked. */
function askedEnough(planned: PlannedPod, pod: LeavingPod, spanMs: Millis): Instant {
  const wholeMs = seconds(planned.wantedGraceSeconds);
  const askedAt = earlier(pod.sinceAt, minus(pod.deadlineAt, wholeMs));
  return earlier(pod.deadlineAt, plus(askedAt, leastTime(planned.wantedGraceSeconds, spanMs)));
}

/** Its deletion is decided about last: a policy that proceeds deletes what it may not evict. */
function isUndecided(pod: Exclude<PodProgress, GonePod | LeavingPod>): boolean {
  const trouble = pod.kind === "InFlight" ? (pod.held ?? pod.trouble) : pod.trouble;
  return trouble === undefined || undecided.has(trouble.reason) || pod.asked?.kind !== "Delete";
}

/** What the API server, or the way to it, answers without deciding about the pod. */
const undecided: ReadonlySet<DrainReason> = new Set(["AnswerLost", "ApiOverloaded"]);
