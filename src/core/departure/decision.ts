import type { NodeFacts, NodeIdentity } from "../cluster/node.ts";
import type { Cause } from "../policy/cause.ts";
import type { BadPolicy, Policy } from "../policy/policy.ts";
import type { ReleasabilityQuestion, ReleaseAnswers } from "../policy/release-answer.ts";
import type { Reason } from "../reason/reason.ts";
import type { Instant } from "../time/time.ts";
import type { Departure } from "./departure.ts";
import type { PhaseEvent } from "./phase.ts";

/** The world as one decision sees it. */
export interface Snapshot {
  readonly nodes: readonly NodeFacts[];
  readonly policies: readonly Policy[];
  readonly departures: readonly Departure[];
  /** Policies that could not be read: nodes that they might own are left alone. */
  readonly badPolicies: readonly BadPolicy[];
  /**
   * Gates whose answer comes from outside, per policy; absent: not asked, which counts as closed.
   */
  readonly gateAnswers: Readonly<Record<string, GateAnswer>>;
  /** What the clouds say of the machines; a node that is not in it is not made to leave by plan. */
  readonly releaseAnswers: ReleaseAnswers;
}

export interface GateAnswer {
  /**
   * Firing alerts that the policy's matchers select; `Unknown` when Alertmanager did not answer.
   */
  readonly alerts: readonly string[] | "Unknown";
  /**
   * A blocking pod as `namespace/name` by the node on which it runs; `Unknown` when the pods could
   * not be listed.
   */
  readonly blockingPods: ReadonlyMap<string, string> | "Unknown";
}

/** A Departure that is to be made. */
export interface NewDeparture {
  readonly name: string;
  /** Names of the node's that departures of other nodes have; gone round, and worth a warning. */
  readonly namesTaken?: readonly string[] | undefined;
  readonly node: NodeIdentity;
  readonly cause: Cause;
  readonly departAt?: Instant | undefined;
  readonly deadlineAt?: Instant | undefined;
  readonly noticedAt?: Instant | undefined;
  /** The notice was off before anything was done about it. */
  readonly withdrawnAt?: Instant | undefined;
  readonly source: string;
  readonly policy?: string | undefined;
  readonly reason: Reason;
  /** The reason's sentence. */
  readonly message: string;
}

interface Reasoned {
  readonly reason: Reason;
  /** The one sentence of the reason: log, Event, CLI and board show the same. */
  readonly explain: string;
}

/** What is to be done next about one node or departure; "nothing" is a decision too. */
export type Decision = Reasoned &
  (
    | { readonly kind: "Schedule"; readonly order: NewDeparture }
    | {
        readonly kind: "Move";
        readonly departure: Departure;
        readonly departAt: Instant;
        readonly deadlineAt?: Instant | undefined;
        /** The one that its node falls under now. */
        readonly policy?: string | undefined;
      }
    /** Its time has come. */
    | {
        readonly kind: "Begin";
        readonly departure: Departure;
        readonly event: "Due";
        readonly detail?: string | undefined;
      }
    /** Something changes a departure that has not begun: held, free again, or over. */
    | {
        readonly kind: "Note";
        readonly departure: Departure;
        readonly event: Extract<
          PhaseEvent,
          "Blocked" | "Unblocked" | "Cancelled" | "Withdrawn" | "NodeGone" | "MachineReplaced"
        >;
        readonly detail?: string | undefined;
        /** When the hold ends, where that is known. */
        readonly until?: Instant | undefined;
      }
    /** Under way: the leader continues it. */
    | { readonly kind: "Continue"; readonly departure: Departure }
    /** A node bears our mark, but no live departure says why. */
    | { readonly kind: "ClearOrphan"; readonly node: NodeFacts; readonly departure: string }
    | { readonly kind: "Forget"; readonly departure: Departure }
    | { readonly kind: "Leave"; readonly node: NodeFacts }
  );

export interface Verdict {
  readonly decisions: readonly Decision[];
  /** When to ask again although nothing has changed. */
  readonly askAgainAt?: Instant | undefined;
  /**
   * The machines that nothing else keeps from leaving now: their clouds are to be asked about them.
   */
  readonly asks: readonly ReleasabilityQuestion[];
}
