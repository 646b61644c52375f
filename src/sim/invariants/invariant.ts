import type { ReleaseRequest } from "../../contracts/cloud/instances.ts";
import type { KubeRequest } from "../../contracts/kube-api.ts";
import type { Instant } from "../../core/time/time.ts";
import type { ModelStore, StoredChange } from "../api/store/object-store.ts";
import type { MachineEvent } from "../cloud/model-machine.ts";

/** One event of a run; a run is the trace of them, in order. */
export type TraceEvent =
  /** A write, by anybody; within it, so the store holds the new state already. */
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
  /** The run is over; for what must be true in the end. */
  | { readonly kind: "End"; readonly at: Instant };

/** Sees every event of a run; gives the sentence that says which rule the event broke, if any. */
export type Checker = (event: TraceEvent) => string | undefined;

/** Something that must always be true (docs/demo.md lists them). */
export interface Invariant {
  /** Such as `cordon-before-eviction`. */
  readonly name: string;
  /** Makes a checker for one run; it may read the store, and keeps what it has to remember. */
  readonly check: (store: ModelStore) => Checker;
}

/** An invariant that was broken. */
export interface Violation {
  readonly invariant: string;
  readonly seed: number;
  readonly run: number;
  readonly at: Instant;
  readonly what: string;
}
