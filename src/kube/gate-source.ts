import type { Clock } from "../contracts/clock.ts";
import type { GateSource } from "../contracts/cluster.ts";
import type { KubeApi, KubeObject, KubeSender } from "../contracts/kube-api.ts";
import { type GangPod, gangLabels, gangsByNode } from "../core/cluster/gang.ts";
import type { LabelRequirement, LabelSelector } from "../core/cluster/pod.ts";
import type { GateAnswer } from "../core/departure/decision.ts";
import { asksOutside } from "../core/limits/gate.ts";
import type { Gates, Policy } from "../core/policy/policy.ts";
import { type Millis, seconds } from "../core/time/time.ts";
import { isLastcallError, LastcallError } from "../errors.ts";
import { podsPath } from "./object/api-call.ts";
import { listAll } from "./watch/collection.ts";

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
const freshMs: Millis = seconds(5);
/** Workloads on several nodes seldom change, and the lists for them are several. */
const gangFreshMs: Millis = seconds(30);

/**
 * The timeout of a list, which holds up the plans of all policies: after it, the gate is closed.
 */
const answerLimitMs: Millis = seconds(5);

/**
 * From the API server's cache in any version: a page, or a list without this, is read from etcd
 * with all pods of the cluster before Kubernetes 1.31 (KEP-2340).
 */
const fromCache = { resourceVersion: "0" } as const;

/** A constant abort reason: the default one captures a stack trace each time. */
const answered = "answered";

interface KeptAnswer {
  readonly atMs: number;
  readonly answer: Promise<unknown>;
}

/**
 * Queries Alertmanager and lists blocking pods, for the policies that have such gates. The same
 * query is sent at most once in five seconds, whatever the result.
 */
export class KubeGateSource implements GateSource {
  readonly #options: KubeGateSourceOptions;
  #kept: ReadonlyMap<string, KeptAnswer> = new Map();

  constructor(options: KubeGateSourceOptions) {
    this.#options = options;
  }

  async ask(
    policies: readonly Policy[],
    signal: AbortSignal,
  ): Promise<Readonly<Record<string, GateAnswer>>> {
    const gated = policies.filter(asksOutside);
    const asked = new Map<string, KeptAnswer>();
    const once: Once = (key, ask, forMs = freshMs) => {
      const kept = asked.get(key) ?? this.#fresh(key, forMs) ?? this.#ask(ask);
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

  #fresh(key: string, forMs: Millis): KeptAnswer | undefined {
    const kept = this.#kept.get(key);
    const isFresh = kept && this.#options.clock.monotonic() - kept.atMs < forMs;
    return isFresh ? kept : undefined;
  }

  #ask(ask: () => Promise<unknown>): KeptAnswer {
    return { atMs: this.#options.clock.monotonic(), answer: ask() };
  }

  async #answer(gates: Gates, once: Once, signal: AbortSignal): Promise<GateAnswer> {
    const { alerts: question } = gates;
    const [alerts, blockingPods, gangs] = await Promise.all([
      question === undefined
        ? []
        : once(`alerts ${JSON.stringify(question)}`, () =>
            this.#options.firingAlerts(question, signal).catch(this.#alertsUnknown),
          ),
      this.#blockingPods(gates.blockingPods, once),
      gates.gangWorkloads === "Hold" ? this.#gangs(once) : new Map(),
    ]);
    return { alerts, blockingPods, gangs };
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
        return once(`pods ${labelSelector}`, () => this.#podsOf(labelSelector));
      }),
    );
    const pods = allKnown(lists);
    return pods === "Unknown" ? pods : new Map(pods.flatMap(placeOf));
  }

  /** A label selector cannot name one label or another, so there is a list for each. */
  async #gangs(once: Once): Promise<GateAnswer["gangs"]> {
    const lists = await Promise.all(
      gangLabels.map((label) =>
        once(`gangs ${label}`, () => this.#podsOf(label, fromCache), gangFreshMs),
      ),
    );
    const pods = allKnown(lists);
    return pods === "Unknown" ? pods : gangsByNode(pods.flatMap(gangPodOf));
  }

  async #podsOf(
    labelSelector: string,
    more: Readonly<Record<string, string>> = {},
  ): Promise<readonly KubeObject[] | "Unknown"> {
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
      const query = { labelSelector, fieldSelector, ...more };
      const limit = more === fromCache ? "None" : undefined;
      return await Promise.race([late, listAll(timed, podsPath, query, limit)]);
    } catch (error) {
      return this.#unknown(error);
    } finally {
      over.abort(answered);
      late.catch(() => undefined);
    }
  }
}

/** Returns a recent answer to the same query, or sends the query. */
type Once = <Answer>(key: string, ask: () => Promise<Answer>, forMs?: Millis) => Promise<Answer>;

/** All pods of several lists; unknown if one of them is. */
function allKnown(
  lists: readonly (readonly KubeObject[] | "Unknown")[],
): readonly KubeObject[] | "Unknown" {
  const known = lists.filter((one) => one !== "Unknown");
  return known.length < lists.length ? "Unknown" : known.flat();
}

type GatePlace = readonly [node: string, pod: string];

/** The node and the full name of a pod; empty if the pod is not scheduled. */
function placeOf({ metadata, spec }: KubeObject): readonly GatePlace[] {
  const node = (spec as { nodeName?: string } | undefined)?.nodeName;
  if (node === undefined) return [];
  return [[node, `${metadata?.namespace ?? ""}/${metadata?.name ?? ""}`]];
}

/** Empty if the pod is not scheduled, or is a part of no workload on several nodes. */
function gangPodOf({ metadata, spec }: KubeObject): readonly GangPod[] {
  const node = (spec as { nodeName?: string } | undefined)?.nodeName;
  if (node === undefined) return [];
  const { namespace = "", labels = {}, annotations = {} } = metadata ?? {};
  return [{ node, namespace, labels, annotations }];
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
