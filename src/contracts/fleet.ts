import type { NodeFacts } from "../core/cluster/node.ts";
import type { GateAnswer } from "../core/departure/decision.ts";
import type { Departure } from "../core/departure/departure.ts";
import type { PolicyCondition, PolicyStatus } from "../core/plan/policy-status.ts";
import type { BadPolicy, Policy } from "../core/policy/policy.ts";
import type { Millis } from "../core/time/time.ts";

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
  /** The node of a machine, by its providerID or the last segment of it. */
  nodeOf(machine: string): NodeFacts | undefined;
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
    policies: readonly Policy[],
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
