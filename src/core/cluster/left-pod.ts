import type { Instant } from "../time/time.ts";
import type { NodeFacts } from "./node.ts";
import type { OwnerFacts, PodIdentity } from "./pod.ts";

/** A pod that has ended as Failed, and what tells by which machine's end. */
export interface FailedPod extends PodIdentity {
  readonly nodeName: string | undefined;
  /** `status.reason`. */
  readonly reason: string | undefined;
  /** The owner with `controller: true`. */
  readonly controller: OwnerFacts | undefined;
  readonly createdAt: Instant | undefined;
  /** When a kubelet first had it; one that never did never ran on any machine. */
  readonly startedAt: Instant | undefined;
}

/** How kubelets of different releases say that a pod ended because its node was shut down. */
const shutdownReasons: ReadonlySet<unknown> = new Set(["Terminated", "NodeShutdown", "Shutdown"]);

export function hasEndedWithMachine({ reason }: Pick<FailedPod, "reason">): boolean {
  return shutdownReasons.has(reason);
}

/**
 * Whether it ended with an earlier machine of the node's name. Without that name Kubernetes would
 * collect it as an orphan, but an orphan is bound to a node that is not there. It was made and
 * begun before this Node was registered, so that it cannot have run on this machine; and something
 * has replaced it: a pod without an owner may be all that is left of a person's work.
 */
export function isOfEarlierMachine(pod: FailedPod, node: NodeFacts): boolean {
  const { createdAt, startedAt, controller, nodeName } = pod;
  const isReplaced = controller !== undefined && controller.kind !== "Node";
  if (!isReplaced || nodeName !== node.name || !hasEndedWithMachine(pod)) return false;
  const isBefore = (at: Instant | undefined) =>
    at !== undefined && node.createdAt !== undefined && at < node.createdAt;
  return isBefore(createdAt) && isBefore(startedAt);
}
