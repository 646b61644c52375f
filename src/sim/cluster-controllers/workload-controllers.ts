import { isReady, jsonEqual, timestamp } from "../api/store/object-store.ts";
import {
  isActive,
  keyOf,
  ownerReferenceTo,
  type PodObject,
  scaledValue,
  type WorkloadObject,
} from "./cluster-object.ts";
import {
  type ControllerLoop,
  type OwnerIndex,
  podFromTemplate,
  templateHash,
  WorkloadController,
} from "./controller-loop.ts";

/** Keeps the number of active pods that each ReplicaSet requests. */
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

  /** Pods that are not in service first, then the youngest. */
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
 * Keeps the pods `name-0` to `name-(n-1)`: in order one after the other, or all at once if the set
 * says Parallel; a new template replaces them from the last to the first.
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

  /** A failed pod keeps its name until it is deleted. */
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

  /** Creates missing pods; returns whether all exist and are ready. */
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

/** Runs pods until enough of them have succeeded; a lost one is restarted. */
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

const storage = "deployments.apps";
const setStorage = "replicasets.apps";
const hashLabel = "pod-template-hash";

interface Rollout {
  readonly deployment: WorkloadObject;
  readonly current: WorkloadObject;
  readonly old: readonly WorkloadObject[];
}

/**
 * Keeps a ReplicaSet of the latest template at full size, and shrinks the old ones no faster than
 * maxUnavailable and maxSurge allow. Source: kubernetes `pkg/controller/deployment/rolling.go`.
 */
export class DeploymentController extends WorkloadController {
  constructor(loop: ControllerLoop, sets: OwnerIndex) {
    super(loop, sets, { kind: "Deployment", storage, owned: setStorage });
  }

  protected sync(deployment: WorkloadObject, sets: readonly WorkloadObject[]): void {
    const hash = templateHash(deployment.spec.template);
    const current = sets.find((set) => set.metadata.labels?.[hashLabel] === hash);
    if (!current) {
      this.#createSet(deployment, { hash, first: sets.length === 0 });
      return;
    }
    const rollout = { deployment, current, old: sets.filter((set) => set !== current) };
    this.#growCurrent(rollout);
    this.#shrinkOld(rollout);
    this.#writeStatus(rollout);
  }

  #createSet(deployment: WorkloadObject, made: { hash: string; first: boolean }): void {
    const { name, namespace = "" } = deployment.metadata;
    const { template, selector, replicas } = deployment.spec;
    const labels = { ...template.metadata?.labels, [hashLabel]: made.hash };
    const matchLabels = { ...selector?.matchLabels, [hashLabel]: made.hash };
    const body = {
      metadata: {
        name: `${name}-${made.hash}`,
        labels,
        ownerReferences: [ownerReferenceTo(deployment)],
      },
      spec: {
        replicas: made.first ? (replicas ?? 1) : 0,
        selector: { ...selector, matchLabels },
        template: { ...template, metadata: { ...template.metadata, labels } },
      },
    };
    const type = this.loop.type("apps/v1", "replicasets");
    this.loop.create({ type, namespace, body });
  }

  #growCurrent({ deployment, current, old }: Rollout): void {
    const { wanted, surge } = limitsOf(deployment);
    const others = sum(old, replicasOf);
    const target = Math.min(wanted, Math.max(0, wanted + surge - others));
    const grows = target > replicasOf(current) || wanted < replicasOf(current);
    if (grows) this.#scale(current, target);
  }

  /** Counts desired replicas and not existing pods, or one step would be repeated. */
  #shrinkOld({ deployment, current, old }: Rollout): void {
    const { wanted, unavailable } = limitsOf(deployment);
    const available = Number(current.status.availableReplicas ?? 0);
    const unavailableNew = Math.max(0, replicasOf(current) - available);
    let spare = sum([current, ...old], replicasOf) - (wanted - unavailable) - unavailableNew;
    for (const set of old) {
      const fewer = Math.min(replicasOf(set), Math.max(0, spare));
      if (fewer === 0) continue;
      spare -= fewer;
      this.#scale(set, replicasOf(set) - fewer);
    }
  }

  #scale(set: WorkloadObject, replicas: number): void {
    const newest = this.loop.get<WorkloadObject>(setStorage, keyOf(set));
    if (!newest || newest.spec.replicas === replicas) return;
    const generation = (newest.metadata.generation ?? 0) + 1;
    const metadata = { ...newest.metadata, generation };
    this.loop.put(setStorage, { ...newest, metadata, spec: { ...newest.spec, replicas } });
  }

  #writeStatus({ deployment, current, old }: Rollout): void {
    const count = (field: string): number =>
      sum([current, ...old], (set) => Number(set.status[field] ?? 0));
    const available = count("availableReplicas");
    const { wanted, unavailable } = limitsOf(deployment);
    const status = {
      observedGeneration: deployment.metadata.generation,
      replicas: count("replicas"),
      updatedReplicas: Number(current.status.replicas ?? 0),
      readyReplicas: count("readyReplicas"),
      availableReplicas: available,
      unavailableReplicas: Math.max(0, wanted - available),
      conditions: this.#conditions(deployment, available >= wanted - unavailable),
    };
    const newest = this.loop.get<WorkloadObject>(storage, keyOf(deployment));
    if (newest && !jsonEqual(status, newest.status)) this.loop.put(storage, { ...newest, status });
  }

  #conditions(deployment: WorkloadObject, available: boolean): readonly object[] {
    const before = deployment.status.conditions as { status: string }[] | undefined;
    const status = available ? "True" : "False";
    if (before?.[0]?.status === status) return before;
    const at = timestamp(this.loop.context.clock.now());
    const reason = available ? "MinimumReplicasAvailable" : "MinimumReplicasUnavailable";
    return [{ type: "Available", status, reason, lastTransitionTime: at, lastUpdateTime: at }];
  }
}

function replicasOf(set: WorkloadObject): number {
  return set.spec.replicas ?? 1;
}

function limitsOf(deployment: WorkloadObject): {
  wanted: number;
  surge: number;
  unavailable: number;
} {
  const wanted = deployment.spec.replicas ?? 1;
  if (deployment.spec.strategy?.type === "Recreate") {
    return { wanted, surge: 0, unavailable: wanted };
  }
  const { maxSurge = "25%", maxUnavailable = "25%" } =
    deployment.spec.strategy?.rollingUpdate ?? {};
  const surge = scaledValue(maxSurge, { total: wanted, rounding: "Up" });
  const unavailable = scaledValue(maxUnavailable, { total: wanted, rounding: "Down" });
  // If both were rounded to zero, a rollout would never proceed.
  return { wanted, surge, unavailable: surge === 0 && unavailable === 0 ? 1 : unavailable };
}

function sum(sets: readonly WorkloadObject[], count: (set: WorkloadObject) => number): number {
  return sets.reduce((total, set) => total + count(set), 0);
}
