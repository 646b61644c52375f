import type { Instant } from "../../core/time/time.ts";
import type { StoredChange } from "../api/store/object-store.ts";
import type { MachineEvent } from "../cloud/model-machine.ts";
import {
  controllerOf,
  type NodeObject,
  type PodObject,
} from "../cluster-controllers/cluster-object.ts";
import { exitSecondsOf, isShuttingDown } from "../cluster-controllers/kubelet.ts";
import type { ModelCluster } from "../model-cluster.ts";

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
