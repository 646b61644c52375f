import type { Taint } from "../../core/cluster/node.ts";
import { seconds } from "../../core/time/time.ts";
import { timestamp } from "../api/api-context.ts";
import { jsonEqual, type ModelObject } from "../api/store/model-object.ts";
import {
  conditionOf,
  keyOf,
  type NodeObject,
  type PodObject,
  readyOf,
  splitKey,
  withCondition,
} from "./cluster-object.ts";
import { type ControllerLoop, type ModelController, OwnerIndex } from "./controller-loop.ts";

const owners = [
  "deployments.apps",
  "replicasets.apps",
  "statefulsets.apps",
  "daemonsets.apps",
  "jobs.batch",
];

/** Storages whose objects can be owners. */
const dependents = [
  { storage: "pods", apiVersion: "v1", plural: "pods" },
  { storage: "replicasets.apps", apiVersion: "apps/v1", plural: "replicasets" },
] as const;

/** Deletes the dependents of a deleted owner, in the background. */
export class GarbageCollector implements ModelController {
  readonly name = "garbage-collector";
  readonly watches = Object.fromEntries(
    owners.map((storage) => [
      storage,
      ({ type, object }: { type: string; object: ModelObject }) =>
        type === "DELETED" ? [object.metadata.uid] : [],
    ]),
  );
  readonly #loop: ControllerLoop;
  readonly #indexes: readonly OwnerIndex[];

  constructor(loop: ControllerLoop) {
    this.#loop = loop;
    this.#indexes = dependents.map(({ storage }) => new OwnerIndex(loop.context.store, storage));
  }

  reconcile(uid: string): void {
    for (const [at, { apiVersion, plural }] of dependents.entries()) {
      const type = this.#loop.type(apiVersion, plural);
      for (const object of this.#indexes[at]?.ownedBy(uid) ?? []) {
        this.#loop.delete(object, { type });
      }
    }
  }
}

/** Pods of a terminating namespace use their grace periods, so it is checked again. */
const recheckAfter = seconds(1);

/** Deletes the objects of a terminating namespace, and then the namespace. */
export class NamespaceController implements ModelController {
  readonly name = "namespace";
  readonly watches = {
    namespaces: ({ object }: { object: ModelObject }) =>
      object.metadata.deletionTimestamp === undefined ? [] : [keyOf(object)],
  };
  readonly #loop: ControllerLoop;

  constructor(loop: ControllerLoop) {
    this.#loop = loop;
  }

  reconcile(key: string): void {
    const namespace = this.#loop.get("namespaces", key);
    if (namespace?.metadata.deletionTimestamp === undefined) return;
    const { name } = splitKey(key);
    let left = 0;
    for (const type of this.#loop.context.registry.all().filter((one) => one.namespaced)) {
      const objects = [...this.#loop.collection(type.storage).inNamespace(name)];
      for (const object of objects) this.#loop.delete(object, { type });
      left += this.#loop.collection(type.storage).list(name).length;
    }
    if (left === 0) this.#loop.collection("namespaces").remove(namespace);
    else this.#loop.enqueueAfter(recheckAfter, { controller: this, key });
  }
}

const prefix = "node.kubernetes.io";

/**
 * Taints Nodes that are cordoned, not ready or unreachable, and marks the pods of Nodes that are
 * not ready as not ready. Source: kubernetes
 * `pkg/controller/nodelifecycle/node_lifecycle_controller.go`.
 */
export class NodeLifecycleController implements ModelController {
  readonly name = "node-lifecycle";
  readonly watches = {
    nodes: ({ type, object }: { type: string; object: { metadata: { name: string } } }) =>
      type === "DELETED" ? [] : [`/${object.metadata.name}`],
  };
  readonly #loop: ControllerLoop;

  constructor(loop: ControllerLoop) {
    this.#loop = loop;
  }

  reconcile(key: string): void {
    const node = this.#loop.get<NodeObject>("nodes", key);
    if (!node) return;
    const taints = [...foreignTaints(node), ...dueTaints(node)];
    if (!jsonEqual(taints, node.spec.taints ?? [])) {
      this.#loop.put("nodes", { ...node, spec: withTaints(node, taints) });
    }
    if (readyOf(node) !== "True") this.#unreadyPods(node);
  }

  #unreadyPods(node: NodeObject): void {
    for (const object of this.#loop.collection("pods").onNode(node.metadata.name)) {
      const pod = object as PodObject;
      if (conditionOf(pod, "Ready")?.status !== "True") continue;
      const lastTransitionTime = timestamp(this.#loop.context.clock.now());
      const unready = { type: "Ready", status: "False", lastTransitionTime };
      const conditions = withCondition(pod.status.conditions, unready);
      this.#loop.put("pods", { ...pod, status: { ...pod.status, conditions } });
    }
  }
}

function foreignTaints(node: NodeObject): readonly Taint[] {
  const own = ["unschedulable", "not-ready", "unreachable"].map((one) => `${prefix}/${one}`);
  return (node.spec.taints ?? []).filter((taint) => !own.includes(taint.key));
}

function dueTaints(node: NodeObject): readonly Taint[] {
  const due: Taint[] = [];
  if (node.spec.unschedulable) due.push({ key: `${prefix}/unschedulable`, effect: "NoSchedule" });
  const ready = readyOf(node);
  if (ready === "True") return due;
  const key = `${prefix}/${ready === "False" ? "not-ready" : "unreachable"}`;
  return [...due, { key, effect: "NoSchedule" }, { key, effect: "NoExecute" }];
}

function withTaints(node: NodeObject, taints: readonly Taint[]): NodeObject["spec"] {
  const { taints: _before, ...rest } = node.spec;
  return taints.length === 0 ? rest : { ...rest, taints };
}

/** Source: kubernetes `pkg/controller/podgc/gc_controller.go`, quarantineTime. */
const quarantine = seconds(40);

/** Deletes pods whose Node object has been gone for a while. */
export class PodGarbageCollector implements ModelController {
  readonly name = "pod-collector";
  readonly watches = {
    nodes: ({ type, object }: { type: string; object: { metadata: { name: string } } }) => {
      if (type === "DELETED") this.#enqueueLater(object.metadata.name);
      return [];
    },
  };
  readonly #loop: ControllerLoop;

  constructor(loop: ControllerLoop) {
    this.#loop = loop;
  }

  reconcile(nodeName: string): void {
    if (this.#loop.get("nodes", `/${nodeName}`)) return;
    for (const object of this.#loop.collection("pods").onNode(nodeName)) {
      this.#collect(object as PodObject);
    }
  }

  #enqueueLater(nodeName: string): void {
    this.#loop.enqueueAfter(quarantine, { controller: this, key: nodeName });
  }

  #collect(pod: PodObject): void {
    const type = this.#loop.type("v1", "pods");
    const finished = pod.status.phase === "Failed" || pod.status.phase === "Succeeded";
    const marked = finished ? pod : this.#markFailed(pod);
    this.#loop.delete(marked, { type, gracePeriodSeconds: 0 });
  }

  #markFailed(pod: PodObject): PodObject {
    const condition = {
      type: "DisruptionTarget",
      status: "True",
      reason: "DeletionByPodGC",
      message: "PodGC: node no longer exists",
      lastTransitionTime: timestamp(this.#loop.context.clock.now()),
    };
    const conditions = withCondition(pod.status.conditions, condition);
    const status = { ...pod.status, phase: "Failed", conditions };
    return this.#loop.put("pods", { ...pod, status }) as PodObject;
  }
}
