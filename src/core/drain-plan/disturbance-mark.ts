import type { PodFacts } from "../cluster/pod.ts";
import type { DrainReason } from "../departure/drain-reason.ts";
import { parseDuration } from "../time/duration.ts";
import { type Instant, plus } from "../time/time.ts";

/** A pod's own wish not to be evicted in a planned departure. */
export interface DisturbanceMark {
  readonly reason: Extract<DrainReason, "DoNotDisturb" | "DoNotDisrupt" | "NotSafeToEvict">;
  /** The annotation as written: `key: "value"`. */
  readonly detail: string;
  /** When the wish ends; absent: never. */
  readonly freeAt?: Instant | undefined;
}

const timed = [
  ["lastcall.dev/do-not-disturb", "DoNotDisturb"],
  ["karpenter.sh/do-not-disrupt", "DoNotDisrupt"],
] as const;

const safeToEvict = "cluster-autoscaler.kubernetes.io/safe-to-evict";

/**
 * The mark that stands longest at `now`, if any does. A duration counts from the pod's start; one
 * that has not started is at age zero. A value that is neither a boolean nor a duration counts as
 * "true": a spelling mistake must not cost somebody a pod, and the plan names it.
 */
export function disturbanceMark(pod: PodFacts, now: Instant): DisturbanceMark | undefined {
  const marks = timed.map(([key, reason]) => timedMark(pod, { key, reason, now }));
  let longest: DisturbanceMark | undefined;
  for (const mark of [...marks, autoscalerMark(pod)]) {
    if (mark !== undefined && outlasts(mark, longest)) longest = mark;
  }
  return longest;
}

const keys = [...timed.map(([key]) => key), safeToEvict];

/** All that the marks of pods say: another text means that one was set, changed or taken away. */
export function marksOf(pods: readonly PodFacts[]): string {
  const said = pods.flatMap(({ uid, annotations }) =>
    keys.flatMap((key) => (key in annotations ? [`${uid} ${key}=${annotations[key]}`] : [])),
  );
  return said.toSorted().join("\n");
}

function autoscalerMark(pod: PodFacts): DisturbanceMark | undefined {
  if (pod.annotations[safeToEvict] !== "false") return undefined;
  return { reason: "NotSafeToEvict", detail: `${safeToEvict}: "false"` };
}

function timedMark(
  pod: PodFacts,
  about: {
    readonly key: string;
    readonly reason: "DoNotDisturb" | "DoNotDisrupt";
    readonly now: Instant;
  },
): DisturbanceMark | undefined {
  const value = pod.annotations[about.key];
  if (value === undefined || value === "" || value === "false") return undefined;
  const mark = { reason: about.reason, detail: `${about.key}: "${value}"` };
  const span = parseDuration(value);
  if (span === undefined) return mark;
  const freeAt = plus(pod.startedAt ?? about.now, span);
  return freeAt > about.now ? { ...mark, freeAt } : undefined;
}

function outlasts(mark: DisturbanceMark, other: DisturbanceMark | undefined): boolean {
  if (other === undefined) return true;
  if (other.freeAt === undefined) return false;
  return mark.freeAt === undefined || mark.freeAt > other.freeAt;
}
