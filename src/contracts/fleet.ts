import type { NodeFacts } from "../core/cluster/node.ts";
import type { GateAnswer } from "../core/departure/decision.ts";
import type { Departure } from "../core/departure/departure.ts";
import type { PolicyCondition, PolicyStatus } from "../core/plan/policy-status.ts";
import type { BadPolicy, Policy } from "../core/policy/policy.ts";
import type { Millis } from "../core/time/time.ts";

/** The watched part of the world: what the controller decides upon. */
export interface FleetView {
  readonly nodes: readonly NodeFacts[];
  readonly policies: readonly Policy[];
  readonly badPolicies: readonly BadPolicy[];
  readonly departures: readonly Departure[];
}

/** What has changed in one turn: nodes by name, departures by uid. */
export interface FleetChange {
  readonly nodes: ReadonlySet<string>;
  readonly departures: ReadonlySet<string>;
  readonly policies: boolean;
}

/**
 * How long a watch has received nothing; a quiet one gets a bookmark about every minute.
 */
export interface WatchSilence {
  readonly kind: "nodes" | "departures" | "policies";
  readonly ms: Millis;
}

/** Watches nodes, policies and departures. Made by `src/kube/fleet.ts`. */
export interface Fleet {
  /**
   * Watches until the signal aborts. Rejects with `LastcallError` where going on is pointless:
   * `CRD_MISSING`, `RIGHT_MISSING`.
   */
  run(signal: AbortSignal): Promise<void>;
  /** Resolves when every watch has had its first complete list. */
  synced(signal: AbortSignal): Promise<void>;
  /** The newest picture; cheap where nothing has changed since the last one. */
  view(): FleetView;
  /** One node of it by name, one departure by uid, and the policies, without the rest. */
  node(name: string): NodeFacts | undefined;
  departure(uid: string): Departure | undefined;
  policies(): readonly Policy[];
  /** The node of a machine, by its providerID or the last part of that. */
  nodeOf(machine: string): NodeFacts | undefined;
  /** The departures that a node has, and had, by the node's uid. */
  departuresOf(nodeUid: string): readonly Departure[];
  /** The departure that has a name, of whichever node. */
  departureNamed(name: string): Departure | undefined;
  /** Calls back after every change, many changes in one turn as one; gives the way to stop it. */
  onChange(listener: (change: FleetChange) => void): () => void;
  /** Of each watch, for health and metrics. */
  silences(): readonly WatchSilence[];
}

/** Asks what the gates of the policies depend upon outside the watched fleet. */
export interface GateSource {
  /**
   * Answers for every one of these policies with such gates; never throws: no answer is `Unknown`.
   * An answer may be some seconds old.
   */
  ask(
    policies: readonly Policy[],
    signal: AbortSignal,
  ): Promise<Readonly<Record<string, GateAnswer>>>;
}

/** Where the status of policies is written; for people's eyes, so that it never fails an act. */
export interface PolicyStatusSink {
  /** Writes what differs from what was written last; policies from a file have no status. */
  write(statuses: readonly PolicyStatus[]): Promise<void>;
  /**
   * Says of these policies, in `Feasible`, that nobody knows; until the next status is written.
   */
  unplanned(policies: readonly string[], problem: string): Promise<void>;
  /** Takes a condition that comes at its own pace; it goes with the status, now and from now on. */
  add(policy: string, condition: PolicyCondition): Promise<void>;
}
