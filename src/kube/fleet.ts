import type { Clock } from "../contracts/clock.ts";
import type {
  Fleet,
  FleetChange,
  FleetView,
  GateSource,
  WatchSilence,
} from "../contracts/cluster.ts";
import type { KubeApi, KubeObject, KubeSender } from "../contracts/kube-api.ts";
import type { Rng } from "../core/chance/chance.ts";
import type { NodeFacts } from "../core/cluster/node.ts";
import type { LabelRequirement, LabelSelector } from "../core/cluster/pod.ts";
import type { GateAnswer } from "../core/departure/decision.ts";
import type { Departure } from "../core/departure/departure.ts";
import type { BadPolicy, Gates, Policy } from "../core/policy/policy.ts";
import { type Millis, seconds } from "../core/time/time.ts";
import { isLastcallError, LastcallError } from "../errors.ts";
import { departuresPath, nodesPath, podsPath, policiesPath } from "./object/api-call.ts";
import { translateDeparture } from "./object/translate-departure.ts";
import { translateNode } from "./object/translate-node.ts";
import { ChangeListeners, KeyIndex, listAll, type ObjectChange } from "./watch/collection.ts";
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

  nodeOf(machine: string): NodeFacts | undefined {
    return this.#machines.of(machine)[0];
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

export interface KubeGateSourceOptions {
  readonly api: KubeApi;
  readonly clock: Pick<Clock, "monotonic" | "sleep">;
  readonly firingAlerts: (
    question: NonNullable<Gates["alerts"]>,
    signal: AbortSignal,
  ) => Promise<readonly string[]>;
  readonly onError: (error: unknown) => void;
}

/** How long an answer is reused: in a busy fleet there are several passes a second. */
const freshMs = 5_000;

/**
 * The timeout of a list, which holds up the plans of all policies: after it, the gate is closed.
 */
const answerLimitMs: Millis = seconds(5);

interface Kept {
  readonly atMs: number;
  readonly answer: Promise<unknown>;
}

/**
 * Queries Alertmanager and lists blocking pods, for the policies that have such gates. The same
 * query is sent at most once in five seconds, whatever the result.
 */
export class KubeGateSource implements GateSource {
  readonly #options: KubeGateSourceOptions;
  #kept: ReadonlyMap<string, Kept> = new Map();

  constructor(options: KubeGateSourceOptions) {
    this.#options = options;
  }

  async ask(
    policies: readonly Policy[],
    signal: AbortSignal,
  ): Promise<Readonly<Record<string, GateAnswer>>> {
    const gated = policies.filter(
      ({ gates }) => gates.alerts !== undefined || gates.blockingPods.length > 0,
    );
    const asked = new Map<string, Kept>();
    const once: Once = (key, ask) => {
      const kept = asked.get(key) ?? this.#fresh(key) ?? this.#ask(ask);
      asked.set(key, kept);
      return kept.answer as ReturnType<typeof ask>;
    };
    const answers = await Promise.all(
      gated.map(
        async ({ name, gates }) => [name, await this.#answer(gates, once, signal)] as const,
      ),
    );
    // Forgets the answers to queries that no policy uses any more.
    this.#kept = asked;
    return Object.fromEntries(answers);
  }

  #fresh(key: string): Kept | undefined {
    const kept = this.#kept.get(key);
    const isFresh = kept && this.#options.clock.monotonic() - kept.atMs < freshMs;
    return isFresh ? kept : undefined;
  }

  #ask(ask: () => Promise<unknown>): Kept {
    return { atMs: this.#options.clock.monotonic(), answer: ask() };
  }

  async #answer(gates: Gates, once: Once, signal: AbortSignal): Promise<GateAnswer> {
    const { alerts: question } = gates;
    const [alerts, blockingPods] = await Promise.all([
      question === undefined
        ? []
        : once(`alerts ${JSON.stringify(question)}`, () =>
            this.#options.firingAlerts(question, signal).catch(this.#alertsUnknown),
          ),
      this.#blockingPods(gates.blockingPods, once),
    ]);
    return { alerts, blockingPods };
  }

  /** Fails closed: a gate that could not be checked counts as closed. */
  readonly #unknown = (error: unknown): "Unknown" => {
    this.#options.onError(error);
    return "Unknown";
  };

  readonly #alertsUnknown = (error: unknown): "Unknown" | "NotAllowed" => {
    const unknown = this.#unknown(error);
    const isForbidden = isLastcallError(error) && error.code === "ACTION_HOST_FORBIDDEN";
    return isForbidden ? "NotAllowed" : unknown;
  };

  async #blockingPods(
    selectors: readonly LabelSelector[],
    once: Once,
  ): Promise<GateAnswer["blockingPods"]> {
    const lists = await Promise.all(
      selectors.map((selector) => {
        const labelSelector = selectorText(selector);
        return once(`pods ${labelSelector}`, () => this.#placesOf(labelSelector));
      }),
    );
    const known = lists.filter((one) => one !== "Unknown");
    return known.length < lists.length ? "Unknown" : new Map(known.flat());
  }

  async #placesOf(labelSelector: string): Promise<readonly Place[] | "Unknown"> {
    const { api, clock } = this.#options;
    const fieldSelector = "status.phase!=Succeeded,status.phase!=Failed";
    const over = new AbortController();
    const { signal } = over;
    const late = clock.sleep(answerLimitMs, signal).then(() => {
      const asked = `Cannot list the pods that match ${labelSelector}, which hold departures back`;
      const limit = `${answerLimitMs / 1000} s`;
      throw new LastcallError(
        "API_UNREACHABLE",
        `${asked}: the API server did not respond within ${limit}`,
      );
    });
    const timed: KubeSender = { send: (request) => api.send({ ...request, signal }) };
    try {
      const listed = listAll(timed, podsPath, { labelSelector, fieldSelector });
      return (await Promise.race([late, listed])).flatMap(placeOf);
    } catch (error) {
      return this.#unknown(error);
    } finally {
      over.abort();
      late.catch(() => undefined);
    }
  }
}

/** Returns a recent answer to the same query, or sends the query. */
type Once = <Answer>(key: string, ask: () => Promise<Answer>) => Promise<Answer>;

type Place = readonly [node: string, pod: string];

/** The node and the full name of a pod; empty if the pod is not scheduled. */
function placeOf({ metadata, spec }: KubeObject): readonly Place[] {
  const node = (spec as { nodeName?: string } | undefined)?.nodeName;
  if (node === undefined) return [];
  return [[node, `${metadata?.namespace ?? ""}/${metadata?.name ?? ""}`]];
}

/** A label selector as a query parameter: `a=b,c in (d,e),!f`. */
function selectorText(selector: LabelSelector): string {
  const exact = Object.entries(selector.matchLabels ?? {}).map(([key, value]) => `${key}=${value}`);
  const expressions = (selector.matchExpressions ?? []).map(requirementText);
  return [...exact, ...expressions].join(",");
}

function requirementText({ key, operator, values = [] }: LabelRequirement): string {
  switch (operator) {
    case "Exists":
      return key;
    case "DoesNotExist":
      return `!${key}`;
    case "In":
    case "NotIn":
      return `${key} ${operator.toLowerCase()} (${values.join(",")})`;
    case "Gt":
      return `${key}>${values[0]}`;
    case "Lt":
      return `${key}<${values[0]}`;
  }
}
