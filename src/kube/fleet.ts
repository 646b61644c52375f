import type { Clock } from "../contracts/clock.ts";
import type { Fleet, FleetChange, FleetView, WatchSilence } from "../contracts/cluster.ts";
import type { KubeApi, KubeObject } from "../contracts/kube-api.ts";
import type { Rng } from "../core/chance/chance.ts";
import { nodesOfMachine } from "../core/cluster/machine-name.ts";
import type { NodeFacts } from "../core/cluster/node.ts";
import type { Departure } from "../core/departure/departure.ts";
import type { BadPolicy, Policy } from "../core/policy/policy.ts";
import type { Millis } from "../core/time/time.ts";
import type { LastcallError } from "../errors.ts";
import { departuresPath, nodesPath, policiesPath } from "./object/api-call.ts";
import { translateDeparture } from "./object/translate-departure.ts";
import { translateNode } from "./object/translate-node.ts";
import { ChangeListeners, KeyIndex, type ObjectChange } from "./watch/collection.ts";
import { Reflector } from "./watch/reflector.ts";

/** The result of reading a policy: the policy, or the problem with it. */
export type ClusterPolicyReading = { readonly policy: Policy } | BadPolicy;

export interface KubeFleetOptions {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly rng: Rng;
  /** Reads a DeparturePolicy object. Provided by the command from `config`. */
  readonly readPolicy: (object: KubeObject) => ClusterPolicyReading;
  /** Used instead of the cluster's policies. */
  readonly fixedPolicies?: readonly Policy[] | undefined;
  /** The longest pause after a failed watch; default: that of `backoffMs`. */
  readonly longestPauseMs?: Millis | undefined;
  readonly onError: (error: LastcallError) => void;
}

/** Watches nodes, policies and departures, and keeps only the fields that core reads. */
export class KubeFleet implements Fleet {
  readonly #nodes: Reflector<NodeFacts>;
  readonly #departures: Reflector<Departure | undefined>;
  readonly #policies: Reflector<ClusterPolicyReading> | undefined;
  readonly #fixedPolicies: readonly Policy[];
  readonly #changes = new ChangeListeners();
  readonly #listeners = new Set<(change: FleetChange) => void>();
  readonly #machines = new KeyIndex(machinesOf);
  readonly #departuresByNode = new KeyIndex<Departure>(({ node }) => [node.uid]);
  readonly #departuresByName = new KeyIndex<Departure>(({ name }) => [name]);
  #changed = nothingChanged();
  #view: FleetView | undefined;
  #goodPolicies: readonly Policy[] | undefined;
  #parts: Partial<Pick<FleetView, "nodes" | "departures">> = {};

  constructor(options: KubeFleetOptions) {
    const { api, clock, rng, onError } = options;
    // Rebuilds only what has changed, because in a burst every watch event requests a view.
    const changing = (part: "nodes" | "departures", key: string): void => {
      this.#view = undefined;
      this.#parts = { ...this.#parts, [part]: undefined };
      this.#changed[part].add(key);
      this.#changes.notify();
    };
    this.#changes.listen(() => this.#tellChange());
    const common = { api, clock, rng, onError, longestPauseMs: options.longestPauseMs };
    this.#nodes = new Reflector({
      ...common,
      path: nodesPath,
      keyBy: "name",
      translate: translateNode,
      onChange: (change) => {
        this.#machines.change(change.before, itemOf(change));
        changing("nodes", change.key);
      },
      // A node is ten kilobytes of JSON or more: small pages limit the memory peak of a list.
      pageLimit: 100,
    });
    this.#departures = new Reflector({
      ...common,
      path: departuresPath,
      translate: translateDeparture,
      onChange: (change) => {
        this.#departuresByNode.change(change.before, itemOf(change));
        this.#departuresByName.change(change.before, itemOf(change));
        changing("departures", change.key);
      },
    });
    this.#fixedPolicies = options.fixedPolicies ?? [];
    if (options.fixedPolicies !== undefined) return;
    this.#policies = new Reflector({
      ...common,
      path: policiesPath,
      translate: options.readPolicy,
      onChange: () => {
        this.#view = undefined;
        this.#goodPolicies = undefined;
        this.#changed.policies = true;
        this.#changes.notify();
      },
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    // A watch that fails for good ends the others, because an incomplete view must not be acted on.
    const own = new AbortController();
    const stop = AbortSignal.any([signal, own.signal]);
    const watches = this.#all().map((watch) => watch.run(stop));
    try {
      await Promise.all(watches);
    } finally {
      own.abort();
      await Promise.allSettled(watches);
    }
  }

  async synced(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    await Promise.all(this.#all().map((watch) => watch.synced));
  }

  view(): FleetView {
    this.#view ??= this.#makeView();
    return this.#view;
  }

  node(name: string): NodeFacts | undefined {
    return this.#nodes.items().get(name);
  }

  departure(uid: string): Departure | undefined {
    return this.#departures.items().get(uid);
  }

  policies(): readonly Policy[] {
    this.#goodPolicies ??= [
      ...this.#fixedPolicies,
      ...this.#readings().flatMap((one) => ("policy" in one ? one.policy : [])),
    ];
    return this.#goodPolicies;
  }

  nodesOf(machine: string): readonly NodeFacts[] {
    return nodesOfMachine(this.#machines.of(machine));
  }

  departuresOf(nodeUid: string): readonly Departure[] {
    return this.#departuresByNode.of(nodeUid);
  }

  departureNamed(name: string): Departure | undefined {
    return this.#departuresByName.of(name)[0];
  }

  onChange(listener: (change: FleetChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  silences(): readonly WatchSilence[] {
    const always = [
      { kind: "nodes", ms: this.#nodes.silentMs() },
      { kind: "departures", ms: this.#departures.silentMs() },
    ] as const;
    if (this.#policies === undefined) return always;
    return [...always, { kind: "policies", ms: this.#policies.silentMs() }];
  }

  #all(): readonly (
    | Reflector<NodeFacts>
    | Reflector<Departure | undefined>
    | Reflector<ClusterPolicyReading>
  )[] {
    const always = [this.#nodes, this.#departures];
    return this.#policies === undefined ? always : [...always, this.#policies];
  }

  #tellChange(): void {
    const change = this.#changed;
    this.#changed = nothingChanged();
    for (const listener of this.#listeners) listener(change);
  }

  #readings(): readonly ClusterPolicyReading[] {
    return [...(this.#policies?.items().values() ?? [])];
  }

  #makeView(): FleetView {
    const {
      nodes = [...this.#nodes.items().values()],
      departures = [...this.#departures.items().values()].filter((one) => one !== undefined),
    } = this.#parts;
    this.#parts = { nodes, departures };
    return {
      nodes,
      departures,
      policies: this.policies(),
      badPolicies: this.#readings().flatMap((one) => ("problem" in one ? one : [])),
    };
  }
}

function nothingChanged() {
  return { nodes: new Set<string>(), departures: new Set<string>(), policies: false };
}

/** The item of a change; undefined if it was deleted. */
function itemOf<T>(change: ObjectChange<T>): T | undefined {
  return change.kind === "Set" ? change.item : undefined;
}

/** The index keys of a node: its providerID, and the last segment of it. */
function machinesOf({ providerID = "" }: NodeFacts): readonly string[] {
  const last = providerID.slice(providerID.lastIndexOf("/") + 1);
  return [...new Set([providerID, last])].filter((name) => name !== "");
}
