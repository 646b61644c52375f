import { isReady } from "../api/store/model-object.ts";
import { isActive, type PodObject, type WorkloadObject } from "./cluster-object.ts";
import type { ControllerLoop } from "./controller-loop.ts";
import {
  type OwnerIndex,
  podFromTemplate,
  templateHash,
  WorkloadController,
} from "./owned-objects.ts";

/** Keeps as many active pods as each ReplicaSet wants. */
export class ReplicaSetController extends WorkloadController {
  constructor(loop: ControllerLoop, pods: OwnerIndex) {
    super(loop, pods, { kind: "ReplicaSet", storage: "replicasets.apps", owned: "pods" });
  }

  protected sync(set: WorkloadObject, pods: readonly PodObject[]): void {
    const active = pods.filter(isActive);
    this.#reportStatus(set, active);
    const missing = (set.spec.replicas ?? 1) - active.length;
    if (missing > 0) this.#create(set, missing);
    if (missing < 0) this.#delete(active, -missing);
  }

  #create(set: WorkloadObject, count: number): void {
    const { name, namespace = "" } = set.metadata;
    const body = podFromTemplate(set, { template: set.spec.template, name: `${name}-` });
    for (let made = 0; made < count; made += 1) {
      this.loop.create({ type: this.loop.type("v1", "pods"), namespace, body });
    }
  }

  /** Those that serve nobody first, then the youngest. */
  #delete(active: readonly PodObject[], count: number): void {
    const order = active.toSorted(
      (a, b) =>
        Number(isReady(a)) - Number(isReady(b)) ||
        Number(b.metadata.resourceVersion) - Number(a.metadata.resourceVersion),
    );
    const type = this.loop.type("v1", "pods");
    for (const pod of order.slice(0, count)) this.loop.delete(pod, { type });
  }

  #reportStatus(set: WorkloadObject, active: readonly PodObject[]): void {
    const ready = active.filter(isReady).length;
    const status = {
      replicas: active.length,
      fullyLabeledReplicas: active.length,
      readyReplicas: ready,
      availableReplicas: ready,
      observedGeneration: set.metadata.generation,
    };
    this.writeStatus(set, status);
  }
}

const revisionLabel = "controller-revision-hash";

/**
 * Keeps the pods `name-0` to `name-(n-1)`: in order one after the other, or all at once where the
 * set says Parallel; a new template replaces them from the last to the first.
 */
export class StatefulSetController extends WorkloadController {
  constructor(loop: ControllerLoop, pods: OwnerIndex) {
    super(loop, pods, { kind: "StatefulSet", storage: "statefulsets.apps", owned: "pods" });
  }

  protected sync(set: WorkloadObject, owned: readonly PodObject[]): void {
    const byName = new Map(owned.map((pod) => [pod.metadata.name, pod]));
    this.#reportStatus(set, owned);
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
    this.loop.create({ type: this.loop.type("v1", "pods"), namespace, body });
  }

  #delete(pod: PodObject): void {
    if (pod.metadata.deletionTimestamp !== undefined) return;
    this.loop.delete(pod, { type: this.loop.type("v1", "pods") });
  }

  #reportStatus(set: WorkloadObject, owned: readonly PodObject[]): void {
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
    this.writeStatus(set, status);
  }
}

function ordinalOf(pod: PodObject): number {
  return Number(pod.metadata.name.slice(pod.metadata.name.lastIndexOf("-") + 1));
}

/** Runs pods until enough of them have succeeded; one that is lost is started again. */
export class JobController extends WorkloadController {
  constructor(loop: ControllerLoop, pods: OwnerIndex) {
    super(loop, pods, { kind: "Job", storage: "jobs.batch", owned: "pods" });
  }

  protected sync(job: WorkloadObject, owned: readonly PodObject[]): void {
    const active = owned.filter(isActive).length;
    const succeeded = owned.filter((pod) => pod.status.phase === "Succeeded").length;
    const failed = owned.filter((pod) => pod.status.phase === "Failed").length;
    const { completions = 1, parallelism = 1 } = job.spec;
    const complete = succeeded >= completions;
    const conditions = complete ? [{ type: "Complete", status: "True" }] : undefined;
    const status = { active, succeeded, failed, ...(conditions ? { conditions } : {}) };
    this.writeStatus(job, status);
    const wanted = complete ? 0 : Math.min(parallelism, completions - succeeded);
    for (let made = active; made < wanted; made += 1) this.#create(job);
  }

  #create(job: WorkloadObject): void {
    const { name, namespace = "" } = job.metadata;
    const labels = { "batch.kubernetes.io/job-name": name, "job-name": name };
    const body = podFromTemplate(job, { template: job.spec.template, name: `${name}-`, labels });
    this.loop.create({ type: this.loop.type("v1", "pods"), namespace, body });
  }
}
