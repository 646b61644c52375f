import type { NodeIdentity } from "../cluster/node.ts";
import type { Cause } from "../policy/cause.ts";
import type { ReleaseMode } from "../policy/policy.ts";
import type { Reason } from "../reason/reason.ts";
import { hours, type Instant, type Millis, minus } from "../time/time.ts";
import type { ActionRecord } from "./action-record.ts";
import type { BudgetDemand } from "./drain-conflict.ts";
import type { ForceReason } from "./drain-reason.ts";

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

/** How far a drain has come; the sum of a Departure's status. */
export interface DrainCounts {
  readonly total: number;
  readonly left: number;
  readonly evicted: number;
  readonly forced: number;
  readonly waiting: number;
  readonly blocked: number;
  readonly cut: number;
  /** Pods that were gone before their grace was over. */
  readonly cleanExit?: number | undefined;
  /** Pods that were gone with it. */
  readonly killed?: number | undefined;
  /** Pods that were not gone when the drain ended, or long after they should have been. */
  readonly leftBehind?: number | undefined;
  /** The first pods that were killed or left behind; a status is bounded. */
  readonly notClean?: readonly UncleanPod[] | undefined;
  /** The first pods that were deleted past the eviction API, and why. */
  readonly forcedPods?: readonly ForcedPod[] | undefined;
}

export interface UncleanPod {
  readonly namespace: string;
  readonly name: string;
  readonly outcome: "Killed" | "LeftBehind";
  /** The audit rule that foretells it, where one does; see loss-rule.ts. */
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

/** One node's departure: the unit of everything; its status records what happened. */
export interface Departure {
  readonly name: string;
  readonly uid: string;
  /** Every write names it, so that a replica which lost the lead cannot act on what it last saw. */
  readonly resourceVersion: string;
  readonly deletionAt?: Instant | undefined;
  readonly createdAt?: Instant | undefined;
  readonly node: NodeIdentity;
  readonly cause: Cause;
  readonly departAt?: Instant | undefined;
  readonly deadlineAt?: Instant | undefined;
  readonly noticedAt?: Instant | undefined;
  /** When the cloud withdrew its notice; written by the reporter of the notice. */
  readonly withdrawnAt?: Instant | undefined;
  readonly source?: string | undefined;
  readonly policy?: string | undefined;
  /** Set by a person: the departure waits while it is. */
  readonly hold: boolean;
  readonly status: DepartureStatus;
}

/** The machine of a departure, written down just before its release is asked for. */
export interface MachineRecord {
  /** The id that its releaser read, so that a new machine is recognized. */
  readonly id: string;
  /**
   * How it is released, which decides whose id it is: a Node that is gone no longer shows it.
   * Absent in what an older version has written.
   */
  readonly mode?: Exclude<ReleaseMode, "None"> | undefined;
}

export interface DepartureStatus {
  readonly phase: Phase;
  readonly outcome?: Outcome | undefined;
  readonly reason?: Reason | undefined;
  readonly message?: string | undefined;
  /**
   * When it began and the node was marked; the drain has a clock of its own, see `drainBeganAt`.
   */
  readonly startedAt?: Instant | undefined;
  readonly endedAt?: Instant | undefined;
  readonly machine?: MachineRecord | undefined;
  readonly drain?: DrainCounts | undefined;
  /**
   * The budgets over which another drain could get into a conflict with this one, as they were
   * before it began: what it has spent of them since is its to hold. Kept until the pods are gone.
   */
  readonly demands?: readonly BudgetDemand[] | undefined;
  /** What is done around it, in the order of the policy; absent where that names nothing. */
  readonly actions?: readonly ActionRecord[] | undefined;
  /**
   * The policy of its actions, and of its lifecycle hook where that is abandoned: its node may be
   * gone when they are gone on with.
   */
  readonly policy?: string | undefined;
  /** The tool that was taking the node away when it was seen last; it holds the departure. */
  readonly leftTo?: string | undefined;
  readonly timeline: readonly TimelineEntry[];
}

interface WithPhase {
  readonly status: Pick<DepartureStatus, "phase">;
}

/** Whether a departure's pods are leaving in this phase, or are about to. */
export function mayHoldBudgets(phase: Phase): boolean {
  return phase === "Preparing" || phase === "Draining";
}

/** The longest name that the API server takes for an object; a Node's own may be as long. */
const longestName = 253;

/**
 * Contract: `<node>-<first 8 of the node uid>`, and `-2`, `-3` … behind it for a later one of the
 * same node. Where that is too long for a name, the node's whole uid names it: `node-<uid>`. An
 * agent may use no other names: `deploy/agent/admission.yaml` has the same rule.
 */
export function departureName(node: NodeIdentity, count = 1): string {
  const number = count === 1 ? "" : `-${count}`;
  const name = `${node.name}-${node.uid.slice(0, 8)}${number}`;
  return name.length <= longestName ? name : `node-${node.uid}${number}`;
}

/** A name that nobody has, and those before it that departures of other nodes have. */
export interface FreeName {
  readonly name: string;
  readonly namesTaken: readonly string[];
}

/**
 * The first of a node's names that no departure has. Its own former ones have names, for a node
 * that stays may have several; a departure of another node should have none of them, and is gone
 * round.
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

/** Causes that somebody chose; all others come from the cloud, with a deadline of its own. */
export function isVoluntary(cause: Cause): cause is "Planned" | "Manual" {
  return cause === "Planned" || cause === "Manual";
}

/** Causes at which a policy may leave the node at work; at any other it has to go. */
export function mayBeIgnored(cause: Cause): boolean {
  return cause === "RebalanceRecommendation" || cause === "ScheduledMaintenance";
}

/**
 * Whether it is surer by one cause than by another that the machine goes: a recommendation may come
 * to nothing, and maintenance be lived through.
 */
export function isGraver(cause: Cause, than: Cause): boolean {
  return gravity(cause) > gravity(than);
}

function gravity(cause: Cause): number {
  if (!mayBeIgnored(cause)) return 2;
  return cause === "ScheduledMaintenance" ? 1 : 0;
}

/** The cloud takes the node: nothing may be waited for that a drain does not need. */
export function isNoticed({ cause, noticedAt }: Pick<Departure, "cause" | "noticedAt">): boolean {
  return noticedAt !== undefined || !isVoluntary(cause);
}

/**
 * The instant after which the cloud takes the machine. A plan's own deadline is none, nor is a
 * person's: a notice that names none leaves that, and its cause, as they were.
 */
export function cloudDeadline({
  cause,
  noticedAt,
  deadlineAt,
}: Pick<Departure, "cause" | "noticedAt" | "deadlineAt">): Instant | undefined {
  const isClouds = cause === "Planned" ? noticedAt !== undefined : cause !== "Manual";
  return isClouds ? deadlineAt : undefined;
}

/** Whether it waits for its time no more: its node is being made to leave, or it has ended. */
export function isUnderWay({ status }: WithPhase): boolean {
  return status.phase !== "Scheduled" && status.phase !== "Held";
}

/** What a departure waits for that may yet leave its machine where it is. */
const undecided: ReadonlySet<Reason | undefined> = new Set(["AwaitingMachine", "ReleaseRetried"]);

type Releasing = Pick<Departure, "cause" | "noticedAt"> & {
  readonly status: Pick<DepartureStatus, "phase" | "reason">;
};

/** Whether our own release is on its way: the machine goes as planned, whoever takes it. */
export function isBeingReleased(departure: Releasing): boolean {
  const { phase, reason } = departure.status;
  return phase === "Releasing" && !isNoticed(departure) && !undecided.has(reason);
}

/**
 * Whether a notice only tells how a machine goes whose node has left by plan: its group holds it
 * back, and its kubelet shuts down.
 */
export function isSequelOf(departure: Releasing, cause: Cause): boolean {
  const isSequel = cause === "LifecycleHook" || cause === "NodeShutdown";
  return isSequel && departure.status.phase === "Releasing" && !isNoticed(departure);
}

/**
 * Which of a node's departures a notice belongs to, whoever brings it: one that a notice has made
 * already, else one that is under way, else the one that waits for its time. What a policy may
 * ignore (a rebalance, maintenance) leaves those two as they were: undefined, it gets one of its
 * own, which the policy judges.
 */
export function departureOfNotice<D extends WithPhase & Pick<Departure, "cause" | "noticedAt">>(
  departures: readonly D[],
  cause: Cause,
): D | undefined {
  const live = departures.filter(isLive);
  const noticed = live.find(isNoticed);
  if (noticed !== undefined) return noticed;
  return mayBeIgnored(cause) ? undefined : (live.find(isUnderWay) ?? live[0]);
}

/**
 * So long before an advised machine goes nothing holds its departure any more: it is to be out by
 * then.
 */
const pressingLeadMs: Millis = hours(1);

type NoticeFields = Pick<Departure, "cause" | "noticedAt" | "deadlineAt">;

/**
 * Whether the cloud only advises that the node leaves, or gives it hours: then its departure is a
 * planned one that was moved forward, and budgets, waves and gates hold it as they hold any.
 * Maintenance that names no time may begin at once.
 */
export function isAdvice({ cause, deadlineAt }: NoticeFields, now: Instant): boolean {
  if (!mayBeIgnored(cause)) return false;
  if (deadlineAt === undefined) return cause === "RebalanceRecommendation";
  return now < minus(deadlineAt, pressingLeadMs);
}

/** Whether the cloud takes the node, and every second counts. */
export function isPressing(departure: NoticeFields, now: Instant): boolean {
  return isNoticed(departure) && !isAdvice(departure, now);
}

/** From when on an advised departure is pressing; undefined: by time alone never. */
export function pressingFrom({ cause, deadlineAt }: NoticeFields): Instant | undefined {
  if (!mayBeIgnored(cause) || deadlineAt === undefined) return undefined;
  return minus(deadlineAt, pressingLeadMs);
}

/**
 * One that waits makes nobody leave yet: its node is planned, and counted, as if it were not there.
 */
export function isWaitingAdvice(departure: Departure, now: Instant): boolean {
  return isAdvice(departure, now) && !isUnderWay(departure);
}

/** A person's request whose time has not come, or that something holds. */
export function isWaitingRequest(departure: Departure): boolean {
  return departure.cause === "Manual" && !isNoticed(departure) && !isUnderWay(departure);
}
