import { formatInstant, type Instant } from "../../core/time/time.ts";
import type { ModelObject, StoredChange } from "../api/store/object-store.ts";
import type { MachineEvent } from "../cloud/model-machine.ts";
import {
  controllerOf,
  isPlaceholder,
  type NodeObject,
  type PodObject,
} from "../cluster-controllers/cluster-object.ts";
import { exitSecondsOf, gkeShutdownGrace, isShuttingDown } from "../cluster-controllers/kubelet.ts";
import { type DepartureObject, departureStorage, type Violation } from "../invariants/invariant.ts";
import type { ModelCluster } from "../model-cluster.ts";
import { type Setback, setbackOf, sumSetbacks } from "./setback.ts";

/** What happened to a machine's pods from its notice on, without pods of DaemonSets. */
export interface NoticeTimeline {
  readonly node: string;
  readonly noticedAt: Instant;
  /** When its power was turned off. */
  readonly goneAt?: Instant;
  readonly pods: readonly PodTimeline[];
}

interface PodTimeline {
  readonly name: string;
  /** When its deletion or its shutdown started. */
  readonly terminatingAt?: Instant;
  /** When it had ended; absent if it was still running when the power went off. */
  readonly endedAt?: Instant;
  /** It was killed before its program had ended. */
  readonly isKilled?: true;
}

interface WatchedPod extends PodTimeline {
  /** From SIGTERM until its program exits on its own. */
  readonly exitMs: number;
}

/**
 * Follows the pods of the machine with the latest notice, using only the cloud's events and the
 * pods.
 */
export class NoticeWatch {
  readonly #cluster: ModelCluster;
  #timeline: NoticeTimeline | undefined;
  #pods: ReadonlyMap<string, WatchedPod> = new Map();
  #machineId = "";

  constructor(cluster: ModelCluster) {
    this.#cluster = cluster;
    cluster.cloud.subscribe((event) => this.#onCloudEvent(event));
    const { store } = cluster.api.context;
    store.collection("pods").subscribe((change) => this.#onPodChange(change));
    store.collection("nodes").subscribe(({ object }) => this.#onNodeChange(object as NodeObject));
  }

  latest(): NoticeTimeline | undefined {
    const pods = [...this.#pods.values()].map(({ exitMs: _, ...pod }) => pod);
    return this.#timeline && { ...this.#timeline, pods };
  }

  #onCloudEvent({ kind, at, machine }: MachineEvent): void {
    if (kind === "Noticed") {
      this.#machineId = machine.id;
      this.#timeline = { node: machine.name, noticedAt: at, pods: [] };
      this.#pods = new Map(this.#podsOn(machine.name));
    }
    if (this.#timeline === undefined || machine.id !== this.#machineId) return;
    if (kind !== "Gone") return;
    // Losing power kills whatever is still running.
    this.#change((pod) => (pod.endedAt === undefined ? { ...pod, isKilled: true } : pod));
    this.#timeline = { ...this.#timeline, goneAt: at };
  }

  /** The shutdown terminates the pods that are not terminating yet. */
  #onNodeChange(node: NodeObject): void {
    const { node: name, goneAt } = this.#timeline ?? {};
    if (name !== node.metadata.name || goneAt !== undefined || !isShuttingDown(node)) return;
    const at = this.#cluster.api.context.clock.now();
    this.#change((pod) => ({ terminatingAt: at, ...pod }));
  }

  #change(change: (pod: WatchedPod) => WatchedPod): void {
    this.#pods = new Map([...this.#pods].map(([uid, pod]) => [uid, change(pod)]));
  }

  #podsOn(node: string): readonly (readonly [string, WatchedPod])[] {
    const pods = [
      ...this.#cluster.api.context.store.collection("pods").onNode(node),
    ] as PodObject[];
    return pods
      .filter((pod) => controllerOf(pod)?.kind !== "DaemonSet" && pod.status.phase === "Running")
      .map((pod) => {
        const exitMs = exitSecondsOf(pod) * 1000;
        return [pod.metadata.uid, { name: pod.metadata.name, exitMs }] as const;
      })
      .toSorted(([, a], [, b]) => (a.name < b.name ? -1 : 1));
  }

  #onPodChange({ type, object }: StoredChange): void {
    const known = this.#pods.get(object.metadata.uid);
    if (known === undefined || known.endedAt !== undefined) return;
    if (this.#timeline?.goneAt !== undefined) return;
    const at = this.#cluster.api.context.clock.now();
    const pod = object as PodObject;
    const isTerminating = pod.metadata.deletionTimestamp !== undefined;
    const hasEnded = type === "DELETED" || pod.status.phase === "Failed";
    if (isTerminating && known.terminatingAt === undefined)
      this.#write(pod, { ...known, terminatingAt: at });
    if (hasEnded) this.#write(pod, ended({ terminatingAt: at, ...known }, at));
  }

  #write({ metadata }: PodObject, timeline: WatchedPod): void {
    this.#pods = new Map([...this.#pods, [metadata.uid, timeline]]);
  }
}

function ended(
  pod: WatchedPod & { readonly terminatingAt: Instant },
  endedAt: Instant,
): WatchedPod {
  const isKilled = endedAt - pod.terminatingAt < pod.exitMs;
  return { ...pod, endedAt, ...(isKilled && { isKilled }) };
}

/** The outcome of a fleet under one policy. */
export interface FleetCounts {
  /** Nodes that left as planned: every pod by eviction, in its own time, then the machine. */
  readonly plannedDepartures: number;
  /** Machines that the cloud took, at any time or at their 24 hours. */
  readonly preempted: number;
  /** Of these, the machines that had reached their 24 hours. */
  readonly preemptedAtLimit: number;
  /** Departures in which a pod was deleted against its budget, or was left behind. */
  readonly forced: number;
  /** Departures whose notice ran out with pods still on the node. */
  readonly expired: number;
  /**
   * Pods that got less time to terminate than they ask for. Here and below, pods of DaemonSets and
   * placeholders are not counted.
   */
  readonly podsCut: number;
  /** Pods that were killed before their program had ended. */
  readonly podsLost: number;
  /** Machines created to replace others. */
  readonly replacements: number;
  /** The most machines that the cloud took within one minute. */
  readonly largestLossIn60s: number;
  /** The same within one hour: machines launched together reach their 24 hours over most of one. */
  readonly largestLossIn1h: number;
}

/** The counts of two runs; the largest losses are those of the worse run. */
export function addCounts(a: FleetCounts, b: FleetCounts): FleetCounts {
  const sums = Object.entries(a).map(([name, count]) => {
    const other = b[name as keyof FleetCounts];
    return [name, name.startsWith("largest") ? Math.max(count, other) : count + other];
  });
  return Object.fromEntries(sums) as unknown as FleetCounts;
}

interface PolicyRun {
  readonly name: string;
  readonly counts: FleetCounts;
  readonly setbacks: readonly Setback[];
}

export interface SimulationFacts {
  readonly seed: number;
  readonly runs: number;
  /** Desired nodes times hours run, over all runs. */
  readonly nodeHours: number;
  readonly policies: readonly PolicyRun[];
  readonly violations: readonly Violation[];
  readonly wallSeconds: number;
}

/**
 * The pinned form of the contract: kind SimulationReport. Everything but `wallSeconds` follows from
 * the seed.
 */
export function simulationReport(facts: SimulationFacts): object {
  const { seed, runs, nodeHours, policies, violations, wallSeconds } = facts;
  return {
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "SimulationReport",
    seed,
    runs,
    nodeHours,
    policies: policies.map(({ name, counts, setbacks }) => ({
      ...{ name, ...ratedCounts(counts, nodeHours), setbacks },
    })),
    violations: violations.map((one) => ({ ...one, at: formatInstant(one.at) })),
    wallSeconds,
  };
}

/** The counts in the pinned order, with the two rates that make fleets comparable. */
function ratedCounts(counts: FleetCounts, nodeHours: number): object {
  const { largestLossIn60s, largestLossIn1h, ...rest } = counts;
  const perNodeDay = (count: number): number => rounded((count * 24) / nodeHours);
  return {
    ...rest,
    unplannedPerNodeDay: perNodeDay(counts.preempted),
    replacementsPerNodeDay: perNodeDay(counts.replacements),
    largestLossIn60s,
    largestLossIn1h,
  };
}

function rounded(value: number): number {
  return Math.round(value * 10_000) / 10_000;
}

const minuteMs = 60_000;

const hourMs = 60 * minuteMs;

/**
 * Counts the outcomes, with or without a controller, by the cloud's events and the pods themselves;
 * only the outcomes of departures are read from their status.
 */
export class FleetTally {
  readonly #cluster: ModelCluster;
  readonly #unsubscribe: readonly (() => void)[];
  #outcomes: Readonly<Record<string, number>> = {};
  #preempted = 0;
  #preemptedAtLimit = 0;
  #replacements = 0;
  #podsCut = 0;
  #podsLost = 0;
  #setbacks: readonly Setback[] = [];
  #recentLosses: readonly Instant[] = [];
  #largestInMinute = 0;
  #largestInHour = 0;

  constructor(cluster: ModelCluster) {
    this.#cluster = cluster;
    const { store } = cluster.api.context;
    this.#unsubscribe = [
      cluster.cloud.subscribe((event) => this.#onCloudEvent(event)),
      store.collection("pods").subscribe((change) => this.#onPodChange(change)),
      store.collection(departureStorage).subscribe((change) => this.#onDepartureChange(change)),
    ];
  }

  counts(): FleetCounts {
    return {
      plannedDepartures: this.#outcomes.Planned ?? 0,
      preempted: this.#preempted,
      preemptedAtLimit: this.#preemptedAtLimit,
      forced: this.#outcomes.Forced ?? 0,
      expired: this.#outcomes.Expired ?? 0,
      podsCut: this.#podsCut,
      podsLost: this.#podsLost,
      replacements: this.#replacements,
      largestLossIn60s: this.#largestInMinute,
      largestLossIn1h: this.#largestInHour,
    };
  }

  /** What kept planned departures from taking place. */
  setbacks(): readonly Setback[] {
    return this.#setbacks;
  }

  stop(): void {
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
  }

  #onCloudEvent({ kind, at, machine, because }: MachineEvent): void {
    if (kind === "Launched") this.#replacements += 1;
    if (because === "Released") return;
    if (kind === "Noticed") this.#lose(at);
    if (kind === "Noticed" && because === "Limit") this.#preemptedAtLimit += 1;
    if (kind === "Gone") this.#losePodsOn(machine.name);
  }

  #lose(at: Instant): void {
    this.#preempted += 1;
    const losses = [...this.#recentLosses, at].filter((one) => at - one < hourMs);
    const inMinute = losses.filter((one) => at - one < minuteMs);
    this.#recentLosses = losses;
    this.#largestInHour = Math.max(this.#largestInHour, losses.length);
    this.#largestInMinute = Math.max(this.#largestInMinute, inMinute.length);
  }

  /** The power is off: whatever still ran is killed. */
  #losePodsOn(nodeName: string): void {
    for (const object of this.#cluster.api.context.store.collection("pods").onNode(nodeName)) {
      const pod = object as PodObject;
      if (isUncounted(pod) || pod.status.phase !== "Running") continue;
      this.#podsLost += 1;
      if (pod.metadata.deletionTimestamp === undefined) this.#podsCut += 1;
    }
  }

  #onPodChange({ type, object, previous }: StoredChange): void {
    const [now, before] = [object as PodObject, previous as PodObject | undefined];
    if (type === "DELETED" || before?.status.phase !== "Running" || isUncounted(now)) return;
    const allowedSeconds = grantedBy(before, now);
    if (allowedSeconds === undefined) return;
    // An eviction does not extend the time that a kubelet leaves a pod while it shuts down.
    const grantedSeconds = this.#isShuttingDown(now.spec.nodeName)
      ? Math.min(allowedSeconds, gkeShutdownGrace.regularSeconds)
      : allowedSeconds;
    if (grantedSeconds < wantedSeconds(now)) this.#podsCut += 1;
    if (grantedSeconds < exitSecondsOf(now)) this.#podsLost += 1;
  }

  #isShuttingDown(nodeName: string | undefined): boolean {
    const node = this.#cluster.api.context.store.collection("nodes").get("", nodeName ?? "");
    return isShuttingDown(node as NodeObject | undefined);
  }

  #onDepartureChange({ type, object, previous }: StoredChange): void {
    const [now, before] = [object as DepartureObject, previous as DepartureObject | undefined];
    if (type === "DELETED") return;
    this.#countSetback(now, before);
    const outcome = now.status?.outcome;
    if (outcome === undefined || before?.status?.outcome !== undefined) return;
    this.#outcomes = { ...this.#outcomes, [outcome]: (this.#outcomes[outcome] ?? 0) + 1 };
  }

  #countSetback(now: DepartureObject, before: DepartureObject | undefined): void {
    const outcome = setbackOf(now, before);
    // A notice does not change the status at once: it still says what the departure waited for.
    const { reason, message: example = "" } = now.status ?? {};
    if (outcome === undefined || reason === undefined) return;
    const pods = [...this.#cluster.api.context.store.collection("pods").list()] as PodObject[];
    const waiting = pods.filter((pod) => pod.spec.nodeName === undefined && !isUncounted(pod));
    const podsWithoutNode = waiting.length;
    const one = { outcome, reason, departures: 1, example, podsWithoutNode };
    this.#setbacks = sumSetbacks([...this.#setbacks, one]);
  }
}

/**
 * The grace period in seconds if this change starts a running pod's termination; otherwise
 * undefined.
 */
function grantedBy(before: PodObject, now: PodObject): number | undefined {
  const shutDown = now.status.phase === "Failed" && now.status.reason === "Terminated";
  if (shutDown) return Math.min(wantedSeconds(now), gkeShutdownGrace.regularSeconds);
  const wasGoing = before.metadata.deletionTimestamp !== undefined;
  if (wasGoing || now.metadata.deletionTimestamp === undefined) return undefined;
  return now.metadata.deletionGracePeriodSeconds ?? 0;
}

function wantedSeconds(pod: PodObject): number {
  return pod.spec.terminationGracePeriodSeconds ?? 30;
}

/** Whether nothing is lost with it: a pod of a DaemonSet, or one that only reserves capacity. */
function isUncounted(pod: ModelObject): boolean {
  return controllerOf(pod)?.kind === "DaemonSet" || isPlaceholder(pod);
}
