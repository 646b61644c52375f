import type { ReleaseRequest } from "../../contracts/cloud/instances.ts";
import type { KubeRequest } from "../../contracts/kube-api.ts";
import type { Outcome, Phase } from "../../core/departure/departure.ts";
import { departureAnnotation } from "../../core/notice/interruption.ts";
import type { Cause } from "../../core/policy/action.ts";
import type { Instant } from "../../core/time/time.ts";
import type { ModelObject } from "../api/store/model-object.ts";
import type { ModelStore, StoredChange } from "../api/store/object-store.ts";
import type { MachineEvent } from "../cloud/model-machine.ts";

/** One event of a run; a run is the ordered trace of its events. */
export type TraceEvent =
  /** A write by anybody, reported within it, so the store already has the new state. */
  | {
      readonly kind: "Change";
      readonly at: Instant;
      readonly storage: string;
      readonly change: StoredChange;
    }
  /** A controller is about to write. */
  | {
      readonly kind: "Request";
      readonly at: Instant;
      readonly actor: string;
      readonly request: KubeRequest;
    }
  /** A controller is about to release a machine. */
  | {
      readonly kind: "Release";
      readonly at: Instant;
      readonly actor: string;
      readonly request: ReleaseRequest;
    }
  | { readonly kind: "Cloud"; readonly at: Instant; readonly event: MachineEvent }
  /** The run is over; for what must be true at the end. */
  | { readonly kind: "End"; readonly at: Instant };

/** Sees every event of a run; returns a sentence about the rule that the event broke, if any. */
export type Checker = (event: TraceEvent) => string | undefined;

/** Something that must always be true (docs/demo.md lists them). */
export interface Invariant {
  /** Such as `cordon-before-eviction`. */
  readonly name: string;
  /** Creates a checker for one run; it may read the store, and keeps its own state. */
  readonly check: (store: ModelStore) => Checker;
}

/** A violation of an invariant. */
export interface Violation {
  readonly invariant: string;
  readonly seed: number;
  readonly run: number;
  readonly at: Instant;
  readonly what: string;
}

/** The storage of Departures in the model. */
export const departureStorage = "departures.lastcall.dev";

/** A Departure as stored in the API, typed as far as the model reads it. */
export interface DepartureObject extends ModelObject {
  readonly spec: {
    readonly node: { readonly name: string; readonly uid: string; readonly providerID?: string };
    readonly cause: Cause;
    readonly policy?: string;
    readonly departAt?: string;
    readonly deadlineAt?: string;
    readonly noticedAt?: string;
  };
  readonly status?: {
    readonly phase?: Phase;
    readonly outcome?: Outcome;
    readonly reason?: string;
    readonly message?: string;
    readonly timeline?: readonly { readonly step: string; readonly result: string }[];
  };
}

export function phaseOf(departure: DepartureObject): Phase {
  return departure.status?.phase ?? "Scheduled";
}

/** Whether a departure is voluntary: planned or requested, and without a notice since. */
export function isChosen({ spec }: DepartureObject): boolean {
  const voluntary = spec.cause === "Planned" || spec.cause === "Manual";
  return voluntary && spec.noticedAt === undefined;
}

/** The Departure that a node's marks name, if it exists and is about this Node object. */
export function departureOfNode(store: ModelStore, nodeName: string): DepartureObject | undefined {
  const node = store.collection("nodes").get("", nodeName);
  const mark = node?.metadata.annotations?.[departureAnnotation];
  if (node === undefined || mark === undefined) return undefined;
  const found = store.collection(departureStorage).get("", mark) as DepartureObject | undefined;
  return found?.spec.node.uid === node.metadata.uid ? found : undefined;
}
