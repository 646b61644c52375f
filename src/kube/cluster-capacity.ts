import type { Clock } from "../contracts/clock.ts";
import type { ClusterCapacity, FollowedVolumes, VolumeAttachments } from "../contracts/cluster.ts";
import type { KubeApi, KubeObject } from "../contracts/kube-api.ts";
import { loadOf, type NodeLoads } from "../core/capacity/node-capacity.ts";
import type { Rng } from "../core/chance/rng.ts";
import { type Amounts, type NodeSelector, sumOf } from "../core/cluster/placement.ts";
import type { AttachedVolume, PodFacts } from "../core/cluster/pod.ts";
import { fieldsOf, textOf } from "../core/json/json-field.ts";
import { attachmentsPath, podsPath, volumePath } from "./object/paths.ts";
import { nodeSelectorOf, translatePlacement } from "./object/translate-node.ts";
import { listPages } from "./watch/list.ts";
import { ChangeListeners } from "./watch/object-store.ts";
import { Reflector } from "./watch/reflector.ts";

const notFinished = "status.phase!=Succeeded,status.phase!=Failed";

/** Sums the resource requests of pods, and finds the nodes from which volumes can be reached. */
export class KubeClusterCapacity implements ClusterCapacity {
  readonly #api: KubeApi;
  readonly #onPage: (pods: number) => void;

  /** `onPage` is called with the number of pods of each page. */
  constructor(api: KubeApi, onPage: (pods: number) => void = () => {}) {
    this.#api = api;
    this.#onPage = onPage;
  }

  async loadOn(nodeName: string, signal: AbortSignal): Promise<Amounts> {
    const loads = await this.#sumUp(`spec.nodeName=${nodeName},${notFinished}`, signal);
    return loads.get(nodeName) ?? {};
  }

  loads(signal: AbortSignal): Promise<NodeLoads> {
    return this.#sumUp(notFinished, signal);
  }

  async #sumUp(fieldSelector: string, signal: AbortSignal): Promise<NodeLoads> {
    const loads = new Map<string, Amounts>();
    const query = { fieldSelector };
    for await (const page of listPages(this.#api, podsPath, { query, signal })) {
      this.#onPage(page.length);
      for (const object of page) {
        const spec = fieldsOf(object.spec);
        const nodeName = textOf(spec.nodeName);
        if (!nodeName) continue;
        const load = loadOf({ phase: "Running", placement: translatePlacement(spec) });
        loads.set(nodeName, sumOf(loads.get(nodeName) ?? {}, load));
      }
    }
    return loads;
  }

  async withVolumes(pods: readonly PodFacts[]): Promise<readonly PodFacts[]> {
    return Promise.all(pods.map((pod) => this.#withVolumes(pod)));
  }

  async #withVolumes(pod: PodFacts): Promise<PodFacts> {
    if (pod.placement === undefined || pod.volumeClaims.length === 0) return pod;
    const found = await Promise.all(
      pod.volumeClaims.map((claim) => this.#nodesOf(pod.namespace, claim)),
    );
    const volumeNodes = found.filter((nodes) => nodes !== undefined);
    return { ...pod, placement: { ...pod.placement, volumeNodes } };
  }

  /**
   * Undefined if the claim is not bound, cannot be read, or its volume can be reached from every
   * node.
   */
  async #nodesOf(namespace: string, claim: string): Promise<NodeSelector | undefined> {
    const path = `/api/v1/namespaces/${namespace}/persistentvolumeclaims/${claim}`;
    const volume = textOf(fieldsOf((await this.#read(path))?.spec).volumeName);
    if (!volume) return undefined;
    const spec = fieldsOf((await this.#read(volumePath(volume)))?.spec);
    return nodeSelectorOf(fieldsOf(spec.nodeAffinity).required);
  }

  async #read(path: string): Promise<KubeObject | undefined> {
    const answer = await this.#api.send({ method: "GET", path });
    return answer.status === 200 ? (answer.body as KubeObject) : undefined;
  }
}

/**
 * Follows VolumeAttachments. The API cannot select them by node, so all are listed and watched, and
 * only those of the node are kept.
 */
export class KubeVolumeAttachments implements VolumeAttachments {
  readonly #tools: { readonly api: KubeApi; readonly clock: Clock; readonly rng: Rng };

  constructor(tools: { readonly api: KubeApi; readonly clock: Clock; readonly rng: Rng }) {
    this.#tools = tools;
  }

  follow(nodeName: string, signal: AbortSignal): FollowedVolumes {
    const changes = new ChangeListeners();
    const reflector = new Reflector<AttachedVolume | undefined>({
      ...this.#tools,
      path: attachmentsPath,
      translate: (object) => attachedTo(nodeName, object),
      onChange: () => changes.notify(),
    });
    reflector.run(signal).catch(() => undefined);
    return {
      synced: () => reflector.synced,
      volumes: () => [...reflector.items().values()].flatMap((volume) => volume ?? []),
      onChange: (listener) => changes.listen(listener),
    };
  }

  async claimOf(volume: string): Promise<string | undefined> {
    const answer = await this.#tools.api.send({ method: "GET", path: volumePath(volume) });
    if (answer.status !== 200) return undefined;
    const claim = fieldsOf(fieldsOf((answer.body as KubeObject).spec).claimRef);
    const name = textOf(claim.name);
    return name === undefined ? undefined : `${textOf(claim.namespace) ?? ""}/${name}`;
  }
}

function attachedTo(nodeName: string, object: KubeObject): AttachedVolume | undefined {
  const spec = fieldsOf(object.spec);
  if (spec.nodeName !== nodeName) return undefined;
  const volume = textOf(fieldsOf(spec.source).persistentVolumeName);
  return { name: object.metadata?.name ?? "", volume };
}
