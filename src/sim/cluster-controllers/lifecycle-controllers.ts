import type { Clock } from "../../contracts/clock.ts";
import type { Taint } from "../../core/cluster/node.ts";
import type { Toleration } from "../../core/cluster/pod.ts";
import { type Instant, type Millis, millis, minutes, plus, seconds } from "../../core/time/time.ts";
import { isReady, jsonEqual, type ModelObject, timestamp } from "../api/store/object-store.ts";
import {
  conditionOf,
  isActive,
  keyOf,
  type NodeObject,
  type PodObject,
  readyOf,
  splitKey,
  type WorkloadObject,
  withCondition,
} from "./cluster-object.ts";
import {
  type ControllerLoop,
  type ModelController,
  OwnerIndex,
  podFromTemplate,
  WorkloadController,
} from "./controller-loop.ts";
import { choosesNode, toleratesTaints } from "./scheduler.ts";

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

/** Source: kubernetes `plugin/pkg/admission/defaulttolerationseconds`. */
const toleratedFor = minutes(5);

/**
 * Taints Nodes that are cordoned, not ready or unreachable, marks the pods of Nodes that are not
 * ready as not ready, and deletes those that do not tolerate that for longer. Source: kubernetes
 * `pkg/controller/nodelifecycle/node_lifecycle_controller.go`, `pkg/controller/tainteviction`.
 */
export class NodeLifecycleController implements ModelController {
  readonly name = "node-lifecycle";
  readonly watches = {
    nodes: ({ type, object }: { type: string; object: { metadata: { name: string } } }) => {
      if (type === "DELETED") this.#unreadySince.delete(`/${object.metadata.name}`);
      return type === "DELETED" ? [] : [`/${object.metadata.name}`];
    },
  };
  readonly #loop: ControllerLoop;
  /** By key of the Node. */
  readonly #unreadySince = new Map<string, Instant>();

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
    if (readyOf(node) === "True") {
      this.#unreadySince.delete(key);
      return;
    }
    this.#unreadyPods(node);
    this.#evictByTaint(key, node);
  }

  /** Pods of owners and bare pods tolerate five minutes by default; daemons tolerate any time. */
  #evictByTaint(key: string, node: NodeObject): void {
    const nowAt = this.#loop.context.clock.now();
    const sinceAt = this.#unreadySince.get(key);
    if (sinceAt === undefined) {
      this.#unreadySince.set(key, nowAt);
      this.#loop.enqueueAfter(toleratedFor, { controller: this, key });
      return;
    }
    if (nowAt < plus(sinceAt, toleratedFor)) return;
    const type = this.#loop.type("v1", "pods");
    for (const object of this.#loop.collection("pods").onNode(node.metadata.name)) {
      const { spec, metadata } = object as PodObject;
      const tolerations: readonly TimedToleration[] = spec.tolerations ?? [];
      const stays = tolerations.some(toleratesForGood);
      if (!stays && metadata.deletionTimestamp === undefined) this.#loop.delete(object, { type });
    }
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

interface TimedToleration extends Toleration {
  readonly tolerationSeconds?: number;
}

/** Whether a pod with this toleration stays on an unreachable node, as daemons do. */
function toleratesForGood({ operator, effect, key, tolerationSeconds }: TimedToleration): boolean {
  const isMeant = (effect ?? "NoExecute") === "NoExecute" && (key ?? prefix).startsWith(prefix);
  return isMeant && operator === "Exists" && tolerationSeconds === undefined;
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

const daemonSetStorage = "daemonsets.apps";

/**
 * The tolerations of every daemon. Source: kubernetes
 * `pkg/controller/daemon/util/daemonset_util.go`.
 */
const daemonTolerations = [
  ...["not-ready", "unreachable"].map((one) => toleration(one, "NoExecute")),
  ...["disk-pressure", "memory-pressure", "pid-pressure", "unschedulable"].map((one) =>
    toleration(one, "NoSchedule"),
  ),
];

/** Keeps one pod of each DaemonSet on each Node that it selects, including cordoned ones. */
export class DaemonSetController extends WorkloadController {
  readonly #backoff: FailureBackoff;

  constructor(loop: ControllerLoop, pods: OwnerIndex) {
    super(loop, pods, {
      ...{ kind: "DaemonSet", storage: daemonSetStorage, owned: "pods" },
      alsoWatches: { nodes: () => [...loop.collection(daemonSetStorage).all()].map(keyOf) },
    });
    this.#backoff = new FailureBackoff(loop.context.clock);
  }

  protected sync(set: WorkloadObject, owned: readonly PodObject[]): void {
    const byNode = new Map(owned.map((pod) => [pod.spec.nodeName, pod]));
    const nodes = [...this.loop.collection("nodes").all()] as NodeObject[];
    const chosen = nodes.filter((node) => belongsOn(set, node));
    for (const node of chosen) this.#ensure(set, { node, pod: byNode.get(node.metadata.name) });
    this.#reportStatus(set, { owned, wanted: chosen.length });
  }

  #ensure(set: WorkloadObject, at: { node: NodeObject; pod: PodObject | undefined }): void {
    const { node, pod } = at;
    const type = this.loop.type("v1", "pods");
    if (pod?.status.phase === "Failed") {
      this.#replaceFailed(set, pod);
      return;
    }
    if (pod || node.metadata.deletionTimestamp !== undefined) return;
    const { name, namespace = "" } = set.metadata;
    const { template } = set.spec;
    const tolerations = [...(template.spec.tolerations ?? []), ...daemonTolerations];
    const spec = { nodeName: node.metadata.name, tolerations };
    const body = podFromTemplate(set, { template, name: `${name}-`, spec });
    this.loop.create({ type, namespace, body });
  }

  /** If daemons fail repeatedly, as on a machine that shuts down, each waits longer. */
  #replaceFailed(set: WorkloadObject, pod: PodObject): void {
    const leftMs = this.#backoff.tryNow(`${set.metadata.uid}/${pod.spec.nodeName}`);
    if (leftMs === undefined) this.loop.delete(pod, { type: this.loop.type("v1", "pods") });
    else this.loop.enqueueAfter(leftMs, { controller: this, key: keyOf(set) });
  }

  #reportStatus(
    set: WorkloadObject,
    counted: { owned: readonly PodObject[]; wanted: number },
  ): void {
    const active = counted.owned.filter(isActive);
    const ready = active.filter(isReady).length;
    const status = {
      observedGeneration: set.metadata.generation,
      desiredNumberScheduled: counted.wanted,
      currentNumberScheduled: active.length,
      updatedNumberScheduled: active.length,
      numberMisscheduled: 0,
      numberReady: ready,
      numberAvailable: ready,
    };
    this.writeStatus(set, status);
  }
}

function belongsOn(set: WorkloadObject, node: NodeObject): boolean {
  const { spec } = set.spec.template;
  const tolerations = [...(spec.tolerations ?? []), ...daemonTolerations];
  return choosesNode(spec, node) && toleratesTaints(tolerations, node.spec.taints);
}

function toleration(
  what: string,
  effect: "NoExecute" | "NoSchedule",
): { key: string; operator: "Exists"; effect: "NoExecute" | "NoSchedule" } {
  return { key: `node.kubernetes.io/${what}`, operator: "Exists", effect };
}

const firstWait = seconds(1);

const longestWait = minutes(15);

interface Entry {
  readonly triedMs: number;
  readonly wait: Millis;
}

/**
 * How long to wait after repeated failures: a second at first, doubled after each failure, at most
 * a quarter of an hour; reset after twice that. Source: client-go `util/flowcontrol/backoff.go`, as
 * the DaemonSet controller uses it.
 */
class FailureBackoff {
  readonly #clock: Clock;
  readonly #entries = new Map<string, Entry>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The remaining wait; undefined if a retry is allowed, which then counts as made. */
  tryNow(key: string): Millis | undefined {
    const nowMs = this.#clock.monotonic();
    const entry = this.#entries.get(key);
    if (entry === undefined || nowMs - entry.triedMs > 2 * longestWait) {
      this.#entries.set(key, { triedMs: nowMs, wait: firstWait });
      return undefined;
    }
    const leftMs = entry.triedMs + entry.wait - nowMs;
    if (leftMs > 0) return millis(leftMs);
    this.#entries.set(key, { triedMs: nowMs, wait: millis(Math.min(longestWait, entry.wait * 2)) });
    return undefined;
  }
}
