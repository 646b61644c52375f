import type { UnplacedPod } from "../capacity/capacity-fit.ts";
import type { MachineState } from "../cluster/machine.ts";
import type { NodeFacts } from "../cluster/node.ts";
import type { AttachedVolume, BudgetFacts, PodFacts, PodPlacement } from "../cluster/pod.ts";
import type { GateAnswer } from "../departure/decision.ts";
import type { ActionRecord, Departure } from "../departure/departure.ts";
import type { RunningDrain } from "../departure/drain-reason.ts";
import type { TerminationRecords } from "../drain/drain-time.ts";
import type { PlaceholderFacts } from "../drain/placeholder-plan.ts";
import type { GateHold } from "../limits/gate.ts";
import type { NodesOut } from "../limits/nodes-out.ts";
import type { CloudAnswer } from "../notice/machine-evidence.ts";
import type { Policy } from "../policy/policy.ts";
import type { ReleaseAnswer } from "../policy/release-answer.ts";
import type { Instant } from "../time/time.ts";

/**
 * When an evaluation takes place: by the wall clock for deadlines, by the monotonic clock for ages,
 * and by its number. What was asked later has a higher number, also within one millisecond.
 */
export interface EvaluationTime {
  readonly at: Instant;
  readonly ms: number;
  readonly number: number;
}

/** Why something that was asked for is not known or not done. */
export interface RequestFault {
  readonly code: string;
  readonly message: string;
  readonly retryable: boolean;
}

/** Whether the API server is away: it has refused nothing, and nobody could act. */
export function isAway({ code }: RequestFault): boolean {
  return code === "API_UNREACHABLE";
}

/**
 * `number` is that of the evaluation that asked for it: an answer may be older than its arrival,
 * but never than its question. What is followed has the number of its first list, and is newer
 * since.
 */
export type SceneFact<T> =
  | { readonly kind: "Known"; readonly value: T; readonly number: number }
  | { readonly kind: "Failed"; readonly fault: RequestFault; readonly sinceMs: number };

/** What can be read about a departure, by name. */
export interface FactTypes {
  /** The Node of that name, read from the API server. */
  readonly nodeNow: { readonly node: NodeFacts | undefined };
  /** Whether the Departure exists and has not ended, read from the API server. */
  readonly isLive: boolean;
  /** The pods of the node, followed. */
  readonly pods: readonly PodFacts[];
  /** The pods of the node, listed once. */
  readonly podsNow: readonly PodFacts[];
  readonly budgets: readonly BudgetFacts[];
  /** The volumes attached to the node, followed. */
  readonly volumes: readonly AttachedVolume[];
  /** The placeholders of the departure, followed. */
  readonly placeholders: readonly PlaceholderFacts[];
  /** Where the volumes of the pods can be attached, by the pods' uids. */
  readonly placements: ReadonlyMap<string, PodPlacement | undefined>;
  /** Pods that fit on no other node. */
  readonly unplaced: readonly UnplacedPod[];
  /** What the cloud says of the machine. */
  readonly machine: MachineState;
  /** The same, asked because its Node is gone; a cloud that does not answer in time fails. */
  readonly machineBehind: Exclude<CloudAnswer, "Silent">;
  readonly releasable: ReleaseAnswer;
  /** The external gates of the newest policy. */
  readonly gates: { readonly answer: GateAnswer | undefined };
}

export type FactName = keyof FactTypes;
export type SceneFacts = { readonly [Name in FactName]?: SceneFact<FactTypes[Name]> | undefined };

/** A fact that is needed. One with a lower number than `since` is read again. */
export interface Need {
  readonly name: FactName;
  readonly since: number;
}

/** Everything that one departure is decided on, as it is known now. */
export interface DepartureScene {
  /** The spec as watched; status and resourceVersion as last written or read by this process. */
  readonly departure: Departure;
  /** The watch no longer shows it, or a write found none. */
  readonly isDeleted: boolean;
  /** The Node of that name, as watched. */
  readonly node: NodeFacts | undefined;
  readonly policy: Policy;
  /** The other drains that hold budgets, each by its newest status, whether written or not. */
  readonly drains: () => readonly RunningDrain[];
  /** The nodes that are out now; undefined if the watch does not show this one. */
  readonly nodesOut: () => NodesOut | undefined;
  /** What holds every voluntary departure of the policy: the fleet is unhealthy. */
  readonly fleetHold: () => GateHold | undefined;
  /** The policy as it is now, which is asked again before the cordon. */
  readonly newestPolicy: () => Policy;
  readonly facts: SceneFacts;
  /** The records of the departure's actions, which may be newer than the status. */
  readonly actions: readonly ActionRecord[];
  /** How long pods took to terminate, learned over all drains. */
  readonly terminations: TerminationRecords;
  /** When the API server last answered something about this departure (monotonic). */
  readonly heardMs: number;
  /** Why the status could not be written, and since when. */
  readonly unwritten?: { readonly fault: RequestFault; readonly sinceMs: number } | undefined;
  /** Node and pods have just been read, and the machine is released unless this says otherwise. */
  readonly lastLook?: LastLook | undefined;
  /** The uid of the controller's own pod. */
  readonly self: string | undefined;
}

export interface LastLook {
  readonly node: NodeFacts | undefined;
  readonly isLive: boolean;
  readonly pods: readonly PodFacts[];
  /** Another Node names the same machine: the release fails with this. */
  readonly shared?: string | undefined;
}
