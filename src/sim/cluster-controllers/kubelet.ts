import { type Instant, later, millis, parseInstant, plus, seconds } from "../../core/time/time.ts";
import { isReady, type ModelObject, timestamp } from "../api/store/object-store.ts";
import {
  type Condition,
  conditionOf,
  keyOf,
  type NodeObject,
  type PodObject,
  withCondition,
} from "./cluster-object.ts";
import type { ControllerLoop, ModelController } from "./controller-loop.ts";

/** How a model pod's programs behave; written as annotations of the pod. */
export const podBehaviour = {
  /** Seconds from binding until it runs and is ready; default 5. */
  startSeconds: "model.lastcall.dev/start-seconds",
  /** Seconds from SIGTERM until it exits, or `never`; default 1. */
  exitSeconds: "model.lastcall.dev/exit-seconds",
  /** Seconds from its start until it succeeds; for jobs. */
  runSeconds: "model.lastcall.dev/run-seconds",
} as const;

/** The grace periods of a kubelet at shutdown: regular pods first, then critical ones. */
export interface ShutdownGrace {
  readonly regularSeconds: number;
  readonly criticalSeconds: number;
}

/** GKE since 1.22.8: 15 s and 15 s (platform facts, table of section 0). */
export const gkeShutdownGrace: ShutdownGrace = { regularSeconds: 15, criticalSeconds: 15 };

/** Pods of at least this priority are critical. Source: kubelet nodeshutdown_manager.go. */
const criticalPriority = 2_000_000_000;

interface Running {
  readonly uid: string;
  /** Set once SIGTERM was sent. */
  readonly killAt?: Instant;
}

/**
 * The kubelets of all nodes: they start pods, stop them within their grace periods, and at a
 * shutdown of their machine stop all of them within the machine's. The machine of a Node that was
 * never booted or powered off counts as running.
 */
export class Kubelet implements ModelController {
  readonly name = "kubelet";
  readonly watches = {
    pods: ({ type, object }: { type: string; object: ModelObject }) => {
      if (type === "DELETED") this.#pods.delete(keyOf(object));
      return type === "DELETED" || !(object as PodObject).spec.nodeName ? [] : [keyOf(object)];
    },
  };
  readonly #loop: ControllerLoop;
  readonly #pods = new Map<string, Running>();
  readonly #shuttingDown = new Map<string, ShutdownGrace>();
  readonly #off = new Set<string>();

  constructor(loop: ControllerLoop) {
    this.#loop = loop;
  }

  /** A machine came up under this node's name. */
  boot(nodeName: string): void {
    this.#off.delete(nodeName);
    this.#shuttingDown.delete(nodeName);
    this.#writeReadyAgain(nodeName);
    for (const pod of this.#loop.collection("pods").onNode(nodeName)) {
      this.#loop.enqueue(this, keyOf(pod));
    }
  }

  /**
   * The machine shuts down: the Node becomes not ready, and pods are stopped group by group.
   * Source: kubelet nodeshutdown_manager.go (platform facts 1.4).
   */
  shutDown(nodeName: string, grace: ShutdownGrace): void {
    if (this.#shuttingDown.has(nodeName) || this.#off.has(nodeName)) return;
    this.#shuttingDown.set(nodeName, grace);
    this.#writeReady(nodeName, {
      status: "False",
      reason: "KubeletNotReady",
      message: shuttingDown,
    });
    this.#stopGroup(nodeName, (pod) => (pod.spec.priority ?? 0) < criticalPriority);
    this.#loop.after(seconds(grace.regularSeconds), () => {
      if (this.#shuttingDown.get(nodeName) !== grace) return;
      this.#stopGroup(nodeName, (pod) => (pod.spec.priority ?? 0) >= criticalPriority);
    });
  }

  /**
   * The machine lost power or its network: its pods stay in the API as last reported, and without
   * heartbeats the control plane counts the Node as unknown. `boot` ends it.
   */
  powerOff(nodeName: string): void {
    this.#off.add(nodeName);
    this.#shuttingDown.delete(nodeName);
    for (const pod of this.#loop.collection("pods").onNode(nodeName)) this.#pods.delete(keyOf(pod));
    const uid = this.#loop.get("nodes", `/${nodeName}`)?.metadata.uid;
    this.#loop.after(heartbeatGrace, () => {
      const isSame = this.#loop.get("nodes", `/${nodeName}`)?.metadata.uid === uid;
      if (isSame && this.#off.has(nodeName)) this.#writeReady(nodeName, silent);
    });
  }

  reconcile(key: string): void {
    const pod = this.#loop.get<PodObject>("pods", key);
    const nodeName = pod?.spec.nodeName;
    if (!pod || nodeName === undefined || this.#isOff(nodeName)) return;
    const running = this.#pods.get(key);
    const known = running?.uid === pod.metadata.uid ? running : undefined;
    if (pod.metadata.deletionTimestamp !== undefined) this.#terminate(pod, known);
    else if (!known && isToStart(pod)) this.#start(pod);
    else if (!known) this.#pods.set(key, { uid: pod.metadata.uid });
  }

  #isOff(nodeName: string): boolean {
    const there = this.#loop.collection("nodes").get("", nodeName) !== undefined;
    return !there || this.#off.has(nodeName);
  }

  #start(pod: PodObject): void {
    const nodeName = pod.spec.nodeName ?? "";
    this.#pods.set(keyOf(pod), { uid: pod.metadata.uid });
    const startTime = seconds(secondsOf(pod, podBehaviour.startSeconds) ?? 5);
    this.#loop.after(this.#shuttingDown.has(nodeName) ? rejectTime : startTime, () =>
      this.#ifSame(pod, (now) => {
        if (now.metadata.deletionTimestamp !== undefined || this.#isOff(nodeName)) return;
        if (this.#shuttingDown.has(nodeName)) this.#reject(now);
        else this.#run(now);
      }),
    );
  }

  #run(pod: PodObject): void {
    this.#loop.put("pods", { ...pod, status: this.#runningStatus(pod) });
    const runSeconds = secondsOf(pod, podBehaviour.runSeconds);
    if (runSeconds === undefined) return;
    this.#loop.after(seconds(runSeconds), () =>
      this.#ifSame(pod, (now) => {
        if (now.status.phase !== "Running" || this.#isOff(now.spec.nodeName ?? "")) return;
        this.#loop.put("pods", { ...now, status: { ...now.status, phase: "Succeeded" } });
      }),
    );
  }

  #runningStatus(pod: PodObject): PodObject["status"] {
    const at = timestamp(this.#loop.context.clock.now());
    const ok = (type: string): Condition => ({ type, status: "True", lastTransitionTime: at });
    const conditions = ["PodScheduled", "Initialized", "ContainersReady", "Ready"].map(ok);
    const containerStatuses = pod.spec.containers.map(({ name, image = "" }) => ({
      name,
      image,
      imageID: "",
      ready: true,
      started: true,
      restartCount: 0,
      state: { running: { startedAt: at } },
    }));
    const ip = addressOf(pod.metadata.uid);
    const places = { podIP: ip, podIPs: [{ ip }], hostIP: "10.0.0.1", startTime: at };
    return { ...pod.status, phase: "Running", conditions, ...places, containerStatuses };
  }

  /** Sends SIGTERM once; the program exits in its own time, or SIGKILL ends it. */
  #terminate(pod: PodObject, known: Running | undefined): void {
    const nowAt = this.#loop.context.clock.now();
    const killAt = this.#killInstant(pod, known);
    if (known?.killAt !== undefined && killAt >= known.killAt) return;
    this.#pods.set(keyOf(pod), { uid: pod.metadata.uid, killAt });
    const exitSeconds = exitSecondsOf(pod);
    const exits = known?.killAt === undefined && plus(nowAt, seconds(exitSeconds)) <= killAt;
    const spanMs = exits ? seconds(exitSeconds) : millis(killAt - nowAt);
    this.#loop.after(spanMs, () => this.#ifSame(pod, (now) => this.#remove(now)));
  }

  /** The first grace period counts from when the kubelet sees it; a shortened one names its end. */
  #killInstant(pod: PodObject, known: Running | undefined): Instant {
    const nowAt = this.#loop.context.clock.now();
    const graceSeconds = pod.metadata.deletionGracePeriodSeconds ?? 0;
    if (known?.killAt === undefined) return plus(nowAt, seconds(graceSeconds));
    const namedAt = parseInstant(pod.metadata.deletionTimestamp ?? "") ?? nowAt;
    return later(nowAt, namedAt);
  }

  #remove(pod: PodObject): void {
    if (this.#isOff(pod.spec.nodeName ?? "")) return;
    const type = this.#loop.type("v1", "pods");
    this.#loop.delete(pod, { type, gracePeriodSeconds: 0, uid: pod.metadata.uid });
  }

  #stopGroup(nodeName: string, inGroup: (pod: PodObject) => boolean): void {
    const grace = this.#shuttingDown.get(nodeName);
    if (!grace) return;
    for (const object of this.#loop.collection("pods").onNode(nodeName)) {
      const pod = object as PodObject;
      if (inGroup(pod)) this.#stopForShutdown(pod, grace);
    }
  }

  #stopForShutdown(pod: PodObject, grace: ShutdownGrace): void {
    const critical = (pod.spec.priority ?? 0) >= criticalPriority;
    const budgetSeconds = critical ? grace.criticalSeconds : grace.regularSeconds;
    const graceSeconds = Math.min(pod.spec.terminationGracePeriodSeconds ?? 30, budgetSeconds);
    const stopSeconds = Math.min(exitSecondsOf(pod), graceSeconds);
    this.#loop.after(seconds(stopSeconds), () =>
      this.#ifSame(pod, (now) => {
        if (this.#isOff(pod.spec.nodeName ?? "")) return;
        // A pod that was deleted through the API disappears; any other stays as Failed.
        if (now.metadata.deletionTimestamp !== undefined) this.#remove(now);
        else this.#fail(now);
      }),
    );
  }

  #fail(pod: PodObject): void {
    if (pod.status.phase === "Succeeded" || pod.status.phase === "Failed") return;
    const at = timestamp(this.#loop.context.clock.now());
    const message = "Pod was terminated in response to imminent node shutdown.";
    const target = {
      type: "DisruptionTarget",
      status: "True",
      reason: "TerminationByKubelet",
      message,
      lastTransitionTime: at,
    };
    const unready = { type: "Ready", status: "False", lastTransitionTime: at };
    const conditions = withCondition(withCondition(pod.status.conditions, unready), target);
    const status = { ...pod.status, phase: "Failed", reason: "Terminated", message, conditions };
    this.#loop.put("pods", { ...pod, status });
  }

  #reject(pod: PodObject): void {
    const message = "Pod was rejected as the node is shutting down.";
    const status = { ...pod.status, phase: "Failed", reason: "NodeShutdown", message };
    this.#loop.put("pods", { ...pod, status });
  }

  #writeReady(nodeName: string, said: Pick<Condition, "status" | "reason" | "message">): void {
    const node = this.#loop.get<NodeObject>("nodes", `/${nodeName}`);
    if (!node) return;
    const lastTransitionTime = timestamp(this.#loop.context.clock.now());
    const condition = { type: "Ready", ...said, lastTransitionTime };
    const conditions = withCondition(node.status.conditions, condition);
    this.#loop.put("nodes", { ...node, status: { ...node.status, conditions } });
  }

  /** A kubelet that reports again corrects what the control plane has written meanwhile. */
  #writeReadyAgain(nodeName: string): void {
    const node = this.#loop.get<NodeObject>("nodes", `/${nodeName}`);
    if (node && conditionOf(node, "Ready")?.reason === silent.reason) {
      this.#writeReady(nodeName, reporting);
    }
  }

  /** Calls `act` with the current state of the pod, unless another pod now has its name. */
  #ifSame(pod: PodObject, act: (now: PodObject) => void): void {
    const now = this.#loop.get<PodObject>("pods", keyOf(pod));
    if (now && now.metadata.uid === pod.metadata.uid) act(now);
  }
}

/** A pod that waits for its first start, or was not ready when its machine came back. */
function isToStart(pod: PodObject): boolean {
  const { phase } = pod.status;
  return phase === "Pending" || (phase === "Running" && !isReady(pod));
}

function secondsOf(pod: PodObject, annotation: string): number | undefined {
  const text = pod.metadata.annotations?.[annotation];
  return text === undefined ? undefined : Number(text);
}

const shuttingDown = "node is shutting down";

/**
 * How long the control plane waits for a heartbeat. Source: kubernetes
 * `pkg/controller/nodelifecycle/config/v1alpha1/defaults.go`, nodeMonitorGracePeriod (50 s since
 * 1.32).
 */
const heartbeatGrace = seconds(50);

/**
 * How long a kubelet that shuts down takes to refuse a pod: it learns of it by its watch, and its
 * status manager writes the refusal. In no time, a ReplicaSet, which has no backoff for pods that
 * failed, and a scheduler that counts the node as ready would go round for ever in one instant.
 */
const rejectTime = seconds(1);

/** Source: kubernetes `pkg/controller/nodelifecycle/node_lifecycle_controller.go`. */
const silent = {
  status: "Unknown",
  reason: "NodeStatusUnknown",
  message: "Kubelet stopped posting node status.",
};

const reporting = {
  status: "True",
  reason: "KubeletReady",
  message: "kubelet is posting ready status",
};

export function isShuttingDown(node: NodeObject | undefined): boolean {
  return (node?.status.conditions ?? []).some(({ message }) => message === shuttingDown);
}

/** The time from SIGTERM until its program exits on its own; default one second. */
export function exitSecondsOf(pod: PodObject): number {
  const text = pod.metadata.annotations?.[podBehaviour.exitSeconds];
  return text === "never" ? Number.POSITIVE_INFINITY : Number(text ?? 1);
}

/** A plausible address, derived from the uid so that it is the same in every run. */
function addressOf(uid: string): string {
  const [a, b, c] = [0, 2, 4].map((at) => Number.parseInt(uid.slice(at, at + 2), 16));
  return `10.${a}.${b}.${c}`;
}
