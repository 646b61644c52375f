import { timestamp } from "../api/api-context.ts";
import { jsonEqual } from "../api/store/json-value.ts";
import { keyOf, ownerReferenceTo, scaledValue, type WorkloadObject } from "./cluster-object.ts";
import type { ControllerLoop } from "./controller-loop.ts";
import { type OwnerIndex, templateHash, WorkloadController } from "./owned-objects.ts";

const storage = "deployments.apps";
const setStorage = "replicasets.apps";
const hashLabel = "pod-template-hash";

interface Rollout {
  readonly deployment: WorkloadObject;
  readonly current: WorkloadObject;
  readonly old: readonly WorkloadObject[];
}

/**
 * Keeps a ReplicaSet of the newest template at full size, and shrinks the old ones no faster than
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

  /** What is wanted is counted, not what is there yet, or one step would be taken many times. */
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
  // With both rounded to zero a rollout would never proceed.
  return { wanted, surge, unavailable: surge === 0 && unavailable === 0 ? 1 : unavailable };
}

function sum(sets: readonly WorkloadObject[], count: (set: WorkloadObject) => number): number {
  return sets.reduce((total, set) => total + count(set), 0);
}
