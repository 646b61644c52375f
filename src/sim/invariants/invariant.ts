import type { Clock } from "../../contracts/clock.ts";
import type { InstanceReleaser, ReleaseRequest } from "../../contracts/cloud.ts";
import type { KubeApi, KubeRequest } from "../../contracts/kube-api.ts";
import type { Outcome, Phase } from "../../core/departure/departure.ts";
import { departureAnnotation } from "../../core/notice/interruption.ts";
import type { Cause } from "../../core/policy/action.ts";
import type { Instant } from "../../core/time/time.ts";
import type { ModelObject, ModelStore, StoredChange } from "../api/store/object-store.ts";
import { budgetStorage } from "../api/write/pod-budget.ts";
import type { MachineEvent } from "../cloud/model-machine.ts";
import type { ModelCluster } from "../model-cluster.ts";

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

interface InvariantMonitorOptions {
  readonly cluster: ModelCluster;
  readonly clock: Clock;
  readonly invariants: readonly Invariant[];
  readonly seed: number;
  readonly run: number;
}

const watchedStorages = ["nodes", "pods", budgetStorage, departureStorage];

/** A broken invariant stays broken at every event; the first reports are enough. */
const violationLimit = 20;

/**
 * Observes a run from outside and checks the invariants. It sees every write in the store, the
 * cloud's events, and through `api` and `releaser` every request of each controller; it trusts
 * nothing that a controller reports about itself.
 */
export class InvariantMonitor {
  readonly #options: InvariantMonitorOptions;
  readonly #checkers: readonly { readonly name: string; readonly check: Checker }[];
  readonly #violations: Violation[] = [];
  readonly #unsubscribe: (() => void)[] = [];

  constructor(options: InvariantMonitorOptions) {
    this.#options = options;
    const { cloud, api } = options.cluster;
    const { store } = api.context;
    this.#checkers = options.invariants.map(({ name, check }) => ({ name, check: check(store) }));
    const at = () => options.clock.now();
    for (const storage of watchedStorages) {
      const see = this.#see.bind(this);
      const collection = store.collection(storage);
      this.#unsubscribe.push(
        collection.subscribe((change) => see({ kind: "Change", at: at(), storage, change })),
      );
    }
    this.#unsubscribe.push(
      cloud.subscribe((event) => this.#see({ kind: "Cloud", at: event.at, event })),
    );
  }

  /** The cluster's API as one controller uses it. */
  api(actor: string): KubeApi {
    const { cluster, clock } = this.#options;
    return {
      send: (request) => {
        if (request.method !== "GET") {
          this.#see({ kind: "Request", at: clock.now(), actor, request });
        }
        return cluster.api.send(request);
      },
      watch: (request) => cluster.api.watch(request),
    };
  }

  /** The cloud as one controller uses it. */
  releaser(actor: string): InstanceReleaser {
    const { cluster, clock } = this.#options;
    return {
      describe: (providerID, signal) => cluster.cloud.describe(providerID, signal),
      check: (question, signal) => cluster.cloud.check(question, signal),
      release: (request, signal) => {
        this.#see({ kind: "Release", at: clock.now(), actor, request });
        return cluster.cloud.release(request, signal);
      },
    };
  }

  /** Checks a last time, and returns the violations in order. */
  finish(): readonly Violation[] {
    this.#see({ kind: "End", at: this.#options.clock.now() });
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
    return this.#violations;
  }

  #see(event: TraceEvent): void {
    for (const { name, check } of this.#checkers) {
      const what = check(event);
      if (what === undefined || this.#violations.length >= violationLimit) continue;
      const { seed, run } = this.#options;
      this.#violations.push({ invariant: name, seed, run, at: event.at, what });
    }
  }
}
