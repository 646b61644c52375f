import type { NodeLoads } from "../core/capacity/capacity-fit.ts";
import type { Amounts, IdentityMatch, NodeFacts, NodeIdentity } from "../core/cluster/node.ts";
import type {
  AttachedVolume,
  BudgetFacts,
  FailedPod,
  OwnerFacts,
  PodFacts,
  PodIdentity,
} from "../core/cluster/pod.ts";
import type {
  DepartureMove,
  GateAnswer,
  GateInquiry,
  NewDeparture,
} from "../core/departure/decision.ts";
import type { Departure, DepartureStatus } from "../core/departure/departure.ts";
import type { ForceReason } from "../core/departure/drain-reason.ts";
import type { EvictionAnswer } from "../core/drain/drain-answer.ts";
import type { NewPlaceholder, PlaceholderFacts } from "../core/drain/placeholder-plan.ts";
import type { NoticeUpdate } from "../core/notice/notice.ts";
import type { PolicyCondition, PolicyStatus, SoonStanding } from "../core/plan/plan-status.ts";
import type { Cause } from "../core/policy/action.ts";
import type { BadPolicy, Policy } from "../core/policy/policy.ts";
import type { Sentence } from "../core/reason/english.ts";
import type { Instant, Millis } from "../core/time/time.ts";
import type { ActionPorts } from "./action-runner.ts";
import type { LifecycleHooks, ReleaserChoice } from "./cloud.ts";

/** The watched objects that the controller bases its decisions on. */
export interface FleetView {
  readonly nodes: readonly NodeFacts[];
  readonly policies: readonly Policy[];
  readonly badPolicies: readonly BadPolicy[];
  readonly departures: readonly Departure[];
}

/** The changes of one event-loop turn: nodes by name, departures by uid. */
export interface FleetChange {
  readonly nodes: ReadonlySet<string>;
  readonly departures: ReadonlySet<string>;
  readonly policies: boolean;
}

/**
 * How long a watch has received nothing. An idle watch gets a bookmark about every minute.
 */
export interface WatchSilence {
  readonly kind: "nodes" | "departures" | "policies";
  readonly ms: Millis;
}

/** Watches nodes, policies and departures. Made by `src/kube/fleet.ts`. */
export interface Fleet {
  /**
   * Watches until the signal aborts. Rejects with a `LastcallError` if continuing is pointless:
   * `CRD_MISSING` or `RIGHT_MISSING`.
   */
  run(signal: AbortSignal): Promise<void>;
  /** Resolves when every watch has received its first complete list. */
  synced(signal: AbortSignal): Promise<void>;
  /** The current state. Cheap if nothing has changed since the last call. */
  view(): FleetView;
  /** Single lookups that do not build the whole view: nodes by name, departures by uid. */
  node(name: string): NodeFacts | undefined;
  departure(uid: string): Departure | undefined;
  policies(): readonly Policy[];
  /**
   * The nodes of a machine, by its providerID or the last segment of it: more than one if several
   * Nodes name it (`nodesOfMachine`).
   */
  nodesOf(machine: string): readonly NodeFacts[];
  /** All departures of a node, live and ended, by the node's uid. */
  departuresOf(nodeUid: string): readonly Departure[];
  /** The departure of this name, whichever node it belongs to. */
  departureNamed(name: string): Departure | undefined;
  /** Calls the listener once per turn that has changes. Returns the function that unsubscribes. */
  onChange(listener: (change: FleetChange) => void): () => void;
  /** The silence of each watch, for health checks and metrics. */
  silences(): readonly WatchSilence[];
}

/** Looks up what the policies' gates depend on outside the watched fleet. */
export interface GateSource {
  /**
   * Returns an answer for every policy that has such gates. Never throws: what cannot be looked up
   * is `Unknown`. An answer may be a few seconds old.
   */
  ask(
    inquiries: readonly GateInquiry[],
    signal: AbortSignal,
  ): Promise<Readonly<Record<string, GateAnswer>>>;
}

/** Writes the status of policies. It informs people, so a failed write never fails an act. */
export interface PolicyStatusSink {
  /** Writes only what has changed since the last write. Policies from a file have no status. */
  write(statuses: readonly PolicyStatus[]): Promise<void>;
  /**
   * Sets the condition `Feasible` of these policies to Unknown until their next status is written.
   */
  unplanned(policies: readonly string[], problem: string): Promise<void>;
  /** Adds a condition that is found independently of a plan; later writes keep it. */
  add(policy: string, condition: PolicyCondition): Promise<void>;
}

/**
 * Stores Departures in the cluster. Every write carries the resourceVersion that the decision was
 * based on (fencing): on `Conflict` somebody else has written since, and the caller has to decide
 * again, on the version that comes with it or on one that it reads.
 */
export interface DepartureStore {
  create(departure: NewDeparture): Promise<StoreResult>;
  /** Reschedules a departure that has not started. */
  move(departure: Departure, to: DepartureMove): Promise<StoreResult>;
  /** Turns a planned departure into an interruption: sets the notice's cause and deadline. */
  notice(departure: Departure, update: NoticeUpdate): Promise<StoreResult>;
  /** Clears the planned instant, which a notice has superseded. */
  dropInstant(departure: Departure): Promise<StoreResult>;
  /** Marks that the cloud has cancelled the notice. */
  withdraw(departure: Departure, at: Instant): Promise<StoreResult>;
  /** Replaces the status. During a burst it yields to cordons and evictions. */
  record(departure: Departure, write: StatusWrite): Promise<StoreResult>;
  /** Reads one from the API server, not from the watch cache. */
  read(name: string): Promise<StoreResult>;
  /**
   * Adds or removes `departureFinalizer`; other finalizers stay. During a burst it yields to
   * cordons and evictions, until `hurry` aborts.
   */
  finalize(
    departure: Departure,
    change: "Add" | "Remove",
    hurry?: AbortSignal,
  ): Promise<StoreResult>;
  remove(departure: Departure): Promise<StoreResult>;
}

export interface StatusWrite {
  /** Evaluated when the request is sent, which during a burst can be well after the call. */
  readonly status: () => DepartureStatus;
  /** When it aborts, the write takes turns with pending evictions instead of yielding to them. */
  readonly hurry?: AbortSignal | undefined;
}

export type StoreResult =
  | { readonly kind: "Done"; readonly departure: Departure }
  /** Somebody else has written it, or has created one of that name; in the server's words. */
  | {
      readonly kind: "Conflict";
      readonly message: string;
      /** A version that is known already, and newer than the one that was written. */
      readonly newer?: Departure | undefined;
    }
  | { readonly kind: "Gone" };

/**
 * Writes to Node objects. Each write checks the node's identity (uid, providerID, bootID) in the
 * same request, so that another machine that has taken over the name is never changed.
 */
export interface NodeMarks {
  /** Reads one node from the API server; undefined if it does not exist. */
  read(name: string): Promise<NodeFacts | undefined>;
  /** Sets cordon, taint, annotation and load-balancer label in one write, then the condition. */
  cordon(node: NodeIdentity, mark: DepartingMark): Promise<MarkResult>;
  /**
   * Reverts what `cordon` wrote if the annotation names `departure`. A node that was cordoned
   * before stays cordoned: `cordon` records that in the same write.
   */
  uncordon(node: UnmarkTarget): Promise<MarkResult>;
  /**
   * Adds or removes the `PreferNoSchedule` taint of nodes that depart soon. A node that is already
   * departing, or has another machine behind it, is left unchanged.
   */
  markSoon(node: NodeIdentity, to: SoonStanding): Promise<MarkResult>;
  /** Deletes the Node object, with its uid as precondition. */
  remove(node: NodeIdentity): Promise<MarkResult>;
}

export interface DepartingMark {
  /** The name of the Departure. */
  readonly departure: string;
  readonly cause: Cause;
  /** For the node condition `Departing`: one sentence with the deadline. */
  readonly message: string;
  /** Its deadline: during a burst, requests are sent in this order. */
  readonly dueAt?: Instant | undefined;
  /**
   * Only refreshes existing marks: a node without this departure's marks is left unchanged, and
   * the result is `Gone`.
   */
  readonly renews?: boolean | undefined;
  /**
   * The node as last seen by a watch, which saves a read: the patch tests these values, and if the
   * server refuses it because they are stale, the node is read and patched again.
   */
  readonly seen?: NodeFacts | undefined;
  /**
   * How long after the call a patch that was overtaken is sent again. After that the cordon fails
   * with a `CONFLICT`, because what allowed it has to be asked again. Absent: however long.
   */
  readonly validMs?: Millis | undefined;
}

export interface UnmarkTarget {
  readonly name: string;
  readonly uid: string;
  readonly departure: string;
  /** As the watch shows it, for a node that may not be read. */
  readonly seen?: NodeFacts | undefined;
}

export type MarkResult =
  | { readonly kind: "Done" }
  /** No node of that name exists, or it has another uid. */
  | { readonly kind: "Gone" }
  /** The node has another machine or boot behind it; nothing was written. */
  | { readonly kind: "Mismatch"; readonly found: Exclude<IdentityMatch, "Same"> }
  /** The node carries the marks of another departure, named here; nothing was written. */
  | { readonly kind: "NotOurs"; readonly departure: string };

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
  /** What the API server last answered instead of the pods, while it refuses to list them. */
  refusal(): string | undefined;
  pods(): readonly PodFacts[];
  onChange(listener: () => void): () => void;
}

/** Free capacity in the cluster. Used before a planned departure, never under a notice. */
export interface ClusterCapacity {
  /** The resource requests on one node, from one list of its pods. */
  loadOn(nodeName: string, signal: AbortSignal): Promise<Amounts>;
  /** The resource requests on every node, from one list of all pods, page by page. */
  loads(signal: AbortSignal): Promise<NodeLoads>;
  /** Adds to each pod where its volumes can be attached, as far as that is known. */
  withVolumes(pods: readonly PodFacts[]): Promise<readonly PodFacts[]>;
}

/**
 * Pods in the controller's namespace that reserve capacity for the pods of a departing node. Both
 * writes are idempotent: creating an existing pod and removing a missing one succeed.
 */
export interface Placeholders {
  /** The placeholders of all departures. */
  list(): Promise<readonly PlaceholderFacts[]>;
  /** Lists, then watches, the placeholders of one Departure until the signal aborts. */
  follow(departureUid: string, signal: AbortSignal): FollowedPlaceholders;
  /** Throws `LastcallError` for a missing PriorityClass or right, a quota, or no response. */
  create(placeholder: NewPlaceholder): Promise<void>;
  /** Deletes by name, without a grace period. Throws `LastcallError` if there is no response. */
  remove(name: string): Promise<void>;
}

export interface FollowedPlaceholders {
  synced(): Promise<void>;
  placeholders(): readonly PlaceholderFacts[];
  onChange(listener: () => void): () => void;
}

/** The volumes attached to one node. */
export interface VolumeAttachments {
  /** Lists, then watches, until the signal aborts. */
  follow(nodeName: string, signal: AbortSignal): FollowedVolumes;
  /**
   * `namespace/name` of the claim bound to a persistent volume; undefined if there is none.
   */
  claimOf(volume: string): Promise<string | undefined>;
}

export interface FollowedVolumes {
  /** Rejects if listing volume attachments is forbidden. */
  synced(): Promise<void>;
  volumes(): readonly AttachedVolume[];
  onChange(listener: () => void): () => void;
}

/**
 * What a person does on the board, with their own rights. Each write states what the person saw and
 * results in `Changed` if that is no longer so; it carries the resourceVersion that was read, so
 * that only one of two concurrent writes succeeds. A refusal by the server is thrown as a
 * `LastcallError`.
 */
export interface OperatorWrites {
  /** Sets the node's annotation `lastcall.dev/hold`; null removes it. */
  hold(node: HeldNode, value: string | null): Promise<OperatorResult>;
  /** Sets `gates.freezeUntil` of a policy; null removes it. */
  freeze(policy: FrozenPolicy, until: Instant | null): Promise<OperatorResult>;
  /** Deletes a Departure, which makes the controller roll it back. */
  withdraw(departure: NamedDeparture): Promise<OperatorResult>;
}

export interface HeldNode {
  readonly name: string;
  readonly uid: string;
  /** The annotation as the person saw it. */
  readonly seen: string | null;
}

export interface FrozenPolicy {
  readonly name: string;
  readonly seen: Instant | null;
}

export interface NamedDeparture {
  readonly name: string;
  readonly uid: string;
}

export type OperatorResult =
  | { readonly kind: "Done" }
  /** Somebody else has changed it since; `found` is the current value. */
  | { readonly kind: "Changed"; readonly found: Sentence };

/**
 * What the controller reads and acts through. Assembled by the command, or by tests with the model
 * cluster.
 */
export interface ClusterPorts {
  readonly marks: NodeMarks;
  readonly pods: NodePods;
  readonly store: DepartureStore;
  readonly placeholders: Placeholders;
  /** These two are read-only. */
  readonly capacity: ClusterCapacity;
  readonly attachments: VolumeAttachments;
  readonly policyStatus: PolicyStatusSink;
  readonly releaserFor: ReleaserChoice;
  /** Absent: lifecycle hooks are not completed. */
  readonly hooks?: LifecycleHooks | undefined;
  /** Absent: actions cannot be run. */
  readonly actionPorts?: ActionPorts | undefined;
}
