import type { NodeFacts, NodeIdentity } from "../cluster/node.ts";
import type { Cause } from "../policy/action.ts";
import type { BadPolicy, Policy } from "../policy/policy.ts";
import type { ReleasabilityQuestion, ReleaseAnswers } from "../policy/release-answer.ts";
import { explain, type Reason } from "../reason/reason.ts";
import type { Instant } from "../time/time.ts";
import { type Departure, freeName, isLive, isNoticed, isUnderWay } from "./departure.ts";
import type { PhaseEvent } from "./ledger.ts";

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
}

export interface GateAnswer {
  /**
   * The firing alerts that the policy's matchers select; `Unknown` if Alertmanager did not respond.
   */
  readonly alerts: readonly string[] | "Unknown";
  /**
   * A blocking pod as `namespace/name` for each node; `Unknown` if the pods could not be listed.
   */
  readonly blockingPods: ReadonlyMap<string, string> | "Unknown";
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
    /** A departure under way, which the leader resumes. */
    | { readonly kind: "Continue"; readonly departure: Departure }
    /** The node carries our marks without a live departure. */
    | { readonly kind: "ClearOrphan"; readonly node: NodeFacts; readonly departure: string }
    | { readonly kind: "Forget"; readonly departure: Departure }
    | { readonly kind: "Leave"; readonly node: NodeFacts }
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
