import type { NodeIdentity } from "../cluster/node.ts";
import type { Fields } from "../json/json-field.ts";
import type { ActionKind, ActionPoint, Cause } from "../policy/action.ts";
import type { ReleaseMode } from "../policy/policy.ts";
import type { Reason } from "../reason/reason.ts";
import { hours, type Instant, type Millis, minus } from "../time/time.ts";
import type { BudgetDemand, ForceReason } from "./drain-reason.ts";

/**
 * Pending: not due yet. Running: started, and possibly completed by a controller that crashed
 * before recording it. Undone: its changes are reverted. Skipped: it does not apply to this
 * departure.
 */
export type ActionState = "Pending" | "Running" | "Done" | "Failed" | "Undone" | "Skipped";

/** The state of one action of a departure: an entry of `status.actions`. */
export interface ActionRecord {
  readonly name: string;
  readonly kind: ActionKind;
  readonly at: ActionPoint;
  readonly state: ActionState;
  /** When its first attempt started. */
  readonly startedAt?: Instant | undefined;
  /** Its duration since then. */
  readonly seconds?: number | undefined;
  readonly attempts: number;
  /** `Done`, `Undone`, or the error code. */
  readonly result?: string | undefined;
  /** A sentence with details. */
  readonly detail?: string | undefined;
  /** The undo record, written before the first change. */
  readonly undo?: Fields | undefined;
  /** The receiver's identifier: of a silence, or of a message that later ones reply to. */
  readonly reference?: string | undefined;
}

export type Phase =
  | "Scheduled"
  | "Held"
  | "Preparing"
  | "Draining"
  | "Releasing"
  | "RollingBack"
  | "Ended";

export type Outcome =
  | "Planned"
  | "Preempted"
  | "Forced"
  | "Expired"
  | "RolledBack"
  | "Cancelled"
  | "Failed";

/** The counts of a drain in a Departure's status. */
export interface DrainCounts {
  readonly total: number;
  readonly left: number;
  readonly evicted: number;
  readonly forced: number;
  readonly waiting: number;
  readonly blocked: number;
  readonly cut: number;
  /** The time in which the drain could act, which its timeout counts; see `drain-clock.ts`. */
  readonly activeSeconds?: number | undefined;
  /** The longest wait for a pod to complete, which extends the timeout; see `drain-memory.ts`. */
  readonly waitSeconds?: number | undefined;
  /** Pods that were gone within their grace period. */
  readonly cleanExit?: number | undefined;
  /** Pods that were killed at the end of their grace period. */
  readonly killed?: number | undefined;
  /** Pods that remained at the end of the drain, or long after their grace period. */
  readonly leftBehind?: number | undefined;
  /** The first pods that were killed or left behind; bounded, since a status is. */
  readonly notClean?: readonly UncleanPod[] | undefined;
  /** The first pods that were deleted instead of evicted, and why. */
  readonly forcedPods?: readonly ForcedPod[] | undefined;
}

export interface UncleanPod {
  readonly namespace: string;
  readonly name: string;
  readonly outcome: "Killed" | "LeftBehind";
  /** The audit rule that predicts it, if there is one; see `drain-time.ts`. */
  readonly rule?: string | undefined;
}

export interface ForcedPod {
  readonly namespace: string;
  readonly name: string;
  readonly reason: ForceReason;
}

export interface TimelineEntry {
  readonly at: Instant;
  readonly step: string;
  readonly result: string;
}

/**
 * Keeps a departure that is under way from vanishing when somebody deletes it: what it has done is
 * undone first, by whichever replica leads then.
 */
export const departureFinalizer = "lastcall.dev/departure";

export function hasFinalizer({ finalizers = [] }: Pick<Departure, "finalizers">): boolean {
  return finalizers.includes(departureFinalizer);
}

/**
 * The policy that a departure counts for. An agent knows no policies: of a departure that a notice
 * made, the status has the one that selected its node when it began or ended.
 */
export function policyNameOf({
  policy,
  status,
}: Pick<Departure, "policy" | "status">): string | undefined {
  return policy ?? status.policy;
}

const withMachine: ReadonlySet<unknown> = new Set(["Planned", "Preempted", "Forced", "Expired"]);

/** Whether the departure has ended, and its machine with it. */
export function hasTakenMachine({ status }: Pick<Departure, "status">): boolean {
  return withMachine.has(status.outcome);
}

/** The departure of one node. Its status records what happened. */
export interface Departure {
  readonly name: string;
  readonly uid: string;
  /** Part of every write, so that a replica that lost the lead cannot write stale state. */
  readonly resourceVersion: string;
  readonly deletionAt?: Instant | undefined;
  /** Those of `metadata`: `departureFinalizer` keeps a deleted one until it is undone. */
  readonly finalizers?: readonly string[] | undefined;
  readonly createdAt?: Instant | undefined;
  readonly node: NodeIdentity;
  readonly cause: Cause;
  readonly departAt?: Instant | undefined;
  readonly deadlineAt?: Instant | undefined;
  /** When the machine was launched, for readers that do not ask the cloud; set by the planner. */
  readonly launchedAt?: Instant | undefined;
  readonly noticedAt?: Instant | undefined;
  /** When the cloud withdrew its notice, written by the notice's reporter. */
  readonly withdrawnAt?: Instant | undefined;
  readonly source?: string | undefined;
  readonly policy?: string | undefined;
  /** Set by a person to hold the departure. */
  readonly hold: boolean;
  /**
   * Whether its start failed just now, for a reason that could not be recorded in its status. Known
   * only to the process that tried.
   */
  readonly isResting?: boolean | undefined;
  readonly status: DepartureStatus;
}

/** The machine of a departure, recorded just before its release is requested. */
export interface MachineRecord {
  /** The id that the releaser read, which distinguishes it from a new machine. */
  readonly id: string;
  /**
   * How it is released, which determines the kind of id. Recorded because the Node may be gone.
   * Absent in the status of an older version.
   */
  readonly mode?: Exclude<ReleaseMode, "None"> | undefined;
  /**
   * The Node's, which the Departure may not name. Absent in the status of an older version.
   */
  readonly providerID?: string | undefined;
}

export interface DepartureStatus {
  readonly phase: Phase;
  readonly outcome?: Outcome | undefined;
  readonly reason?: Reason | undefined;
  readonly message?: string | undefined;
  /**
   * When it started and the node was marked. The drain is timed separately, see `drainBeganAt`.
   */
  readonly startedAt?: Instant | undefined;
  readonly endedAt?: Instant | undefined;
  readonly machine?: MachineRecord | undefined;
  /** The time for which the release has been tried, once something has failed. */
  readonly releasingSeconds?: number | undefined;
  readonly drain?: DrainCounts | undefined;
  /**
   * The budgets that other drains could compete for, as they were before this drain started: what
   * it has used since is its own. Kept until the pods are gone.
   */
  readonly demands?: readonly BudgetDemand[] | undefined;
  /** The actions around the departure in the policy's order; absent if there are none. */
  readonly actions?: readonly ActionRecord[] | undefined;
  /**
   * The policy of its actions, and of a lifecycle hook to abandon. Recorded because the node may be
   * gone when they are resumed.
   */
  readonly policy?: string | undefined;
  /** The Node's `creationTimestamp`, recorded because the limits count replacements later. */
  readonly nodeCreatedAt?: Instant | undefined;
  /**
   * The tool that was removing the node when last seen, which holds the departure. Kept at its end,
   * because the limits count what replaces the node later.
   */
  readonly leftTo?: string | undefined;
  readonly timeline: readonly TimelineEntry[];
}

export interface WithPhase {
  readonly status: Pick<DepartureStatus, "phase">;
}

/** Whether pods are evicted in this phase or about to be, so that budgets are in use. */
export function mayHoldBudgets(phase: Phase): boolean {
  return phase === "Preparing" || phase === "Draining";
}

/** The longest object name that the API server accepts; a Node's name may be as long. */
const longestName = 253;

/**
 * The name of a Departure: `<node>-<first 8 of the node uid>`, with a suffix `-2`, `-3` for later
 * ones of the same node. If that is too long, `node-<uid>`. Agents cannot use other names:
 * `deploy/agent/admission.yaml` enforces the same rule.
 */
export function departureName(node: NodeIdentity, count = 1): string {
  const number = count === 1 ? "" : `-${count}`;
  const name = `${node.name}-${node.uid.slice(0, 8)}${number}`;
  return name.length <= longestName ? name : `node-${node.uid}${number}`;
}

/** A free name, and the earlier names that departures of other nodes have taken. */
export interface FreeName {
  readonly name: string;
  readonly namesTaken: readonly string[];
}

/**
 * The first free name of a node's departures. Earlier departures of the node have names as well;
 * a departure of another node should not have one of them, and that name is skipped.
 */
export function freeName(
  node: NodeIdentity,
  departureNamed: (name: string) => Pick<Departure, "node"> | undefined,
): FreeName {
  const namesTaken: string[] = [];
  for (let count = 1; ; count += 1) {
    const name = departureName(node, count);
    const there = departureNamed(name);
    if (there === undefined) return { name, namesTaken };
    if (there.node.uid !== node.uid) namesTaken.push(name);
  }
}

export function isLive({ status }: WithPhase): boolean {
  return status.phase !== "Ended";
}

/** Whether the departure was chosen. All other causes come from the cloud. */
export function isVoluntary(cause: Cause): cause is "Planned" | "Manual" {
  return cause === "Planned" || cause === "Manual";
}

/** Whether a policy may ignore the cause and keep the node running. */
export function mayBeIgnored(cause: Cause): boolean {
  return cause === "RebalanceRecommendation" || cause === "ScheduledMaintenance";
}

/**
 * Whether one cause is more severe than another, that is, more certain to end the machine: a
 * recommendation may have no effect, and a machine may survive maintenance.
 */
export function isGraver(cause: Cause, than: Cause): boolean {
  return gravity(cause) > gravity(than);
}

function gravity(cause: Cause): number {
  if (!mayBeIgnored(cause)) return 2;
  return cause === "ScheduledMaintenance" ? 1 : 0;
}

/** Whether the cloud takes the node, so that a departure waits for nothing but the drain. */
export function isNoticed({ cause, noticedAt }: Pick<Departure, "cause" | "noticedAt">): boolean {
  return noticedAt !== undefined || !isVoluntary(cause);
}

/**
 * The instant at which the cloud takes the machine. A planned or requested deadline does not count:
 * a notice without a deadline leaves it, and the cause, unchanged.
 */
export function cloudDeadline({
  cause,
  noticedAt,
  deadlineAt,
}: Pick<Departure, "cause" | "noticedAt" | "deadlineAt">): Instant | undefined {
  const isClouds = cause === "Planned" ? noticedAt !== undefined : cause !== "Manual";
  return isClouds ? deadlineAt : undefined;
}

/** Whether the departure has started: it is under way or has ended. */
export function isUnderWay({ status }: WithPhase): boolean {
  return status.phase !== "Scheduled" && status.phase !== "Held";
}

/** The reasons during which the machine may still stay. */
const undecided: ReadonlySet<Reason | undefined> = new Set(["AwaitingMachine", "ReleaseRetried"]);

type Releasing = Pick<Departure, "cause" | "noticedAt"> & {
  readonly status: Pick<DepartureStatus, "phase" | "reason">;
};

/**
 * Whether a notice of this cause changes nothing, because our own release ends the machine: it is
 * not preempted then. Absent: any cause.
 */
export function endsAsPlanned(departure: Releasing, cause: Cause | undefined): boolean {
  return isBeingReleased(departure) || (cause !== undefined && isSequelOf(departure, cause));
}

/** Whether our release is in progress, so that the machine ends as planned. */
function isBeingReleased(departure: Releasing): boolean {
  const { phase, reason } = departure.status;
  return phase === "Releasing" && !isNoticed(departure) && !undecided.has(reason);
}

/**
 * Whether a notice only reports the end of a machine that we release: the termination hook of its
 * group, or the kubelet's shutdown.
 */
export function isSequelOf(departure: Releasing, cause: Cause): boolean {
  const isSequel = cause === "LifecycleHook" || cause === "NodeShutdown";
  return isSequel && departure.status.phase === "Releasing" && !isNoticed(departure);
}

/**
 * How long before the announced end of a machine nothing holds its departure any more.
 */
const pressingLeadMs: Millis = hours(1);

type NoticeFields = Pick<Departure, "cause" | "noticedAt" | "deadlineAt">;

/**
 * Whether the notice is advice: a recommendation, or hours ahead. Its departure is then like a
 * planned one that was moved forward, subject to budgets, waves and gates. Maintenance without a
 * time may start immediately.
 */
export function isAdvice({ cause, deadlineAt }: NoticeFields, now: Instant): boolean {
  if (!mayBeIgnored(cause)) return false;
  if (deadlineAt === undefined) return cause === "RebalanceRecommendation";
  return now < minus(deadlineAt, pressingLeadMs);
}

/** Whether the cloud takes the node and every second counts. */
export function isPressing(departure: NoticeFields, now: Instant): boolean {
  return isNoticed(departure) && !isAdvice(departure, now);
}

/** When an advisory departure becomes pressing; undefined if not by time alone. */
export function pressingFrom({ cause, deadlineAt }: NoticeFields): Instant | undefined {
  if (!mayBeIgnored(cause) || deadlineAt === undefined) return undefined;
  return minus(deadlineAt, pressingLeadMs);
}

/**
 * Whether an advisory departure waits, so that its node is planned and counted as if it did not
 * exist.
 */
export function isWaitingAdvice(departure: Departure, now: Instant): boolean {
  return isAdvice(departure, now) && !isUnderWay(departure);
}

/** Whether a person's request is not due yet or is held. */
export function isWaitingRequest(departure: Departure): boolean {
  return departure.cause === "Manual" && !isNoticed(departure) && !isUnderWay(departure);
}

/** Whether a person has stopped or postponed a departure that is about to start. */
export function isPostponed(departure: Departure, at: Instant): boolean {
  const { cause, hold, departAt = at, deletionAt, withdrawnAt } = departure;
  if (deletionAt !== undefined || withdrawnAt !== undefined) return true;
  return isVoluntary(cause) && (hold || (cause === "Manual" && departAt > at));
}
