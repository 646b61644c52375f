import type { Taint } from "../../core/cluster/node.ts";
import { seconds } from "../../core/time/time.ts";
import { timestamp } from "../api/api-context.ts";
import { jsonEqual } from "../api/store/json-value.ts";
import {
  conditionOf,
  type NodeObject,
  type PodObject,
  readyOf,
  withCondition,
} from "./cluster-object.ts";
import type { ControllerLoop, ModelController } from "./controller-loop.ts";

const prefix = "node.kubernetes.io";

/**
 * Writes the taints of a Node that is cordoned, not ready or unreachable, and makes the pods of a
 * Node not ready that is not ready itself.
 * Source: kubernetes `pkg/controller/nodelifecycle/node_lifecycle_controller.go`.
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
