import { isSwitch, type MarkReading } from "../cluster/node.ts";
import type { PodFacts } from "../cluster/pod.ts";
import type { DrainReason } from "../departure/drain-reason.ts";
import { inEnglish } from "../reason/english.ts";
import { markMeant } from "../time/named-time.ts";
import { type Instant, parseDuration, plus } from "../time/time.ts";

/** An annotation by which a pod asks not to be evicted in a planned departure. */
export interface DisturbanceMark {
  readonly reason: Extract<DrainReason, "DoNotDisturb" | "DoNotDisrupt" | "NotSafeToEvict">;
  /** The annotation as written: `key: "value"`. */
  readonly detail: string;
  /** When it expires; absent: never. */
  readonly freeAt?: Instant | undefined;
}

const timed = [
  ["lastcall.dev/do-not-disturb", "DoNotDisturb"],
  ["karpenter.sh/do-not-disrupt", "DoNotDisrupt"],
] as const;

const safeToEvict = "cluster-autoscaler.kubernetes.io/safe-to-evict";

/**
 * The mark that holds longest at `now`, if there is one. A duration counts from the pod's start; a
 * pod that has not started has the age zero. A value that is neither a boolean nor a duration
 * counts as "true": a spelling mistake must not cost anyone a pod, and the plan names it.
 */
export function disturbanceMark(pod: PodFacts, now: Instant): DisturbanceMark | undefined {
  const marks = timed.map(([key, reason]) => timedMark(pod, { key, reason, now }));
  let longest: DisturbanceMark | undefined;
  for (const mark of [...marks, autoscalerMark(pod)]) {
    if (mark !== undefined && outlasts(mark, longest)) longest = mark;
  }
  return longest;
}

/** Undefined for any annotation that is no mark of a pod. */
export function podMarkReading(key: string, value: string): MarkReading | undefined {
  if (key === safeToEvict) return isSwitch(value) ? "Readable" : "Ignored";
  if (!timed.some(([mark]) => mark === key)) return undefined;
  const isReadable = isSwitch(value) || parseDuration(value) !== undefined;
  return isReadable ? "Readable" : "CountsAsTrue";
}

const keys = [...timed.map(([key]) => key), safeToEvict];

/**
 * All marks of the pods as one text, which differs if one was set, changed or removed, or has
 * expired.
 */
export function marksOf(pods: readonly PodFacts[], now: Instant): string {
  const said = pods.flatMap((pod) => {
    const { uid, annotations } = pod;
    const own = keys.flatMap((key) => (key in annotations ? [`${key}=${annotations[key]}`] : []));
    if (own.length === 0) return [];
    return [`${uid} ${own.join(" ")} holds ${disturbanceMark(pod, now)?.detail}`];
  });
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
  if (value === "true") return mark;
  if (span === undefined) return { ...mark, detail: unreadable(about.key, value) };
  const freeAt = plus(pod.startedAt ?? about.now, span);
  return freeAt > about.now ? { ...mark, freeAt } : undefined;
}

function unreadable(mark: string, value: string): string {
  const about = { mark, value: JSON.stringify(value), meant: markMeant(value) };
  return inEnglish({ says: "drain.MarkUnreadable", ...about });
}

function outlasts(mark: DisturbanceMark, other: DisturbanceMark | undefined): boolean {
  if (other === undefined) return true;
  if (other.freeAt === undefined) return false;
  return mark.freeAt === undefined || mark.freeAt > other.freeAt;
}

/** Directories of a machine in which a pod leaves no data that it would miss elsewhere. */
const foldersWithoutData: readonly { readonly folder: string; readonly holds: string }[] = [
  { folder: "/dev", holds: "devices" },
  { folder: "/proc", holds: "the kernel's own view" },
  { folder: "/sys", holds: "the kernel's own view" },
  { folder: "/lib/modules", holds: "kernel modules" },
  { folder: "/usr/lib/modules", holds: "kernel modules" },
  { folder: "/usr/src", holds: "kernel headers" },
  { folder: "/boot", holds: "the kernel" },
  { folder: "/run", holds: "sockets and locks" },
  { folder: "/var/run", holds: "sockets and locks" },
  { folder: "/var/lock", holds: "sockets and locks" },
  { folder: "/tmp", holds: "what a restart of the machine clears" },
  { folder: "/var/log", holds: "logs" },
  { folder: "/var/lib/docker/containers", holds: "logs of containers" },
  { folder: "/etc", holds: "the machine's configuration and certificates" },
  { folder: "/usr/share/zoneinfo", holds: "time zones" },
  { folder: "/usr/share/ca-certificates", holds: "certificates" },
  { folder: "/usr/local/share/ca-certificates", holds: "certificates" },
  { folder: "/opt/cni", holds: "network plugins" },
  { folder: "/home/kubernetes", holds: "GKE's own programs and drivers" },
  { folder: "/var/lib/kubelet", holds: "what the kubelet manages" },
];

/** Types of hostPath that are not directories or files with content. */
const typesWithoutData: ReadonlySet<string | undefined> = new Set([
  "Socket",
  "CharDevice",
  "BlockDevice",
]);

/** Whether a pod that writes to this hostPath is likely to leave data behind on the machine. */
export function holdsData({
  path,
  type,
}: {
  readonly path: string;
  readonly type?: string | undefined;
}): boolean {
  if (typesWithoutData.has(type) || path.endsWith(".sock")) return false;
  return !foldersWithoutData.some(({ folder }) => path === folder || path.startsWith(`${folder}/`));
}
