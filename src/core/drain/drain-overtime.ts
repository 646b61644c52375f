import type { DrainReason } from "../departure/drain-reason.ts";
import type { DrainPlan, PlannedPod } from "../drain-plan/drain-plan.ts";
import type { DrainRule } from "../policy/policy.ts";
import { earlier, type Instant, type Millis, millis, minus, plus, seconds } from "../time/time.ts";
import type { DrainProgress, GonePod, LeavingPod, PodProgress } from "./drain-progress.ts";
import { type DrainLimit, isUntouchable, leastTime } from "./drain-turn.ts";

interface DrainAtTimeout {
  readonly plan: DrainPlan;
  readonly rule: Pick<DrainRule, "onTimeout">;
  readonly startedAt: Instant;
  readonly progress: DrainProgress;
  readonly limit: DrainLimit;
  /** The timeout, with the waits of its rules. */
  readonly spanMs: Millis;
  readonly now: Instant;
}

/**
 * Until when the policy does not proceed without pods that the API server has not decided about, or
 * that have had less time since than a pod that is asked at the last moment. Such pods get another
 * timeout, and no more. One instant a pod, all ahead.
 */
export function unaskedUntil(drain: DrainAtTimeout): readonly Instant[] {
  const { plan, rule, progress, spanMs, limit, now } = drain;
  if (rule.onTimeout !== "Proceed") return [];
  const lastAt = plus(drain.startedAt, millis(2 * spanMs));
  const view = { plan, limit, records: new Map(), now };
  return plan.pods.flatMap((planned) => {
    const pod = progress[planned.uid];
    if (pod === undefined || pod.kind === "Gone" || isUntouchable(planned, view)) return [];
    const until = pod.kind === "Leaving" ? askedEnough(planned, pod, spanMs) : lastAt;
    if (pod.kind !== "Leaving" && !isUndecided(pod)) return [];
    const endAt = earlier(lastAt, until);
    return endAt > now ? [endAt] : [];
  });
}

/** An earlier leader, or an earlier drain of these pods, may have asked. */
function askedEnough(planned: PlannedPod, pod: LeavingPod, spanMs: Millis): Instant {
  const wholeMs = seconds(planned.wantedGraceSeconds);
  const askedAt = earlier(pod.sinceAt, minus(pod.deadlineAt, wholeMs));
  return earlier(pod.deadlineAt, plus(askedAt, leastTime(planned, spanMs)));
}

function isUndecided(pod: Exclude<PodProgress, GonePod | LeavingPod>): boolean {
  const trouble = pod.kind === "InFlight" ? (pod.held ?? pod.trouble) : pod.trouble;
  return trouble === undefined || undecided.has(trouble.reason);
}

/** What the API server, or the way to it, answers without deciding about the pod. */
const undecided: ReadonlySet<DrainReason> = new Set(["AnswerLost", "ApiOverloaded"]);
