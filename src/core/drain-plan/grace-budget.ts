import type { Millis } from "../time/time.ts";

/**
 * One entry of the kubelet's `shutdownGracePeriodByPodPriority`: pods of at least `priority` (and
 * under the next entry's) get `seconds` when the node shuts down.
 */
export interface ShutdownGroup {
  readonly priority: number;
  readonly seconds: number;
}

/** `Set` in the pod's own specification, or the API server's default of 30 s. */
export type GraceSource = "Set" | "Default";

/** What a pod gets of what it asked for when the kubelet shuts the node down. */
export interface GrantedGrace {
  readonly grantedSeconds: number;
  /** Whether the pod loses something of what it asked for. */
  readonly cut: boolean;
}

/** What the API server writes where a pod names no `terminationGracePeriodSeconds`. */
export const defaultGraceSeconds = 30;

/** The kubelet's `scheduling.SystemCriticalPriority`: critical is a number, not a namespace. */
export const criticalPriority = 2_000_000_000;

/**
 * The groups that the kubelet makes of `shutdownGracePeriod` and `shutdownGracePeriodCriticalPods`:
 * regular pods get the difference, each part cut down to whole seconds. Empty where the total is 0
 * or under its critical part: then there is no graceful shutdown at all.
 * Source: kubernetes 1.36 pkg/kubelet/nodeshutdown/nodeshutdown_manager.go, `migrateConfig`.
 */
export function groupsOfPair(totalMs: Millis, criticalMs: Millis): readonly ShutdownGroup[] {
  if (totalMs <= 0 || criticalMs > totalMs) return [];
  return [
    { priority: 0, seconds: Math.floor((totalMs - criticalMs) / 1000) },
    { priority: criticalPriority, seconds: Math.floor(criticalMs / 1000) },
  ];
}

/** The groups in the order in which they are shut down: low priority first. */
export function inShutdownOrder(groups: readonly ShutdownGroup[]): readonly ShutdownGroup[] {
  return groups.toSorted((a, b) => a.priority - b.priority);
}

/**
 * The group of a pod: the highest priority that is at most the pod's own; a pod under the lowest
 * group belongs to the lowest. Undefined where there are no groups.
 * Source: nodeshutdown_manager.go, `groupByPriority`.
 */
export function groupOf(
  groups: readonly ShutdownGroup[],
  podPriority: number,
): ShutdownGroup | undefined {
  const ordered = inShutdownOrder(groups);
  return ordered.findLast((group) => group.priority <= podPriority) ?? ordered[0];
}

/**
 * What a pod really gets: the smaller of what it asked for and its group's seconds; the kubelet
 * only ever shortens, and the preStop hook runs inside. Groups run one after the other, so what
 * one leaves over is not added to the next. Without groups nothing is granted and every pod is
 * cut, whatever it asked for: it dies with the machine. (A group of 0 s still lets the container
 * runtime wait one second before it kills; nobody should count on it.)
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

/** Whether a node with these groups shuts down gracefully: some group has time. */
export function isGraceful(groups: readonly ShutdownGroup[]): boolean {
  return groups.some((group) => group.seconds > 0);
}

/** How long a shutdown is held up at most: the sum of the groups, one after the other. */
export function shutdownSeconds(groups: readonly ShutdownGroup[]): number {
  return groups.reduce((sum, group) => sum + group.seconds, 0);
}
