import type { PodFacts } from "../cluster/pod.ts";
import { between, type Instant, type Millis, millis, plus } from "../time/time.ts";
import { type DrainLimit, graceAt, latestAsk } from "./drain-limit.ts";

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

/**
 * The order in which pods leave. The tiers are split at priority 2e9, like the kubelet's own
 * default groups at shutdown (nodeshutdown_manager: system-cluster-critical). DNS belongs to the
 * critical pods whatever its priority, because the other pods need it until they end.
 */
export const tiers = { workload: 0, critical: 1, daemonSet: 2, own: 3 } as const;

export type Tier = (typeof tiers)[keyof typeof tiers];

const dnsNames: ReadonlySet<string | undefined> = new Set([
  "kube-dns",
  "coredns",
  "node-local-dns",
]);

/** `self` is the uid of the controller's own pod, if it runs in one. */
export function tierOf(pod: PodFacts, self: string | undefined): Tier {
  if (pod.uid === self || isController(pod)) return tiers.own;
  if (pod.controller?.kind === "DaemonSet") return tiers.daemonSet;
  if (pod.priority >= criticalPriority || isDns(pod)) return tiers.critical;
  return tiers.workload;
}

function isController(pod: PodFacts): boolean {
  return (
    pod.labels["app.kubernetes.io/name"] === "lastcall" &&
    pod.labels["app.kubernetes.io/component"] === "controller"
  );
}

function isDns(pod: PodFacts): boolean {
  return dnsNames.has(pod.labels["k8s-app"]) || dnsNames.has(pod.labels["app.kubernetes.io/name"]);
}

/** What the order depends on for one pod. */
export interface WavePod {
  readonly tier: number;
  readonly wantedSeconds: number;
  /** For a pod that is already terminating: the longest time until it is gone. */
  readonly leavingMs?: Millis | undefined;
  /** For a pod that may complete before it is evicted: how long, from the start. */
  readonly waitMs?: Millis | undefined;
  /**
   * How long it is there once it is asked to leave; absent: for all its grace. Infinity: until the
   * time is up.
   */
  readonly staysMs?: number | undefined;
}

export interface WaveSlot {
  readonly startMs: Millis;
  readonly graceSeconds: number;
}

/**
 * When each pod starts to leave, counted from the start of the drain, and with how much grace.
 *
 * Without a deadline, a tier starts when the previous one has had all its grace, and no grace is
 * cut. If the policy proceeds after a timeout, each pod starts at its latest start at the latest.
 * With a deadline, the waves are laid out backwards from it. The latest start of a pod is that
 * of `latestAsk`, or 0 if that does not fit. A pod starts when the lower tiers have had their
 * grace, but never after its own latest start, nor after that of a pod in a higher tier. It follows
 * for every pod (test/core/drain-plan/drain-order.test.ts checks it on random drains):
 *
 * 1. `1 <= grace <= max(1, wanted)`, and `start + grace <= left` if at least a second is left;
 * 2. a pod is cut only if it wants more than all that is left, so no pod is cut for another's sake,
 *    and the critical pods keep their share;
 * 3. of two pods in different tiers, the lower does not start later;
 * 4. no pod of a higher tier starts earlier than those two bounds require.
 */
export function layWaves(pods: readonly WavePod[], end: WaveEnd): readonly WaveSlot[] {
  const slots = new Map<WavePod, WaveSlot>();
  let clearMs = 0;
  for (const tier of [...new Set(pods.map((pod) => pod.tier))].sort((a, b) => a - b)) {
    const wave = pods.filter((pod) => pod.tier === tier);
    const capMs = end.limit.kind === "Deadline" ? latestAbove(tier, { pods, end }) : never;
    for (const pod of wave) slots.set(pod, slotOf(pod, { clearMs, capMs, end }));
    clearMs = Math.max(clearMs, ...wave.map((pod) => endOf(pod, slots.get(pod))));
  }
  return pods.map((pod) => slots.get(pod) as WaveSlot);
}

const never = Number.POSITIVE_INFINITY;

function latestAbove(
  tier: number,
  { pods, end }: { readonly pods: readonly WavePod[]; readonly end: WaveEnd },
): number {
  const higher = pods.filter((pod) => pod.tier > tier && pod.leavingMs === undefined);
  return Math.min(...higher.map((pod) => latestStart(pod, end)));
}

/** What the waves have to fit into, and when the drain starts. */
export interface WaveEnd {
  readonly limit: DrainLimit;
  readonly at: Instant;
}

/** The latest start at which a pod gets all the grace that it wants; Infinity without a limit. */
function latestStart({ wantedSeconds }: WavePod, { limit, at }: WaveEnd): number {
  const latest = latestAsk(wantedSeconds, limit);
  return latest === undefined ? never : Math.max(0, between(at, latest));
}

function slotOf(
  pod: WavePod,
  about: { readonly clearMs: number; readonly capMs: number; readonly end: WaveEnd },
): WaveSlot {
  const { clearMs, capMs, end } = about;
  const readyMs = pod.leavingMs === undefined ? Math.max(clearMs, pod.waitMs ?? 0) : 0;
  const startMs = millis(Math.min(readyMs, capMs, latestStart(pod, end)));
  const asked = { limit: end.limit, at: plus(end.at, startMs), isForced: false };
  return { startMs, graceSeconds: graceAt(pod.wantedSeconds, asked) };
}

function endOf(pod: WavePod, slot: WaveSlot | undefined): number {
  if (pod.leavingMs !== undefined || slot === undefined) return pod.leavingMs ?? 0;
  return slot.startMs + (pod.staysMs ?? slot.graceSeconds * 1000);
}
