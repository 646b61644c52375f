import { isReady } from "../api/evict-pod.ts";
import { jsonEqual } from "../api/json-equal.ts";
import type { ModelObject } from "../api/model-object.ts";
import { keyOf, type PodObject, type WorkloadObject } from "./cluster-object.ts";
import type { ControllerLoop, ModelController } from "./controller-loop.ts";
import type { OwnerIndex } from "./owner-index.ts";
import { podFromTemplate, templateHash } from "./pod-from-template.ts";
import { ownerKeys } from "./replica-set-controller.ts";

const storage = "statefulsets.apps";
const revisionLabel = "controller-revision-hash";

/**
 * Keeps the pods `name-0` to `name-(n-1)`: in order one after the other, or all at once where the
 * set says Parallel; a new template replaces them from the last to the first.
 */
export class StatefulSetController implements ModelController {
  readonly name = "statefulset";
  readonly concerns = {
    [storage]: ({ object }: { object: ModelObject }) => [keyOf(object)],
    pods: ({ object }: { object: ModelObject }) => ownerKeys(object, "StatefulSet"),
  };
  readonly #loop: ControllerLoop;
  readonly #pods: OwnerIndex;

  constructor(loop: ControllerLoop, pods: OwnerIndex) {
    this.#loop = loop;
    this.#pods = pods;
  }

  reconcile(key: string): void {
    const set = this.#loop.get<WorkloadObject>(storage, key);
    if (!set || set.metadata.deletionTimestamp !== undefined) return;
    const owned = this.#pods.ownedBy(set.metadata.uid) as readonly PodObject[];
    const byName = new Map(owned.map((pod) => [pod.metadata.name, pod]));
    this.#writeStatus(set, owned);
    this.#dropFinished(owned);
    this.#dropSurplus(set, owned);
    if (this.#fill(set, byName)) this.#roll(set, byName);
  }

  /** A pod that has failed keeps its name until somebody takes it away. */
  #dropFinished(owned: readonly PodObject[]): void {
    for (const pod of owned) {
      const { phase } = pod.status;
      if (phase === "Failed" || phase === "Succeeded") this.#delete(pod);
    }
  }

  #dropSurplus(set: WorkloadObject, owned: readonly PodObject[]): void {
    for (const pod of owned) {
      const going = pod.metadata.deletionTimestamp !== undefined;
      if (!going && ordinalOf(pod) >= (set.spec.replicas ?? 1)) this.#delete(pod);
    }
  }

  /** Creates what is missing; whether all pods are there and ready. */
  #fill(set: WorkloadObject, byName: ReadonlyMap<string, PodObject>): boolean {
    const parallel = set.spec.podManagementPolicy === "Parallel";
    let complete = true;
    for (let ordinal = 0; ordinal < (set.spec.replicas ?? 1); ordinal += 1) {
      const name = `${set.metadata.name}-${ordinal}`;
      const pod = byName.get(name);
      if (!pod) this.#create(set, name);
      if (pod && isReady(pod) && pod.metadata.deletionTimestamp === undefined) continue;
      complete = false;
      if (!parallel) return false;
    }
    return complete;
  }

  #roll(set: WorkloadObject, byName: ReadonlyMap<string, PodObject>): void {
    const revision = templateHash(set.spec.template);
    for (let ordinal = (set.spec.replicas ?? 1) - 1; ordinal >= 0; ordinal -= 1) {
      const pod = byName.get(`${set.metadata.name}-${ordinal}`);
      if (!pod || pod.metadata.labels?.[revisionLabel] === revision) continue;
      this.#delete(pod);
      return;
    }
  }

  #create(set: WorkloadObject, name: string): void {
    const labels = {
      [revisionLabel]: templateHash(set.spec.template),
      "statefulset.kubernetes.io/pod-name": name,
    };
    const body = podFromTemplate(set, { template: set.spec.template, name, labels });
    const { namespace = "" } = set.metadata;
    this.#loop.create({ type: this.#loop.type("v1", "pods"), namespace, body });
  }

  #delete(pod: PodObject): void {
    if (pod.metadata.deletionTimestamp !== undefined) return;
    this.#loop.delete(pod, { type: this.#loop.type("v1", "pods") });
  }

  #writeStatus(set: WorkloadObject, owned: readonly PodObject[]): void {
    const ready = owned.filter(isReady).length;
    const status = {
      observedGeneration: set.metadata.generation,
      replicas: owned.length,
      readyReplicas: ready,
      availableReplicas: ready,
      currentReplicas: owned.length,
      updatedReplicas: owned.length,
      currentRevision: templateHash(set.spec.template),
    };
    if (!jsonEqual(status, set.status)) this.#loop.put(storage, { ...set, status });
  }
}

function ordinalOf(pod: PodObject): number {
  return Number(pod.metadata.name.slice(pod.metadata.name.lastIndexOf("-") + 1));
}
