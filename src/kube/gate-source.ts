import type { Clock } from "../contracts/clock.ts";
import type { GateSource } from "../contracts/cluster.ts";
import type { KubeApi, KubeObject, KubeSender } from "../contracts/kube-api.ts";
import { withinTime } from "../contracts/time-limit.ts";
import {
  type Gang,
  type GangPod,
  gangOf,
  gangsByNode,
  isElastic,
  type SpreadGang,
  schedulingGroupOf,
  spreadGangs,
} from "../core/cluster/gang.ts";
import type { LabelRequirement, LabelSelector } from "../core/cluster/pod.ts";
import type { GateAnswer, GateInquiry } from "../core/departure/decision.ts";
import { type Fields, fieldsOf } from "../core/json/json-field.ts";
import { asksOutside } from "../core/limits/gate.ts";
import type { Gates } from "../core/policy/policy.ts";
import { type Millis, seconds } from "../core/time/time.ts";
import { isLastcallError, LastcallError } from "../errors.ts";
import { objectPath, podsPath } from "./object/api-call.ts";
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
/** Workloads on several nodes seldom change, and there is a list for each node that is due. */
const gangFreshMs: Millis = seconds(30);
/** How many of these requests are sent at once. */
const asksAtOnce = 8;

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
  readonly untilMs: number;
  readonly answer: Promise<unknown>;
}

/**
 * Queries Alertmanager and lists blocking pods, for the policies that have such gates. The same
 * query is sent at most once in five seconds, whatever the result.
 */
export class KubeGateSource implements GateSource {
  readonly #options: KubeGateSourceOptions;
  readonly #kept = new Map<string, KeptAnswer>();

  constructor(options: KubeGateSourceOptions) {
    this.#options = options;
  }

  async ask(
    inquiries: readonly GateInquiry[],
    signal: AbortSignal,
  ): Promise<Readonly<Record<string, GateAnswer>>> {
    const nowMs = this.#options.clock.monotonic();
    for (const [key, { untilMs }] of this.#kept) if (untilMs <= nowMs) this.#kept.delete(key);
    const gated = inquiries.filter(({ policy }) => asksOutside(policy));
    const answers = await Promise.all(
      gated.map(async (one) => [one.policy.name, await this.#answer(one, signal)] as const),
    );
    return Object.fromEntries(answers);
  }

  /** Returns a recent answer to the same query, or sends the query. */
  #once<Answer>(key: string, ask: () => Promise<Answer>, forMs: Millis = freshMs): Promise<Answer> {
    const nowMs = this.#options.clock.monotonic();
    const kept = this.#kept.get(key);
    if (kept !== undefined && nowMs < kept.untilMs) return kept.answer as Promise<Answer>;
    const answer = ask();
    this.#kept.set(key, { untilMs: nowMs + forMs, answer });
    return answer;
  }

  async #answer({ policy, nodes }: GateInquiry, signal: AbortSignal): Promise<GateAnswer> {
    const gates: Gates = policy.gates;
    const { alerts: question } = gates;
    const [alerts, blockingPods, gangs] = await Promise.all([
      question === undefined
        ? []
        : this.#once(`alerts ${JSON.stringify(question)}`, () =>
            this.#options.firingAlerts(question, signal).catch(this.#alertsUnknown),
          ),
      this.#blockingPods(gates.blockingPods),
      gates.gangWorkloads === "Hold" ? this.#gangs(nodes) : new Map(),
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

  async #blockingPods(selectors: readonly LabelSelector[]): Promise<GateAnswer["blockingPods"]> {
    const lists = await Promise.all(
      selectors.map((selector) => {
        const labelSelector = selectorText(selector);
        const what = `the pods that match ${labelSelector}`;
        return this.#once(`pods ${labelSelector}`, () =>
          this.#list({ what, path: podsPath, query: { labelSelector }, pick: placeOf }),
        );
      }),
    );
    const places = allKnown(lists);
    return places === "Unknown" ? places : new Map(places);
  }

  /**
   * Of some workloads on several nodes only an annotation or the spec of their pods tells, by which
   * no list can select. So the pods of the nodes are listed, and then those of the workloads.
   */
  async #gangs(nodes: readonly string[]): Promise<GateAnswer["gangs"]> {
    const onNodes = await this.#eachGang(nodes, (node) => ({
      what: `the pods of node ${node}`,
      path: podsPath,
      query: { fieldSelector: `spec.nodeName=${node}` },
    }));
    if (onNodes === "Unknown") return onNodes;
    const places = new Map(
      onNodes.flatMap((pod) => gangOf(pod) ?? []).map((gang) => [placeText(gang), gang]),
    );
    const members = await this.#eachGang([...places.values()], ({ namespace, label }) => ({
      what: `the pods of namespace ${namespace}`,
      path: `/api/v1/namespaces/${namespace}/pods`,
      query: label === undefined ? {} : { labelSelector: label },
    }));
    if (members === "Unknown") return members;
    const due = new Set(nodes);
    const spread = spreadGangs([...onNodes, ...members]).filter(
      (one) => !one.nodes.isDisjointFrom(due),
    );
    const found = gangsByNode(await this.#withoutLoose(spread));
    return new Map(nodes.map((node) => [node, found.get(node)]));
  }

  /**
   * Without those whose object says that they go on without a pod. One that cannot be read counts
   * as ending: the controller may lack the right, and a pod may name what does not exist. After one
   * without a response, no other is asked for: the plans of all policies wait.
   */
  async #withoutLoose(gangs: readonly SpreadGang[]): Promise<readonly SpreadGang[]> {
    let answers = true;
    const kept = await inTurns(gangs, async (one) => {
      const { namespace, object } = one.gang;
      if (object === undefined || !answers) return one;
      const { kind, name } = object;
      const path = objectPath(kind, namespace, name);
      const spec = await this.#once(`gangs ${path}`, () => this.#specOf(path), gangFreshMs);
      if (spec === undefined) answers = false;
      return kind.goesOn(spec ?? {}) ? undefined : one;
    });
    return kept.filter((one) => one !== undefined);
  }

  /** The spec of an object; empty if it is refused, undefined without a response. */
  async #specOf(path: string): Promise<Fields | undefined> {
    const { api, clock } = this.#options;
    const late = () => new Error("late");
    const limit = { clock, limitMs: answerLimitMs, late };
    const ask = (signal: AbortSignal) => api.send({ method: "GET", path, signal });
    const answer = await withinTime(ask, limit).catch(() => undefined);
    if (answer === undefined) return undefined;
    return answer.status === 200 ? fieldsOf(fieldsOf(answer.body).spec) : {};
  }

  /** Stops at the first list that fails, since all of them are needed. */
  async #eachGang<Place>(
    places: readonly Place[],
    listOf: (place: Place) => Omit<PodList<GangPod>, "pick">,
  ): Promise<readonly GangPod[] | "Unknown"> {
    let isKnown = true;
    const found = await inTurns(places, async (place) => {
      if (!isKnown) return "Unknown";
      const list = listOf(place);
      const { path, query } = list;
      const pods = await this.#once(
        `gangs ${path} ${JSON.stringify(query)}`,
        () => this.#list({ ...list, query: { ...query, ...fromCache }, pick: gangPodOf }),
        gangFreshMs,
      );
      if (pods === "Unknown") isKnown = false;
      return pods;
    });
    return allKnown(found);
  }

  async #list<Item>({
    what,
    path,
    query,
    pick,
  }: PodList<Item>): Promise<readonly Item[] | "Unknown"> {
    const { api, clock } = this.#options;
    const running = "status.phase!=Succeeded,status.phase!=Failed";
    const fieldSelector =
      query.fieldSelector === undefined ? running : `${query.fieldSelector},${running}`;
    const over = new AbortController();
    const { signal } = over;
    const late = clock.sleep(answerLimitMs, signal).then(() => {
      const asked = `Cannot list ${what}, which hold departures back`;
      const limit = `${answerLimitMs / 1000} s`;
      throw new LastcallError(
        "API_UNREACHABLE",
        `${asked}: the API server did not respond within ${limit}`,
      );
    });
    const timed: KubeSender = { send: (request) => api.send({ ...request, signal }) };
    try {
      const limit = query.resourceVersion === undefined ? undefined : "None";
      const list = listAll(timed, path, { ...query, fieldSelector }, limit);
      return (await Promise.race([late, list])).flatMap(pick);
    } catch (error) {
      return this.#unknown(error);
    } finally {
      over.abort(answered);
      late.catch(() => undefined);
    }
  }
}

/** The results for all items, of which a few are worked on at once. */
async function inTurns<Item, Result>(
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<readonly Result[]> {
  const queue = items.values();
  const found: Result[] = [];
  const worker = async (): Promise<void> => {
    for (const item of queue) found.push(await work(item));
  };
  await Promise.all(Array.from({ length: asksAtOnce }, worker));
  return found;
}

interface PodList<Item> {
  /** For the error of a list without a response. */
  readonly what: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  /** What is kept of a pod, if anything. */
  readonly pick: (pod: KubeObject) => readonly Item[];
}

/** Where the pods of a workload are listed, for all of its kind together. */
function placeText({ namespace, label = "" }: Gang): string {
  return `${namespace} ${label}`;
}

/** The items of several lists; unknown if one of them is. */
function allKnown<Item>(
  lists: readonly (readonly Item[] | "Unknown")[],
): readonly Item[] | "Unknown" {
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
  const fields = fieldsOf(spec);
  const schedulingGroup = schedulingGroupOf(fields);
  const marks = { namespace, labels, annotations, schedulingGroup };
  const pod = { ...marks, node, isElastic: isElastic(fields) };
  return gangOf(pod) === undefined ? [] : [pod];
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
