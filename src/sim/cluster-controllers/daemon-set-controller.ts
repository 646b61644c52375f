import type { Clock } from "../../contracts/clock.ts";
import { type Millis, millis, minutes, seconds } from "../../core/time/time.ts";
import { isReady } from "../api/store/model-object.ts";
import {
  isActive,
  keyOf,
  type NodeObject,
  type PodObject,
  type WorkloadObject,
} from "./cluster-object.ts";
import {
  type ControllerLoop,
  type OwnerIndex,
  podFromTemplate,
  WorkloadController,
} from "./controller-loop.ts";
import { choosesNode, toleratesTaints } from "./scheduler.ts";

const storage = "daemonsets.apps";

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
      ...{ kind: "DaemonSet", storage, owned: "pods" },
      alsoWatches: { nodes: () => [...loop.collection(storage).all()].map(keyOf) },
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
