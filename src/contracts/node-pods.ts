import type { FailedPod } from "../core/cluster/left-pod.ts";
import type { BudgetFacts, OwnerFacts, PodFacts, PodIdentity } from "../core/cluster/pod.ts";
import type { ForceReason } from "../core/departure/drain-reason.ts";
import type { EvictionAnswer } from "../core/drain/drain-answer.ts";
import type { Instant, Millis } from "../core/time/time.ts";

/** The pods of one node at a time, and how they are asked to leave. */
export interface NodePods {
  /** The pods of the node now, by one list with a field selector. */
  list(nodeName: string): Promise<readonly PodFacts[]>;
  /** Lists and then watches the pods of one node until the signal aborts. */
  follow(nodeName: string, options: FollowOptions): FollowedPods;
  /** The pods that have ended as Failed, of one node or of all. */
  failed(nodeName: string | undefined, signal: AbortSignal): Promise<readonly FailedPod[]>;
  /** Every PodDisruptionBudget of the cluster, by one list. */
  budgets(): Promise<readonly BudgetFacts[]>;
  /** The eviction API with the pod's uid as precondition; never throws for an answer. */
  evict(pod: PodIdentity, options: LeaveOptions): Promise<EvictionAnswer>;
  /**
   * Sets the condition `DisruptionTarget` on the pod's status, as the eviction API does, so that
   * what watches the pod's end (a Job's podFailurePolicy) knows it for a disruption. Takes half a
   * second at most and never throws; gives what kept it from that.
   */
  markDisrupted(pod: PodIdentity, options: MarkDisruptedOptions): Promise<string | undefined>;
  /** A plain delete with the uid as precondition: past every budget. */
  remove(pod: PodIdentity, options: LeaveOptions): Promise<EvictionAnswer>;
  /**
   * A rollout restart of the workload behind the owner, once a pod: a second one changes nothing.
   */
  restartOwner(
    pod: PodIdentity,
    owner: OwnerFacts,
    options: RestartOptions,
  ): Promise<EvictionAnswer>;
}

export interface FollowOptions {
  /** Of the list, in a rush: the soonest goes first. */
  readonly dueAt?: Instant | undefined;
  /** Between two attempts, where one fails. Default 10 s, or what the server asks for. */
  readonly longestPauseMs?: Millis | undefined;
  readonly signal: AbortSignal;
}

export interface LeaveOptions {
  /**
   * Asked as the request goes out, which in a rush is a while after it was made; undefined: the
   * pod's own grace. It throws where the pod need not leave any more.
   */
  readonly graceSeconds: () => number | undefined;
  /** In a rush the soonest goes first. */
  readonly dueAt?: Instant | undefined;
}

export interface MarkDisruptedOptions {
  readonly reason: ForceReason;
  /** In a rush the soonest goes first. */
  readonly dueAt?: Instant | undefined;
}

export interface RestartOptions {
  /** Called as the request goes out. It throws where the restart is not wanted any more. */
  readonly onTurn: () => void;
  /** In a rush the soonest goes first. */
  readonly dueAt?: Instant | undefined;
}

export interface FollowedPods {
  synced(): Promise<void>;
  pods(): readonly PodFacts[];
  onChange(listener: () => void): () => void;
}
