import type { Clock } from "../../contracts/clock.ts";
import type {
  FollowedPods,
  FollowOptions,
  LeaveOptions,
  MarkDisruptedOptions,
  NodePods,
  RestartOptions,
} from "../../contracts/cluster.ts";
import type {
  KubeAnswer,
  KubeApi,
  KubeObject,
  KubeRequest,
  KubeSender,
} from "../../contracts/kube-api.ts";
import type {
  BudgetFacts,
  FailedPod,
  OwnerFacts,
  PodFacts,
  PodIdentity,
} from "../../core/cluster/pod.ts";
import type { EvictionAnswer } from "../../core/drain/drain-answer.ts";
import { fieldsOf, listOf, textOf, wholeNumberOf } from "../../core/json/json-field.ts";
import { type Millis, millis } from "../../core/time/time.ts";
import { messageOf } from "../../errors.ts";
import { apiError, budgetsPath, podsPath } from "../object/api-call.ts";
import { translateBudget, translateFailedPod, translatePod } from "../object/translate-pod.ts";
import { ChangeListeners, listAll, listPages } from "../watch/collection.ts";
import { Reflector, type SharedReflectorOptions } from "../watch/reflector.ts";
import { deletePod, evictPod, markDisrupted } from "./evict.ts";

/** The pod for which an owner was restarted. The same pod does not restart it a second time. */
const restartedFor = "lastcall.dev/restarted-for";

/** How long a deletion under a deadline waits for the pod to be marked. */
const markWaitMs: Millis = millis(500);

/** How long drains that start one after another share a list of budgets. */
const budgetsKeptMs = 1000;

interface SharedBudgets {
  readonly askedMs: number;
  readonly list: Promise<readonly BudgetFacts[]>;
}

/** The pods of one node at a time: listed and watched by `spec.nodeName`, never cluster-wide. */
export class KubeNodePods implements NodePods {
  readonly #api: KubeApi;
  readonly #clock: Clock;
  readonly #tools: SharedReflectorOptions;
  #budgets: SharedBudgets | undefined;

  constructor(tools: SharedReflectorOptions) {
    this.#api = tools.api;
    this.#clock = tools.clock;
    this.#tools = tools;
  }

  async list(nodeName: string): Promise<readonly PodFacts[]> {
    return listPodsOn(this.#api, nodeName);
  }

  async failed(nodeName: string | undefined, signal: AbortSignal): Promise<readonly FailedPod[]> {
    const place = nodeName === undefined ? [] : [`spec.nodeName=${nodeName}`];
    const fieldSelector = [...place, "status.phase=Failed"].join(",");
    const found: FailedPod[] = [];
    // Yields to all other requests, and keeps one page at a time of what may be thousands of pods.
    const pages = { query: { fieldSelector }, urgency: "Later", signal } as const;
    for await (const page of listPages(this.#api, podsPath, pages)) {
      found.push(...page.map(translateFailedPod));
    }
    return found;
  }

  follow(nodeName: string, { dueAt, longestPauseMs, signal }: FollowOptions): FollowedPods {
    const changes = new ChangeListeners();
    let refusal: string | undefined;
    const reflector = new Reflector<PodFacts>({
      ...this.#tools,
      onError: (error) => {
        refusal = error.code === "API_UNREACHABLE" ? undefined : error.message;
        this.#tools.onError?.(error);
      },
      path: podsPath,
      query: onNode(nodeName),
      translate: translatePod,
      pageLimit: "None",
      listDueAt: dueAt,
      longestPauseMs,
      watchUrgency: "Later",
      watchRefusals: "Retried",
      onChange: () => changes.notify(),
    });
    // A failure rejects `synced`; after that the watch retries.
    reflector.run(signal).catch(() => undefined);
    return {
      synced: () => reflector.synced,
      refusal: () => refusal,
      pods: () => [...reflector.items().values()],
      onChange: (listener) => changes.listen(listener),
    };
  }

  /** Drains that start together share one list: a budget's status is only a forecast anyway. */
  budgets(): Promise<readonly BudgetFacts[]> {
    const nowMs = this.#clock.monotonic();
    if (this.#budgets !== undefined && nowMs - this.#budgets.askedMs < budgetsKeptMs) {
      return this.#budgets.list;
    }
    const asked = { askedMs: nowMs, list: this.#listBudgets() };
    this.#budgets = asked;
    // Errors are not cached: the next drain lists again.
    asked.list.catch(() => {
      if (this.#budgets === asked) this.#budgets = undefined;
    });
    return asked.list;
  }

  async #listBudgets(): Promise<readonly BudgetFacts[]> {
    const objects = await listAll(this.#api, budgetsPath);
    return objects.map(translateBudget);
  }

  evict(pod: PodIdentity, options: LeaveOptions): Promise<EvictionAnswer> {
    return evictPod(this.#api, pod, options);
  }

  async markDisrupted(
    pod: PodIdentity,
    options: MarkDisruptedOptions,
  ): Promise<string | undefined> {
    const over = new AbortController();
    const { signal } = over;
    const mark = { ...options, now: this.#clock.now(), signal };
    const marked = markDisrupted(this.#api, pod, mark).then(() => undefined, messageOf);
    const late = this.#clock.sleep(markWaitMs, signal).then(
      () => `no response within ${markWaitMs} ms`,
      () => undefined,
    );
    try {
      return await Promise.race([marked, late]);
    } finally {
      over.abort();
    }
  }

  remove(pod: PodIdentity, options: LeaveOptions): Promise<EvictionAnswer> {
    return deletePod(this.#api, pod, options);
  }

  async restartOwner(
    pod: PodIdentity,
    owner: OwnerFacts,
    { onTurn, dueAt }: RestartOptions,
  ): Promise<EvictionAnswer> {
    const workload = await this.#workloadOf(pod.namespace, owner);
    if ("kind" in workload) return workload;
    const { path, title, uid } = workload;
    const annotations = { [restartedFor]: pod.uid };
    // A uid cannot be changed, so the patch fails for another workload of the same name.
    const body = { metadata: { uid }, spec: { template: { metadata: { annotations } } } };
    const patch = { method: "PATCH", path, patchType: "application/merge-patch+json" } as const;
    const unfit = await this.#whyUnfit({ ...patch, body }, title);
    if (unfit !== undefined) return unfit;
    const bodyAtTurn = () => {
      onTurn();
      return body;
    };
    const request: KubeRequest = { ...patch, bodyAtTurn, dueAt };
    const answer = await this.#api.send(request);
    return answer.status < 300 ? { kind: "Accepted" } : refusalOf(request, answer, title);
  }

  /** Found by a dry run of the patch, which needs no other right than the patch itself. */
  async #whyUnfit(patch: KubeRequest, title: string): Promise<EvictionAnswer | undefined> {
    const answer = await this.#api.send({ ...patch, query: { dryRun: "All" } });
    if (answer.status >= 300) return refusalOf(patch, answer, title);
    const why = whyUnfit(answer.body as KubeObject);
    return why === undefined ? undefined : refused(title, why);
  }

  /** The workload that a rollout restarts: a ReplicaSet's owner, or a StatefulSet itself. */
  async #workloadOf(namespace: string, owner: OwnerFacts): Promise<RestartTarget | EvictionAnswer> {
    const apps = `/apis/apps/v1/namespaces/${namespace}`;
    if (owner.kind === "StatefulSet") return targetAt(`${apps}/statefulsets`, owner);
    const request: KubeRequest = { method: "GET", path: `${apps}/replicasets/${owner.name}` };
    const answer = await this.#api.send(request);
    if (answer.status !== 200) return refusal(request, answer);
    const parent = deploymentOf(answer.body as KubeObject);
    if (parent !== undefined) return targetAt(`${apps}/deployments`, parent);
    return refused(`ReplicaSet ${owner.name}`, "belongs to no Deployment that can be restarted");
  }
}

interface RestartTarget {
  readonly path: string;
  /** Such as `Deployment web`. */
  readonly title: string;
  readonly uid: string;
}

function targetAt(collection: string, { kind, name, uid }: OwnerFacts): RestartTarget {
  return { path: `${collection}/${name}`, title: `${kind} ${name}`, uid };
}

/** The message depends on the version of the API server, and on whether it validates first. */
function isOfAnother({ status, body }: KubeAnswer): boolean {
  const message = textOf(fieldsOf(body).message) ?? "";
  return status === 409 && /UID in (the )?precondition/i.test(message);
}

/**
 * Why a restart would not help, or not only the one pod: `kubectl rollout restart` also refuses a
 * paused Deployment, and a StatefulSet with OnDelete waits until somebody deletes its pods. A
 * budget may select one of several replicas only, such as a primary: a rollout deletes them all,
 * whatever their budgets say.
 */
function whyUnfit({ spec }: KubeObject): string | undefined {
  const { paused, updateStrategy, replicas } = fieldsOf(spec);
  if (paused === true) return "is paused, so no rollout would start";
  const isManual = fieldsOf(updateStrategy).type === "OnDelete";
  if (isManual) return "has the updateStrategy OnDelete, so no rollout would start";
  const count = wholeNumberOf(replicas) ?? 1;
  return count > 1 ? `has ${count} replicas, and a restart would delete them all` : undefined;
}

function refusalOf(request: KubeRequest, answer: KubeAnswer, title: string): EvictionAnswer {
  return isOfAnother(answer)
    ? refused(title, "has been replaced by another one of that name")
    : refusal(request, answer);
}

/** A restart that is refused for good; the pod then waits for its budget. */
function refused(what: string, why: string): EvictionAnswer {
  return { kind: "Refused", status: 409, message: `${what} ${why}` };
}

/** A retryable error is retried; any other refuses the restart for good. */
function refusal(request: KubeRequest, answer: KubeAnswer): EvictionAnswer {
  const { retryable, message } = apiError(request, answer);
  return retryable
    ? { kind: "Failed", retryable, message }
    : { kind: "Refused", status: answer.status, message };
}

function deploymentOf({ metadata }: KubeObject): OwnerFacts | undefined {
  const owners = listOf(fieldsOf(metadata).ownerReferences).map(fieldsOf);
  const owner = owners.find(({ kind, controller }) => kind === "Deployment" && controller === true);
  const [name, uid] = [textOf(owner?.name), textOf(owner?.uid)];
  return name && uid ? { kind: "Deployment", name, uid } : undefined;
}

/** Lists the pods that are on the node now. */
export async function listPodsOn(api: KubeSender, nodeName: string): Promise<readonly PodFacts[]> {
  const objects = await listAll(api, podsPath, onNode(nodeName), "None");
  return objects.map(translatePod);
}

/** The query for the pods of one node, for a list or a watch. */
function onNode(nodeName: string): Readonly<Record<string, string>> {
  return { fieldSelector: `spec.nodeName=${nodeName}` };
}
