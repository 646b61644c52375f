import type { NodeFacts } from "../cluster/node.ts";
import type { PodFacts } from "../cluster/pod.ts";
import { isUnreachable } from "../drain-plan/drain-plan.ts";
import { between, earlier, later, millis, plus, seconds } from "../time/time.ts";
import type { Evaluation } from "./evaluation.ts";
import type { PodDeadline } from "./memory.ts";

/** A smaller difference is that of two clocks that are right. */
const noticeableMs = 2000;

/**
 * The pods, with the end of their grace in the present time of the API server. That end is an
 * instant of one server's clock, and now may be that of another, or be set meanwhile: a pod in
 * mid-grace would look like one that is stuck, and its machine would be released. So what is left
 * of a grace counts on the monotonic clock, from when the pod was first seen to leave.
 *
 * A kubelet that was unreachable learns only afterwards which of its pods are to leave, and gives
 * them their whole grace from then on. Source: kubernetes `pkg/kubelet/pod_workers.go`,
 * calculateEffectiveGracePeriod, which knows the seconds and no instant.
 */
export function inPresentTime(pods: readonly PodFacts[], scene: Scene): readonly PodFacts[] {
  const { now, memory } = scene.evaluation;
  const seen = pods.map((pod) => deadlineOf(pod, memory.podDeadlines[pod.uid], scene));
  const isNews = pods.some(({ uid }, index) => memory.podDeadlines[uid] !== seen[index]);
  if (isNews || pods.length !== Object.keys(memory.podDeadlines).length) {
    const podDeadlines = Object.fromEntries(pods.map(({ uid }, index) => [uid, seen[index] ?? {}]));
    scene.evaluation.remember({ podDeadlines });
  }
  return pods.map((pod, index) => {
    const { endsMs } = seen[index] ?? {};
    if (pod.deletionAt === undefined || endsMs === undefined) return pod;
    const presentAt = plus(now.at, millis(endsMs - now.ms));
    const isSame = Math.abs(between(pod.deletionAt, presentAt)) < noticeableMs;
    return isSame ? pod : { ...pod, deletionAt: presentAt };
  });
}

interface Scene {
  /** Their node. */
  readonly node: NodeFacts;
  readonly evaluation: Evaluation;
}

function deadlineOf(pod: PodFacts, before: PodDeadline | undefined, scene: Scene): PodDeadline {
  const isSilent = pod.deletionAt !== undefined && isUnreachable(scene.node);
  const isSame = before !== undefined && before.deletionAt === pod.deletionAt;
  if (isSame && (before.isSilent === true) === isSilent) return before;
  if (isSilent) return { ...(isSame ? before : firstSeen(pod, before, scene)), isSilent };
  return firstSeen(pod, isSame ? {} : before, scene);
}

/**
 * A pod that was seen before its grace began, or before its kubelet could learn of that, has all of
 * it; of another the clocks have to tell.
 */
function firstSeen(
  { deletionAt, deletionGraceSeconds }: PodFacts,
  before: PodDeadline | undefined,
  { node, evaluation: { now } }: Scene,
): PodDeadline {
  if (deletionAt === undefined) return {};
  const graceMs = deletionGraceSeconds === undefined ? undefined : seconds(deletionGraceSeconds);
  if (before !== undefined && graceMs !== undefined)
    return { deletionAt, endsMs: now.ms + graceMs };
  const { readySince } = node;
  const endsAt =
    graceMs === undefined || readySince === undefined
      ? deletionAt
      : later(deletionAt, plus(earlier(readySince, now.at), graceMs));
  return { deletionAt, endsMs: now.ms + between(now.at, endsAt) };
}
