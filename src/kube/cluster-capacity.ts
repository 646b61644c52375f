import type {
  ClusterCapacity,
  FollowedPlaceholders,
  FollowedVolumes,
  Placeholders,
  VolumeAttachments,
} from "../contracts/cluster.ts";
import type { KubeAnswer, KubeApi, KubeObject, KubeRequest } from "../contracts/kube-api.ts";
import { loadOf, type NodeLoads } from "../core/capacity/capacity-fit.ts";
import { type Amounts, formatQuantity, sumOf } from "../core/cluster/node.ts";
import type { AttachedVolume, NodeSelector, PodFacts, PodPlacement } from "../core/cluster/pod.ts";
import type { NewPlaceholder, PlaceholderFacts } from "../core/drain/placeholder-plan.ts";
import { fieldsOf, oneOf, textOf } from "../core/json/json-field.ts";
import {
  attachmentsPath,
  isGone,
  isNameTaken,
  objectError,
  podsPath,
  volumePath,
} from "./object/api-call.ts";
import { conditionOf, translatePlacement } from "./object/translate-node.ts";
import { withVolumeSpecs } from "./object/translate-pod.ts";
import { ChangeListeners, listAll, listPages } from "./watch/collection.ts";
import { Reflector, type SharedReflectorOptions } from "./watch/reflector.ts";

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

  /** A pod whose volumes have been read is returned as it is. */
  async #withVolumes(pod: PodFacts): Promise<PodFacts> {
    if (pod.localClaims !== undefined || pod.volumeClaims.length === 0) return pod;
    const specs = new Map<string, unknown>();
    const read = pod.volumeClaims.map(async (claim) => {
      const spec = await this.#specOf(pod.namespace, claim);
      if (spec !== undefined) specs.set(claim, spec);
    });
    await Promise.all(read);
    return withVolumeSpecs(pod, specs);
  }

  /** Undefined if the claim is not bound, or cannot be read. */
  async #specOf(namespace: string, claim: string): Promise<unknown> {
    const path = `/api/v1/namespaces/${namespace}/persistentvolumeclaims/${claim}`;
    const volume = textOf(fieldsOf((await this.#read(path))?.spec).volumeName);
    return volume ? (await this.#read(volumePath(volume)))?.spec : undefined;
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
  readonly #tools: SharedReflectorOptions;

  constructor(tools: SharedReflectorOptions) {
    this.#tools = tools;
  }

  follow(nodeName: string, signal: AbortSignal): FollowedVolumes {
    const changes = new ChangeListeners();
    const reflector = new Reflector<AttachedVolume | undefined>({
      ...this.#tools,
      path: attachmentsPath,
      watchRefusals: "Retried",
      translate: (object) => attachedTo(nodeName, object),
      onChange: () => changes.notify(),
    });
    // A failure rejects `synced`; after that the watch retries.
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

export interface KubePlaceholdersOptions extends PlaceholderPlace, SharedReflectorOptions {}

/** Placeholder pods in the controller's own namespace, found by their labels. */
export class KubePlaceholders implements Placeholders {
  readonly #options: KubePlaceholdersOptions;
  readonly #path: string;

  constructor(options: KubePlaceholdersOptions) {
    this.#options = options;
    this.#path = `/api/v1/namespaces/${options.namespace}/pods`;
  }

  async list(): Promise<readonly PlaceholderFacts[]> {
    const query = { labelSelector: placeholderSelector };
    return (await listAll(this.#options.api, this.#path, query)).map(translatePlaceholder);
  }

  follow(departureUid: string, signal: AbortSignal): FollowedPlaceholders {
    const { api, clock, rng, onError } = this.#options;
    const changes = new ChangeListeners();
    const reflector = new Reflector<PlaceholderFacts>({
      api,
      clock,
      rng,
      path: this.#path,
      query: { labelSelector: `${placeholderSelector},${placeholderOf}=${departureUid}` },
      translate: translatePlaceholder,
      watchRefusals: "Retried",
      onError,
      onChange: () => changes.notify(),
    });
    // A failure rejects `synced`; after that the watch retries.
    reflector.run(signal).catch(() => undefined);
    return {
      synced: () => reflector.synced,
      placeholders: () => [...reflector.items().values()],
      onChange: (listener) => changes.listen(listener),
    };
  }

  async create(order: NewPlaceholder): Promise<void> {
    const body = placeholderObject(order, this.#options);
    await this.#send({ method: "POST", path: this.#path, body }, isNameTaken);
  }

  async remove(name: string): Promise<void> {
    const body = { apiVersion: "v1", kind: "DeleteOptions", gracePeriodSeconds: 0 };
    await this.#send({ method: "DELETE", path: `${this.#path}/${name}`, body }, isGone);
  }

  /**
   * `isDone` is whether an answer shows that somebody has already done it, most likely this
   * controller.
   */
  async #send(request: KubeRequest, isDone: (answer: KubeAnswer) => boolean): Promise<void> {
    const answer = await this.#options.api.send(request);
    if (answer.status >= 300 && !isDone(answer)) throw objectError(request, answer);
  }
}

/** The PriorityClass of `deploy/base/placeholder-priority.yaml`. */
const placeholderPriorityClass = "lastcall-placeholder";

/** The image of the container that holds every pod's namespaces: most nodes already have it. */
export const placeholderImage = "registry.k8s.io/pause:3.10";

const placeholderSelector =
  "app.kubernetes.io/name=lastcall,app.kubernetes.io/component=placeholder";

/** The Departure's uid, because a name may be longer than a label value, and can be reused. */
const placeholderOf = "lastcall.dev/placeholder-of";

const required = "requiredDuringSchedulingIgnoredDuringExecution";

const placeholderPhases = ["Pending", "Running", "Succeeded", "Failed", "Unknown"] as const;

export interface PlaceholderPlace {
  readonly namespace: string;
  /** The image of its container: `registry.k8s.io/pause:3.10`, or a mirror of it. */
  readonly image: string;
}

/**
 * The Pod object of a placeholder. It has no grace period, so a pod that preempts it gets its
 * capacity at once. It has no permissions, and does not keep an autoscaler from removing the
 * machine.
 */
export function placeholderObject(order: NewPlaceholder, place: PlaceholderPlace): KubeObject {
  const { name, departure, forPod, placement, tolerations } = order;
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name,
      namespace: place.namespace,
      labels: {
        "app.kubernetes.io/name": "lastcall",
        "app.kubernetes.io/component": "placeholder",
        [placeholderOf]: departure.uid,
      },
      annotations: {
        "lastcall.dev/departure": departure.name,
        "lastcall.dev/placeholder-for": `${forPod.namespace}/${forPod.name}`,
        "cluster-autoscaler.kubernetes.io/safe-to-evict": "true",
      },
    },
    spec: {
      priorityClassName: placeholderPriorityClass,
      terminationGracePeriodSeconds: 0,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      ...(placement.schedulerName === undefined ? {} : { schedulerName: placement.schedulerName }),
      nodeSelector: placement.nodeSelector,
      affinity: affinityOf(placement),
      tolerations,
      securityContext: {
        runAsNonRoot: true,
        runAsUser: 65535,
        seccompProfile: { type: "RuntimeDefault" },
      },
      containers: [
        {
          name: "room",
          image: place.image,
          resources: resourcesOf(placement.requests),
          securityContext: {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ["ALL"] },
          },
        },
      ],
    },
  };
}

function translatePlaceholder(pod: KubeObject): PlaceholderFacts {
  const status = fieldsOf(pod.status);
  const scheduled = conditionOf(status.conditions, "PodScheduled");
  return {
    name: pod.metadata?.name ?? "",
    departureUid: pod.metadata?.labels?.[placeholderOf] ?? "",
    node: textOf(fieldsOf(pod.spec).nodeName),
    phase: oneOf(placeholderPhases, status.phase) ?? "Unknown",
    ready: conditionOf(status.conditions, "Ready").status === "True",
    leaving: pod.metadata?.deletionTimestamp === undefined ? "Staying" : "Leaving",
    trouble: scheduled.status === "False" ? textOf(scheduled.message) : undefined,
  };
}

function affinityOf(placement: PodPlacement): object {
  const { requiredNodes, podAffinity, podAntiAffinity } = placement;
  return {
    ...(requiredNodes === undefined
      ? {}
      : { nodeAffinity: { [required]: selectorObject(requiredNodes) } }),
    ...(podAffinity.length === 0 ? {} : { podAffinity: { [required]: podAffinity } }),
    ...(podAntiAffinity.length === 0 ? {} : { podAntiAffinity: { [required]: podAntiAffinity } }),
  };
}

/** Omits empty lists of requirements. */
function selectorObject({ nodeSelectorTerms }: NodeSelector): object {
  return {
    nodeSelectorTerms: nodeSelectorTerms.map(({ matchExpressions, matchFields }) => ({
      ...(matchExpressions.length === 0 ? {} : { matchExpressions }),
      ...(matchFields.length === 0 ? {} : { matchFields }),
    })),
  };
}

/**
 * Requests, and equal limits where the API server requires them: for resources that cannot be
 * overcommitted (devices and huge pages). Source: kubernetes `pkg/apis/core/v1/helper`.
 */
function resourcesOf(requests: Amounts): object {
  const written = Object.entries(requests)
    .filter(([, amount]) => amount > 0)
    .map(([resource, amount]) => [resource, formatQuantity(resource, amount)] as const);
  const firm = written.filter(([resource]) => isFirm(resource));
  return {
    requests: Object.fromEntries(written),
    ...(firm.length === 0 ? {} : { limits: Object.fromEntries(firm) }),
  };
}

function isFirm(resource: string): boolean {
  return resource.startsWith("hugepages-") || resource.includes("/");
}
