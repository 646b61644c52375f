import type { Clock } from "../../contracts/clock.ts";
import type { InstanceReleaser } from "../../contracts/cloud/instances.ts";
import type { KubeApi } from "../../contracts/kube-api.ts";
import { budgetStorage } from "../api/write/pod-budget.ts";
import type { ModelCluster } from "../model-cluster.ts";
import {
  type Checker,
  departureStorage,
  type Invariant,
  type TraceEvent,
  type Violation,
} from "./invariant.ts";

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
