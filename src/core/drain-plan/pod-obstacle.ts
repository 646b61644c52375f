import { type BudgetFacts, matchesLabelSelector, type PodFacts } from "../cluster/pod.ts";
import type { DrainReason } from "../departure/drain-reason.ts";
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
  if (span === undefined) return mark;
  const freeAt = plus(pod.startedAt ?? about.now, span);
  return freeAt > about.now ? { ...mark, freeAt } : undefined;
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

/** Whether PodDisruptionBudgets currently allow the eviction of one pod. */
export type BudgetStanding =
  /** No budget, or one that allows the eviction. */
  | { readonly kind: "Free"; readonly budget?: string | undefined }
  /** Allows no disruption now; it may when more pods are healthy. */
  | BudgetObstacle<"Exhausted">
  /** Can never allow one, however healthy its pods are. */
  | BudgetObstacle<"Impossible">
  /** The eviction API never evicts a pod that two budgets select. */
  | BudgetObstacle<"Multiple">;

interface BudgetObstacle<Kind extends string> {
  readonly kind: Kind;
  /** `namespace/name`; the first by name if there are several. */
  readonly budget: string;
  readonly detail: string;
  /** The budget expects exactly one pod. */
  readonly singleReplica: boolean;
}

/** The budgets that select the pod, by name. They select by labels within their namespace. */
export function budgetsOf(pod: PodFacts, budgets: readonly BudgetFacts[]): readonly BudgetFacts[] {
  return budgets
    .filter((b) => b.namespace === pod.namespace && matchesLabelSelector(b.selector, pod.labels))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/**
 * What the eviction API would respond, computed without a request: a dry run checks each pod
 * separately and costs a request, and for manifests there is no API server. Source:
 * pkg/registry/core/pod/storage/eviction.go (1.36): Pending, finished and terminating pods pass
 * every budget; more than one budget is an error; an unready pod passes with AlwaysAllow, or if the
 * budget has as many healthy pods as it requires.
 */
export function budgetStanding(
  pod: PodFacts,
  world: {
    readonly budgets: readonly BudgetFacts[];
    /** Every pod of the cluster, if known: for budgets without a fresh status. */
    readonly everyPod?: readonly PodFacts[] | undefined;
  },
): BudgetStanding {
  const [budget, ...others] = budgetsOf(pod, world.budgets);
  if (budget === undefined) return { kind: "Free" };
  const name = budgetName(budget);
  if (passesEveryBudget(pod)) return { kind: "Free", budget: name };
  const expected = expectedPods(budget, world.everyPod);
  const singleReplica = expected === 1;
  if (others.length > 0) {
    const names = [budget, ...others].map(budgetName).join(", ");
    return { kind: "Multiple", budget: name, detail: names, singleReplica };
  }
  if (letsGo(pod, budget)) return { kind: "Free", budget: name };
  if (isImpossible(budget, expected)) {
    const detail = `${name} ${demandOf(budget)}${expected === undefined ? "" : ` of ${expected}`}`;
    return { kind: "Impossible", budget: name, detail, singleReplica };
  }
  if (!budget.observed) return { kind: "Free", budget: name };
  const detail = `${name} needs ${budget.desiredHealthy} healthy and has ${budget.currentHealthy}`;
  return { kind: "Exhausted", budget: name, detail, singleReplica };
}

/**
 * Whether no pod of the budget can ever be evicted, with its settings and the number of pods that
 * it expects.
 */
export function canNeverAllow(budget: BudgetFacts): boolean {
  return budget.expectedPods > 0 && isImpossible(budget, expectedPods(budget, undefined));
}

/** Pods in the phase Unknown do not pass. */
function passesEveryBudget(pod: PodFacts): boolean {
  if (pod.deletionAt !== undefined) return true;
  return pod.phase === "Pending" || pod.phase === "Succeeded" || pod.phase === "Failed";
}

export function budgetName(budget: BudgetFacts): string {
  return `${budget.namespace}/${budget.name}`;
}

function letsGo(pod: PodFacts, budget: BudgetFacts): boolean {
  if (!pod.ready && budget.unhealthyPodEvictionPolicy === "AlwaysAllow") return true;
  if (!budget.observed) return false;
  if (budget.disruptionsAllowed > 0) return true;
  return !pod.ready && budget.desiredHealthy > 0 && budget.currentHealthy >= budget.desiredHealthy;
}

/**
 * The number of pods that the budget expects: from its status if that is fresh, otherwise from the
 * pods of the cluster if all of them are known.
 */
function expectedPods(
  budget: BudgetFacts,
  everyPod: readonly PodFacts[] | undefined,
): number | undefined {
  if (budget.observed && budget.expectedPods > 0) return budget.expectedPods;
  return everyPod?.filter(
    (pod) =>
      pod.namespace === budget.namespace &&
      pod.phase !== "Succeeded" &&
      pod.phase !== "Failed" &&
      matchesLabelSelector(budget.selector, pod.labels),
  ).length;
}

/**
 * Both percentages are rounded up (disruption.go, GetScaledValueFromIntOrPercent with roundUp). If
 * the number of pods is unknown, only a budget that no number could satisfy is called impossible.
 */
function isImpossible(budget: BudgetFacts, expected: number | undefined): boolean {
  if (budget.maxUnavailable !== undefined) {
    return scaled(budget.maxUnavailable, expected ?? 1) <= 0;
  }
  if (budget.minAvailable === undefined) return false;
  if (expected === undefined) return budget.minAvailable === "100%";
  return scaled(budget.minAvailable, expected) >= expected;
}

function scaled(value: number | string, total: number): number {
  if (typeof value === "number") return value;
  const percent = /^(\d+)%$/.exec(value);
  return percent === null ? Number(value) : Math.ceil((Number(percent[1]) * total) / 100);
}

function demandOf(budget: BudgetFacts): string {
  return budget.maxUnavailable === undefined
    ? `requires minAvailable ${budget.minAvailable}`
    : `allows maxUnavailable ${budget.maxUnavailable}`;
}
