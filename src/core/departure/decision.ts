import { compareIdentity, type NodeFacts, type NodeIdentity } from "../cluster/node.ts";
import type { Cause } from "../policy/action.ts";
import type { BadPolicy, Policy } from "../policy/policy.ts";
import type { ReleasabilityQuestion, ReleaseAnswers } from "../policy/release-answer.ts";
import { explain, type Reason, type ReasonFacts } from "../reason/reason.ts";
import { hours, type Instant, type Millis, plus } from "../time/time.ts";
import {
  type Departure,
  freeName,
  isLive,
  isNoticed,
  isUnderWay,
  isVoluntary,
  isWaitingAdvice,
  isWaitingRequest,
} from "./departure.ts";
import { type PhaseEvent, type PhaseResult, sentenceOf, wasDue } from "./ledger.ts";

/** The state that a decision is based on. */
export interface Snapshot {
  readonly nodes: readonly NodeFacts[];
  readonly policies: readonly Policy[];
  readonly departures: readonly Departure[];
  /** Unreadable policies. Nodes that they might select are not touched. */
  readonly badPolicies: readonly BadPolicy[];
  /**
   * Answers of external gates, per policy. A missing answer counts as closed.
   */
  readonly gateAnswers: Readonly<Record<string, GateAnswer>>;
  /** The clouds' answers about machines. A node without one has no planned departure. */
  readonly releaseAnswers: ReleaseAnswers;
  /** Why all this may be out of date: no voluntary departure starts then. */
  readonly unheard?: string | undefined;
}

export interface GateAnswer {
  /**
   * The firing alerts that the policy's matchers select; `Unknown` if Alertmanager did not respond,
   * `NotAllowed` if `--action-hosts` does not name its host.
   */
  readonly alerts: readonly string[] | "Unknown" | "NotAllowed";
  /**
   * A blocking pod as `namespace/name` for each node; `Unknown` if the pods could not be listed.
   */
  readonly blockingPods: ReadonlyMap<string, string> | "Unknown";
  /**
   * Each node that was asked about, with the workload on several nodes that its departure would
   * end, if any; `Unknown` if the pods could not be listed.
   */
  readonly gangs: ReadonlyMap<string, string | undefined> | "Unknown";
}

/** A policy whose external gates are asked, for the nodes that leave soon. */
export interface GateInquiry {
  readonly policy: Policy;
  readonly nodes: readonly string[];
}

/** A Departure to create. */
export interface NewDeparture {
  readonly name: string;
  /** Names that other nodes' departures have taken, which is worth a warning. */
  readonly namesTaken?: readonly string[] | undefined;
  readonly node: NodeIdentity;
  readonly cause: Cause;
  readonly departAt?: Instant | undefined;
  readonly deadlineAt?: Instant | undefined;
  readonly launchedAt?: Instant | undefined;
  readonly noticedAt?: Instant | undefined;
  /** Set if the notice was withdrawn before the Departure was created. */
  readonly withdrawnAt?: Instant | undefined;
  readonly source: string;
  readonly policy?: string | undefined;
  readonly reason: Reason;
  /** The reason as a sentence. */
  readonly message: string;
}

interface Reasoned {
  readonly reason: Reason;
  /** The reason as a sentence, the same in log, Event, CLI and board. */
  readonly explain: string;
}

/** What to do next about one node or departure, including nothing. */
export type Decision = Reasoned &
  (
    | { readonly kind: "Schedule"; readonly order: NewDeparture }
    | {
        readonly kind: "Move";
        readonly departure: Departure;
        readonly departAt: Instant;
        readonly deadlineAt?: Instant | undefined;
        /** What the deadline counts from, if the cloud has reported it. */
        readonly launchedAt?: Instant | undefined;
        /** The policy that selects the node now. */
        readonly policy?: string | undefined;
      }
    /** The departure is due. */
    | {
        readonly kind: "Begin";
        readonly departure: Departure;
        readonly event: "Due";
        readonly detail?: string | undefined;
      }
    /** A departure that has not started is held, no longer held, or over. */
    | {
        readonly kind: "Note";
        readonly departure: Departure;
        readonly event: Extract<
          PhaseEvent,
          "Blocked" | "Unblocked" | "Cancelled" | "Withdrawn" | "NodeGone" | "MachineReplaced"
        >;
        readonly detail?: string | undefined;
        /** When the hold ends, if known. */
        readonly until?: Instant | undefined;
      }
    /** A departure under way, which the leader resumes; `end`: only to undo what it has done. */
    | {
        readonly kind: "Continue";
        readonly departure: Departure;
        readonly end?: PhaseResult | undefined;
      }
    /** The node carries our marks without a live departure. */
    | { readonly kind: "ClearOrphan"; readonly node: NodeFacts; readonly departure: string }
    /** The departure has ended: nothing is left to undo. */
    | { readonly kind: "Finalize"; readonly departure: Departure }
    | { readonly kind: "Forget"; readonly departure: Departure }
    | { readonly kind: "Skip"; readonly node: NodeFacts }
  );

export interface Verdict {
  readonly decisions: readonly Decision[];
  /** When to decide again if nothing changes. */
  readonly askAgainAt?: Instant | undefined;
  /**
   * The machines that could leave now, which have to be checked with their clouds.
   */
  readonly asks: readonly ReleasabilityQuestion[];
}

/** A person's request that a node departs at an instant, and by a deadline. */
export interface DepartRequest {
  readonly departAt: Instant;
  readonly deadlineAt?: Instant | undefined;
  /** The policy that selects the node. */
  readonly policy?: string | undefined;
}

/** The write that fulfills the request. */
export type DepartStep =
  | { readonly kind: "Create"; readonly made: NewDeparture }
  /** Reschedules the departure of an earlier request. */
  | { readonly kind: "Move"; readonly departure: Departure; readonly to: DepartureMove }
  /** The node is departing already, by a notice or a request. */
  | { readonly kind: "Leave"; readonly departure: Departure };

/** The new instants of a departure that has not started. */
export interface DepartureMove {
  readonly departAt: Instant;
  /** Absent: unchanged; null: removed. */
  readonly deadlineAt?: Instant | null | undefined;
  /** Absent: unchanged. */
  readonly launchedAt?: Instant | undefined;
  /** Absent: unchanged. */
  readonly policy?: string | undefined;
}

/**
 * Decides what to write for a request. A planned departure stays unchanged: it is held while the
 * requested one is live, and ends with the node. `departures` may be those of the whole cluster.
 */
export function departStep(
  node: NodeFacts,
  request: DepartRequest,
  departures: readonly Departure[],
): DepartStep {
  const ofNode = departures.filter((one) => one.node.uid === node.uid);
  const live = ofNode.filter(isLive);
  // An advisory departure may be held for long.
  const isLeaving = (one: Departure) => isNoticed(one) && one.status.phase !== "Held";
  const leaving = live.find((one) => isUnderWay(one) || isLeaving(one));
  if (leaving !== undefined) return { kind: "Leave", departure: leaving };
  const asked = live.find(({ cause }) => cause === "Manual");
  if (asked !== undefined) {
    const sameDeadline =
      request.deadlineAt === undefined || request.deadlineAt === asked.deadlineAt;
    const same = asked.departAt === request.departAt && sameDeadline;
    if (same) return { kind: "Leave", departure: asked };
    return { kind: "Move", departure: asked, to: moveOf(asked, request) };
  }
  const { name, uid, providerID, bootID } = node;
  return {
    kind: "Create",
    made: {
      ...freeName(node, (called) => departures.find((one) => one.name === called)),
      node: { name, uid, providerID, bootID },
      cause: "Manual",
      ...request,
      source: "person",
      reason: "Requested",
      message: explain("Requested", { node: name }),
    },
  };
}

/** Drops an earlier deadline that the new instant has passed, since it would force pods. */
function moveOf({ deadlineAt: former }: Departure, request: DepartRequest): DepartureMove {
  const isOver = former !== undefined && former <= request.departAt;
  return { ...request, deadlineAt: request.deadlineAt ?? (isOver ? null : undefined) };
}

/** The deadline once the step is written. */
export function deadlineAfter(step: DepartStep): Instant | undefined {
  if (step.kind === "Create") return step.made.deadlineAt;
  const { deadlineAt } = step.departure;
  if (step.kind === "Leave" || step.to.deadlineAt === undefined) return deadlineAt;
  return step.to.deadlineAt ?? undefined;
}

/** The deadline of an earlier request that the step removes. */
export function droppedDeadline(step: DepartStep): Instant | undefined {
  const isDropped = step.kind === "Move" && step.to.deadlineAt === null;
  return isDropped ? step.departure.deadlineAt : undefined;
}

export function because(
  reason: Reason,
  departure: Departure,
  more: ReasonFacts = {},
): { readonly reason: Reason; readonly explain: string } {
  return { reason, explain: sentenceOf(departure, reason, more) };
}

/** Indexes the departures of a fleet: live ones by node, and those that have started. */
export interface DepartureIndex {
  /** Under way or ended; most departures of a fleet are not due yet. */
  readonly begun: readonly Departure[];
  /** The ended departures, by the uid of the node. */
  readonly former: ReadonlyMap<string, readonly Departure[]>;
  /**
   * The live departure of the node; of several, the most advanced one. Advice and requests count
   * only once they have started.
   */
  of(node: NodeFacts): Departure | undefined;
  /** The first of a person's requests that has not started. */
  requestOf(node: NodeFacts): Departure | undefined;
}

export function indexDepartures(departures: readonly Departure[], at: Instant): DepartureIndex {
  const byUid = new Map<string, Departure>();
  const requests = new Map<string, Departure[]>();
  const begun: Departure[] = [];
  for (const departure of departures) {
    if (isUnderWay(departure)) begun.push(departure);
    if (!isLive(departure) || isWaitingAdvice(departure, at)) continue;
    if (isWaitingRequest(departure)) {
      const former = requests.get(departure.node.uid);
      if (former === undefined) requests.set(departure.node.uid, [departure]);
      else former.push(departure);
      continue;
    }
    const other = byUid.get(departure.node.uid);
    if (other === undefined || urgency(departure) > urgency(other)) {
      byUid.set(departure.node.uid, departure);
    }
  }
  const ended = begun.filter((departure) => !isLive(departure));
  const former = Map.groupBy(ended, (departure) => departure.node.uid);
  return {
    ...{ begun, former },
    of: (node) => byUid.get(node.uid),
    requestOf: (node) => firstRequest(requests.get(node.uid) ?? []),
  };
}

/** The first of a person's requests that have not started, of one node's departures. */
export function firstRequest(departures: readonly Departure[]): Departure | undefined {
  return departures
    .filter(isWaitingRequest)
    .reduce<Departure | undefined>(
      (first, one) => (first === undefined || startOf(one) < startOf(first) ? one : first),
      undefined,
    );
}

/** When a departure is due; never for one that a person holds. */
function startOf({ hold, departAt, createdAt }: Departure): number {
  return hold ? Number.POSITIVE_INFINITY : (departAt ?? createdAt ?? 0);
}

/**
 * The instant of the node's previous plan; undefined if it had none, or if the node has another
 * machine by now, whose lifetime starts over.
 */
export function keptInstant(
  departure: Departure | undefined,
  node: NodeFacts,
): Instant | undefined {
  if (departure === undefined || departure.cause !== "Planned" || isUnderWay(departure)) {
    return undefined;
  }
  return compareIdentity(departure.node, node) === "Same" ? departure.departAt : undefined;
}

export interface NewestStart {
  readonly at: Instant;
  /**
   * The planned or requested instant; undefined if there is none.
   */
  readonly plannedAt: Instant | undefined;
}

/**
 * By policy: the last voluntary start up to `at`. Interruptions do not count, but a start that one
 * has overtaken since does.
 */
export function newestStarts(
  departures: readonly Departure[],
  at: Instant,
): ReadonlyMap<string, NewestStart> {
  const newest = new Map<string, NewestStart>();
  for (const { policy, cause, departAt, noticedAt, status } of departures) {
    const { startedAt } = status;
    if (policy === undefined || startedAt === undefined || startedAt > at) continue;
    const isOvertaken = noticedAt !== undefined && startedAt < noticedAt;
    const wasVoluntary = isVoluntary(cause) || isOvertaken || wasDue(status);
    if (wasVoluntary && startedAt > (newest.get(policy)?.at ?? Number.NEGATIVE_INFINITY)) {
      newest.set(policy, { at: startedAt, plannedAt: departAt });
    }
  }
  return newest;
}

function urgency(departure: Departure): number {
  if (!isVoluntary(departure.cause)) return 2;
  return isUnderWay(departure) ? 1 : 0;
}

/** How long the record of an ended departure is kept. */
const keepEndedMs: Millis = hours(72);

/**
 * The most records kept for one node, however recent: an agent finds a free name among 999 by
 * trying each, and a platform that issues and withdraws notices all day must not use them up.
 */
const mostRecords = 100;

/** Whether to delete the record of an ended departure; `ofNode` are all departures of its node. */
export function isForgettable(
  departure: Departure,
  ofNode: readonly Departure[],
  now: Instant,
): boolean {
  const endedAt = endOf(departure);
  if (endedAt === undefined) return false;
  if (plus(endedAt, keepEndedMs) <= now) return true;
  if (ofNode.length <= mostRecords) return false;
  return ofNode.filter((one) => isNewer(one, departure)).length >= mostRecords;
}

function isNewer(one: Departure, than: Departure): boolean {
  const [a, b] = [endOf(one) ?? 0, endOf(than) ?? 0];
  return a > b || (a === b && one.name > than.name);
}

function endOf({ status }: Departure): Instant | undefined {
  return status.phase === "Ended" ? status.endedAt : undefined;
}
