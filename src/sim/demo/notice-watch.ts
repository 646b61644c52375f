import type { Instant } from "../../core/time/time.ts";
import type { StoredChange } from "../api/store/object-store.ts";
import type { CloudEvent } from "../cloud/model-machine.ts";
import { controllerOf, type PodObject } from "../cluster-controllers/cluster-object.ts";
import type { ModelCluster } from "../model-cluster.ts";

/** What became of one machine's pods from its notice on. Pods of DaemonSets are left out. */
export interface NoticeStory {
  readonly node: string;
  readonly noticedAt: Instant;
  /** When its power went. */
  readonly goneAt?: Instant;
  readonly pods: readonly PodStory[];
}

export interface PodStory {
  readonly name: string;
  /** When it was told to end. */
  readonly toldAt?: Instant;
  /** When it had ended; absent for one that was running when the power went. */
  readonly endedAt?: Instant;
}

/** Follows the pods of the machine that was noticed last, by the cloud and the pods alone. */
export class NoticeWatch {
  readonly #cluster: ModelCluster;
  #story: NoticeStory | undefined;
  #stories: ReadonlyMap<string, PodStory> = new Map();
  #machineId = "";

  constructor(cluster: ModelCluster) {
    this.#cluster = cluster;
    cluster.cloud.subscribe((event) => this.#seeCloud(event));
    cluster.api.context.store.collection("pods").subscribe((change) => this.#seePod(change));
  }

  latest(): NoticeStory | undefined {
    return this.#story && { ...this.#story, pods: [...this.#stories.values()] };
  }

  #seeCloud({ kind, at, machine }: CloudEvent): void {
    if (kind === "Noticed") {
      this.#machineId = machine.id;
      this.#story = { node: machine.name, noticedAt: at, pods: [] };
      this.#stories = new Map(this.#podsOn(machine.name));
    }
    if (kind !== "Gone" || this.#story === undefined || machine.id !== this.#machineId) return;
    this.#story = { ...this.#story, goneAt: at };
  }

  #podsOn(node: string): readonly (readonly [string, PodStory])[] {
    const pods = [
      ...this.#cluster.api.context.store.collection("pods").onNode(node),
    ] as PodObject[];
    return pods
      .filter((pod) => controllerOf(pod)?.kind !== "DaemonSet" && pod.status.phase === "Running")
      .map((pod) => [pod.metadata.uid, { name: pod.metadata.name }] as const)
      .toSorted(([, a], [, b]) => (a.name < b.name ? -1 : 1));
  }

  #seePod({ type, object }: StoredChange): void {
    const known = this.#stories.get(object.metadata.uid);
    if (known === undefined || known.endedAt !== undefined) return;
    if (this.#story?.goneAt !== undefined) return;
    const at = this.#cluster.api.context.clock.now();
    const pod = object as PodObject;
    const isTold = pod.metadata.deletionTimestamp !== undefined;
    const hasEnded = type === "DELETED" || pod.status.phase === "Failed";
    if (isTold && known.toldAt === undefined) this.#write(pod, { ...known, toldAt: at });
    if (hasEnded) this.#write(pod, { toldAt: at, ...known, endedAt: at });
  }

  #write({ metadata }: PodObject, story: PodStory): void {
    this.#stories = new Map([...this.#stories, [metadata.uid, story]]);
  }
}
