import type { FailedPod } from "../core/cluster/left-pod.ts";
import type { BudgetFacts, OwnerFacts, PodFacts, PodIdentity } from "../core/cluster/pod.ts";
import type { ForceReason } from "../core/departure/drain-reason.ts";
import type { EvictionAnswer } from "../core/drain/drain-answer.ts";
import type { Instant, Millis } from "../core/time/time.ts";

/** Reads and evicts the pods of one node at a time. */
export interface NodePods {
  /** Lists the pods of the node with a field selector. */
  list(nodeName: string): Promise<readonly PodFacts[]>;
  /** Lists, then watches, the pods of one node until the signal aborts. */
  follow(nodeName: string, options: FollowOptions): FollowedPods;
  /** Lists the pods in phase Failed, of one node or of all nodes. */
  failed(nodeName: string | undefined, signal: AbortSignal): Promise<readonly FailedPod[]>;
  /** Lists every PodDisruptionBudget of the cluster. */
  budgets(): Promise<readonly BudgetFacts[]>;
  /** Evicts with the pod's uid as precondition. Never throws for a response of the server. */
  evict(pod: PodIdentity, options: LeaveOptions): Promise<EvictionAnswer>;
  /**
   * Sets the condition `DisruptionTarget` on the pod's status, as the eviction API does, so that a
   * Job's podFailurePolicy recognizes the disruption. Takes at most half a second and never throws;
   * returns the reason if it failed.
   */
  markDisrupted(pod: PodIdentity, options: MarkDisruptedOptions): Promise<string | undefined>;
  /** Deletes with the uid as precondition, regardless of budgets. */
  remove(pod: PodIdentity, options: LeaveOptions): Promise<EvictionAnswer>;
  /**
   * Restarts the rollout of the owner's workload, at most once for each pod.
   */
  restartOwner(
    pod: PodIdentity,
    owner: OwnerFacts,
    options: RestartOptions,
  ): Promise<EvictionAnswer>;
}

export interface FollowOptions {
  /** The deadline of the list request: during a burst, requests are sent in this order. */
  readonly dueAt?: Instant | undefined;
  /** The longest pause between failed attempts. Default 10 s, or what the server asks for. */
  readonly longestPauseMs?: Millis | undefined;
  readonly signal: AbortSignal;
}

export interface LeaveOptions {
  /**
   * Evaluated when the request is sent, which during a burst can be well after the call. Undefined:
   * the pod's own grace period. Throws if the pod no longer has to leave.
   */
  readonly graceSeconds: () => number | undefined;
  /** Its deadline: during a burst, requests are sent in this order. */
  readonly dueAt?: Instant | undefined;
}

export interface MarkDisruptedOptions {
  readonly reason: ForceReason;
  /** Its deadline: during a burst, requests are sent in this order. */
  readonly dueAt?: Instant | undefined;
}

export interface RestartOptions {
  /** Called when the request is sent. Throws if the restart is no longer needed. */
  readonly onTurn: () => void;
  /** Its deadline: during a burst, requests are sent in this order. */
  readonly dueAt?: Instant | undefined;
}

export interface FollowedPods {
  synced(): Promise<void>;
  pods(): readonly PodFacts[];
  onChange(listener: () => void): () => void;
}
