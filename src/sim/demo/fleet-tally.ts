import type { Instant } from "../../core/time/time.ts";
import type { ModelObject } from "../api/store/model-object.ts";
import type { StoredChange } from "../api/store/object-store.ts";
import type { MachineEvent } from "../cloud/model-machine.ts";
import {
  controllerOf,
  type NodeObject,
  type PodObject,
} from "../cluster-controllers/cluster-object.ts";
import { exitSecondsOf, gkeShutdownGrace, isShuttingDown } from "../cluster-controllers/kubelet.ts";
import { type DepartureObject, departureStorage } from "../invariants/departure-object.ts";
import type { ModelCluster } from "../model-cluster.ts";
import type { FleetCounts } from "./simulation-report.ts";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

/**
 * Counts what becomes of a fleet, with a controller or without one, from the cloud's events and
 * the pods as they are; only the outcomes of departures are read from the ledger.
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
      if (isDaemon(pod) || pod.status.phase !== "Running") continue;
      this.#podsLost += 1;
      if (pod.metadata.deletionTimestamp === undefined) this.#podsCut += 1;
    }
  }

  #onPodChange({ type, object, previous }: StoredChange): void {
    const [now, before] = [object as PodObject, previous as PodObject | undefined];
    if (type === "DELETED" || before?.status.phase !== "Running" || isDaemon(now)) return;
    const allowedSeconds = grantedBy(before, now);
    if (allowedSeconds === undefined) return;
    // An eviction does not lengthen what a kubelet that is shutting down leaves a pod.
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
    const outcome = (object as DepartureObject).status?.outcome;
    const before = (previous as DepartureObject | undefined)?.status?.outcome;
    if (type === "DELETED" || outcome === undefined || before !== undefined) return;
    this.#outcomes = { ...this.#outcomes, [outcome]: (this.#outcomes[outcome] ?? 0) + 1 };
  }
}

/**
 * The seconds that this change of a running pod grants it to end in; undefined where it does not
 * end it.
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

function isDaemon(pod: ModelObject): boolean {
  return controllerOf(pod)?.kind === "DaemonSet";
}
