import { departureAnnotation } from "../../core/notice/interruption.ts";
import { type Instant, minutes } from "../../core/time/time.ts";
import {
  isReady,
  type ModelObject,
  type ModelStore,
  type StoredChange,
} from "../api/store/object-store.ts";
import { budgetSelects, budgetStorage } from "../api/write/pod-budget.ts";
import {
  conditionOf,
  isPlaceholder,
  type NodeObject,
  type WorkloadObject,
} from "../cluster-controllers/cluster-object.ts";
import {
  type Checker,
  type DepartureObject,
  departureOfNode,
  departureStorage,
  type Invariant,
  isChosen,
  phaseOf,
  type TraceEvent,
} from "./invariant.ts";

/**
 * Invariant 4: an eviction never leaves a PodDisruptionBudget with fewer healthy pods than it
 * requires. Computed here from the pods' readiness, not from the budget's status.
 */
export const budgetIsKept: Invariant = {
  name: "budget-is-kept",
  check: (store) => (event) => {
    if (event.kind !== "Change" || event.storage !== "pods") return undefined;
    const pod = evictedNow(event.change);
    if (pod === undefined) return undefined;
    for (const budget of store.collection(budgetStorage).inNamespace(namespaceOf(pod))) {
      if (!budgetSelects(budget, pod)) continue;
      const { healthy, wanted } = countsOf(budget, store);
      if (healthy < wanted) {
        return `the eviction of ${nameOf(pod)} left budget ${nameOf(budget)} with ${healthy} healthy pods of ${wanted}`;
      }
    }
    return undefined;
  },
};

/**
 * Invariant 4: in a planned or requested departure, pods leave by eviction and never by deletion.
 */
export const evictionOnly: Invariant = {
  name: "eviction-only",
  check: (store) => (event) => {
    if (event.kind !== "Request" || event.request.method !== "DELETE") return undefined;
    const path = /^\/api\/v1\/namespaces\/([^/]+)\/pods\/([^/]+)$/.exec(event.request.path);
    if (path === null) return undefined;
    const [, namespace = "", name = ""] = path;
    const pod = store.collection("pods").get(namespace, name);
    if (pod === undefined || isPlaceholder(pod)) return undefined;
    const departure = departureOfNode(store, nodeNameOf(pod));
    if (departure === undefined || !isChosen(departure)) return undefined;
    return `pod ${namespace}/${name} was deleted regardless of its budget by ${departure.metadata.name}`;
  },
};

/** The healthy pod that this change evicts. */
function evictedNow({ object, previous }: StoredChange): ModelObject | undefined {
  const going = object.metadata.deletionTimestamp !== undefined;
  const wentBefore = previous?.metadata.deletionTimestamp !== undefined;
  if (!going || wentBefore || previous === undefined || !isReady(previous)) return undefined;
  const reason = conditionOf(object, "DisruptionTarget")?.reason;
  return reason === "EvictionByEvictionAPI" ? object : undefined;
}

function countsOf(
  budget: ModelObject,
  store: ModelStore,
): { readonly healthy: number; readonly wanted: number } {
  const pods = [...store.collection("pods").inNamespace(namespaceOf(budget))];
  const selected = pods.filter((pod) => budgetSelects(budget, pod));
  const healthy = selected.filter(
    (pod) => pod.metadata.deletionTimestamp === undefined && isReady(pod),
  ).length;
  const spec = budget.spec as { minAvailable?: number | string; maxUnavailable?: number | string };
  const replicas = replicasBehind(budget, store);
  if (spec.maxUnavailable !== undefined) {
    return { healthy, wanted: replicas - shareOf(spec.maxUnavailable, replicas) };
  }
  return { healthy, wanted: shareOf(spec.minAvailable ?? 0, replicas) };
}

/** The number of replicas that the owners of the budget's pods request. */
function replicasBehind(budget: ModelObject, store: ModelStore): number {
  const workloads = ["deployments.apps", "statefulsets.apps"].flatMap((storage) => [
    ...store.collection(storage).inNamespace(namespaceOf(budget)),
  ]) as WorkloadObject[];
  return workloads
    .filter(({ metadata, spec }) =>
      budgetSelects(budget, {
        ...budget,
        metadata: { ...metadata, labels: spec.template.metadata?.labels ?? {} },
      }),
    )
    .reduce((sum, { spec }) => sum + (spec.replicas ?? 1), 0);
}

/** A number as it is, a percentage rounded up, as in Kubernetes for both fields. */
function shareOf(amount: number | string, replicas: number): number {
  if (typeof amount === "number") return amount;
  return Math.ceil((Number.parseInt(amount, 10) * replicas) / 100);
}

function nodeNameOf(pod: ModelObject): string {
  return (pod.spec as { readonly nodeName?: string } | undefined)?.nodeName ?? "";
}

function namespaceOf(object: ModelObject): string {
  return object.metadata.namespace ?? "";
}

function nameOf(object: ModelObject): string {
  return `${namespaceOf(object)}/${object.metadata.name}`;
}

/** The next pass finds and removes an orphaned mark, which takes at most this long. */
const clearedWithin = minutes(2);

/** Invariant 7: no node stays marked without a live Departure that explains it. */
export const cordonHasDeparture: Invariant = {
  name: "cordon-has-departure",
  check: (store) => {
    const orphanSince = new Map<string, Instant>();
    return (event) => {
      follow(event, { store, orphanSince });
      for (const [name, since] of orphanSince) {
        if (event.at - since <= clearedWithin) continue;
        orphanSince.delete(name);
        return `node ${name} has carried the mark of a departure that is not under way for 2 minutes`;
      }
      return undefined;
    };
  },
};

/** Tracks the marked nodes without a live Departure; a write to either may change that. */
function follow(
  event: TraceEvent,
  known: { readonly store: ModelStore; readonly orphanSince: Map<string, Instant> },
): void {
  const { store, orphanSince } = known;
  const node = nodeOf(event, store);
  if (node === undefined) return;
  const { name } = node.metadata;
  if (!isOrphaned(node, store)) orphanSince.delete(name);
  else if (!orphanSince.has(name)) orphanSince.set(name, event.at);
}

function nodeOf(event: TraceEvent, store: ModelStore): ModelObject | undefined {
  if (event.kind !== "Change") return undefined;
  const { object } = event.change;
  if (event.storage === "nodes") return object;
  if (event.storage !== departureStorage) return undefined;
  return store.collection("nodes").get("", (object as DepartureObject).spec.node.name);
}

function isOrphaned(node: ModelObject, store: ModelStore): boolean {
  const { name, uid } = node.metadata;
  const mark = node.metadata.annotations?.[departureAnnotation];
  if (mark === undefined || store.collection("nodes").get("", name)?.metadata.uid !== uid) {
    return false;
  }
  const departure = store.collection(departureStorage).get("", mark) as DepartureObject | undefined;
  return departure?.spec.node.uid !== uid || phaseOf(departure) === "Ended";
}

/** A pod leaves a departing node only after the same Departure has cordoned the node. */
export const cordonBeforeEviction: Invariant = {
  name: "cordon-before-eviction",
  check:
    (store): Checker =>
    (event) => {
      const request = event.kind === "Request" ? event.request : undefined;
      const path = /^\/api\/v1\/namespaces\/([^/]+)\/pods\/([^/]+)(\/eviction)?$/.exec(
        request?.path ?? "",
      );
      if (path === null || request?.method === "PATCH") return undefined;
      const [, namespace = "", name = ""] = path;
      const pod = store.collection("pods").get(namespace, name);
      const nodeName = (pod?.spec as { nodeName?: string } | undefined)?.nodeName ?? "";
      const node = store.collection("nodes").get("", nodeName) as NodeObject | undefined;
      if (pod === undefined || node === undefined || isPlaceholder(pod)) return undefined;
      const mark = node.metadata.annotations?.[departureAnnotation];
      if (node.spec.unschedulable === true && mark !== undefined) return undefined;
      return `pod ${namespace}/${name} was evicted from node ${nodeName}, which was not cordoned`;
    },
};
