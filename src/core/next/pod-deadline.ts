import type { PodFacts } from "../cluster/pod.ts";
import { between, millis, plus, seconds } from "../time/time.ts";
import type { Evaluation } from "./evaluation.ts";
import type { PodDeadline } from "./memory.ts";

/** A smaller difference is that of two clocks that are right. */
const noticeableMs = 2000;

/**
 * The pods, with the end of their grace in the present time of the API server. That end is an
 * instant of one server's clock, and now may be that of another, or be set meanwhile: a pod in
 * mid-grace would look like one that is stuck, and its machine would be released. So what is left
 * of a grace counts on the monotonic clock, from when the pod was first seen to leave.
 */
export function inPresentTime(
  pods: readonly PodFacts[],
  evaluation: Evaluation,
): readonly PodFacts[] {
  const { now, memory } = evaluation;
  const seen = pods.map((pod) => {
    const before = memory.podDeadlines[pod.uid];
    return before !== undefined && before.deletionAt === pod.deletionAt
      ? before
      : firstSeen(pod, { before, evaluation });
  });
  const isNews = pods.some(({ uid }, index) => memory.podDeadlines[uid] !== seen[index]);
  if (isNews || pods.length !== Object.keys(memory.podDeadlines).length) {
    const podDeadlines = Object.fromEntries(pods.map(({ uid }, index) => [uid, seen[index] ?? {}]));
    evaluation.remember({ podDeadlines });
  }
  return pods.map((pod, index) => {
    const { endsMs } = seen[index] ?? {};
    if (pod.deletionAt === undefined || endsMs === undefined) return pod;
    const presentAt = plus(now.at, millis(endsMs - now.ms));
    const isSame = Math.abs(between(pod.deletionAt, presentAt)) < noticeableMs;
    return isSame ? pod : { ...pod, deletionAt: presentAt };
  });
}

/** A pod that was seen before its grace began has all of it; of another the clocks have to tell. */
function firstSeen(
  { deletionAt, deletionGraceSeconds }: PodFacts,
  about: { readonly before: PodDeadline | undefined; readonly evaluation: Evaluation },
): PodDeadline {
  if (deletionAt === undefined) return {};
  const { now } = about.evaluation;
  const isNew = about.before !== undefined && deletionGraceSeconds !== undefined;
  const leftMs = isNew ? seconds(deletionGraceSeconds) : between(now.at, deletionAt);
  return { deletionAt, endsMs: now.ms + leftMs };
}
