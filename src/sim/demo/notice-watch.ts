import type { Instant } from "../../core/time/time.ts";
import type { StoredChange } from "../api/store/object-store.ts";
import type { MachineEvent } from "../cloud/model-machine.ts";
import { controllerOf, type PodObject } from "../cluster-controllers/cluster-object.ts";
import type { ModelCluster } from "../model-cluster.ts";

/** What became of one machine's pods from its notice on. Pods of DaemonSets are left out. */
export interface NoticeTimeline {
  readonly node: string;
  readonly noticedAt: Instant;
  /** When its power went. */
  readonly goneAt?: Instant;
  readonly pods: readonly PodTimeline[];
}

interface PodTimeline {
  readonly name: string;
  /** When its deletion or its shutdown began. */
  readonly terminatingAt?: Instant;
  /** When it had ended; absent for one that was running when the power went. */
  readonly endedAt?: Instant;
}

/** Follows the pods of the machine that was noticed last, by the cloud and the pods alone. */
export class NoticeWatch {
  readonly #cluster: ModelCluster;
  #timeline: NoticeTimeline | undefined;
  #pods: ReadonlyMap<string, PodTimeline> = new Map();
  #machineId = "";

  constructor(cluster: ModelCluster) {
    this.#cluster = cluster;
    cluster.cloud.subscribe((event) => this.#onCloudEvent(event));
    cluster.api.context.store.collection("pods").subscribe((change) => this.#onPodChange(change));
  }

  latest(): NoticeTimeline | undefined {
    return this.#timeline && { ...this.#timeline, pods: [...this.#pods.values()] };
  }

  #onCloudEvent({ kind, at, machine }: MachineEvent): void {
    if (kind === "Noticed") {
      this.#machineId = machine.id;
      this.#timeline = { node: machine.name, noticedAt: at, pods: [] };
      this.#pods = new Map(this.#podsOn(machine.name));
    }
    if (kind !== "Gone" || this.#timeline === undefined || machine.id !== this.#machineId) return;
    this.#timeline = { ...this.#timeline, goneAt: at };
  }

  #podsOn(node: string): readonly (readonly [string, PodTimeline])[] {
    const pods = [
      ...this.#cluster.api.context.store.collection("pods").onNode(node),
    ] as PodObject[];
    return pods
      .filter((pod) => controllerOf(pod)?.kind !== "DaemonSet" && pod.status.phase === "Running")
      .map((pod) => [pod.metadata.uid, { name: pod.metadata.name }] as const)
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
    if (hasEnded) this.#write(pod, { terminatingAt: at, ...known, endedAt: at });
  }

  #write({ metadata }: PodObject, timeline: PodTimeline): void {
    this.#pods = new Map([...this.#pods, [metadata.uid, timeline]]);
  }
}
