import type { Millis } from "../time/time.ts";

/**
 * One entry of the kubelet's `shutdownGracePeriodByPodPriority`: pods with a priority of at least
 * `priority` (and below that of the next entry) get `seconds` when the node shuts down.
 */
export interface ShutdownGroup {
  readonly priority: number;
  readonly seconds: number;
}

/** `Set` in the pod's own specification, or the API server's default of 30 s. */
export type GraceSource = "Set" | "Default";

/**
 * The grace that a pod gets, compared with what it asked for, when the kubelet shuts the node down.
 */
export interface GrantedGrace {
  readonly grantedSeconds: number;
  /** Whether the pod gets less than it asked for. */
  readonly cut: boolean;
}

/** The default of the API server for `terminationGracePeriodSeconds`. */
export const defaultGraceSeconds = 30;

/**
 * The kubelet's `scheduling.SystemCriticalPriority`: whether a pod is critical depends on its
 * priority, not on its namespace.
 */
export const criticalPriority = 2_000_000_000;

/**
 * The groups that the kubelet derives from `shutdownGracePeriod` and
 * `shutdownGracePeriodCriticalPods`: regular pods get the difference; both are truncated to whole
 * seconds. Empty if the total is 0 or less than its critical part: then there is no graceful
 * shutdown at all. Source: kubernetes 1.36 pkg/kubelet/nodeshutdown/nodeshutdown_manager.go,
 * `migrateConfig`.
 */
export function groupsOfPair(totalMs: Millis, criticalMs: Millis): readonly ShutdownGroup[] {
  if (totalMs <= 0 || criticalMs > totalMs) return [];
  return [
    { priority: 0, seconds: Math.floor((totalMs - criticalMs) / 1000) },
    { priority: criticalPriority, seconds: Math.floor(criticalMs / 1000) },
  ];
}

/** The groups in the order in which they are shut down: lowest priority first. */
export function inShutdownOrder(groups: readonly ShutdownGroup[]): readonly ShutdownGroup[] {
  return groups.toSorted((a, b) => a.priority - b.priority);
}

/**
 * The group of a pod: the one with the highest priority that is at most the pod's own; a pod below
 * the lowest group belongs to the lowest. Undefined if there are no groups. Source:
 * nodeshutdown_manager.go, `groupByPriority`.
 */
export function groupOf(
  groups: readonly ShutdownGroup[],
  podPriority: number,
): ShutdownGroup | undefined {
  const ordered = inShutdownOrder(groups);
  return ordered.findLast((group) => group.priority <= podPriority) ?? ordered[0];
}

/**
 * What a pod really gets: the smaller of what it asked for and its group's seconds. The kubelet
 * only ever shortens the grace period, and the preStop hook is part of it. Groups run one after
 * another, so the time that one does not use is not added to the next. Without groups nothing is
 * granted and every pod is cut, whatever it asked for: it dies with the machine. (A group of 0 s
 * still lets the container runtime wait one second before it kills, but do not rely on that.)
 */
export function grantGrace(options: {
  readonly wantedSeconds: number;
  readonly podPriority: number;
  readonly groups: readonly ShutdownGroup[];
}): GrantedGrace {
  const group = groupOf(options.groups, options.podPriority);
  if (group === undefined || !isGraceful(options.groups)) return { grantedSeconds: 0, cut: true };
  const grantedSeconds = Math.min(options.wantedSeconds, group.seconds);
  return { grantedSeconds, cut: options.wantedSeconds > grantedSeconds };
}

/** Whether a node with these groups shuts down gracefully: at least one group has time. */
export function isGraceful(groups: readonly ShutdownGroup[]): boolean {
  return groups.some((group) => group.seconds > 0);
}

/** The longest that a shutdown is delayed: the sum of the groups, which run one after another. */
export function shutdownSeconds(groups: readonly ShutdownGroup[]): number {
  return groups.reduce((sum, group) => sum + group.seconds, 0);
}
