import { type Fields, fieldsOf, isFields } from "../../../core/json/json-field.ts";
import { parseInstant, plus, seconds } from "../../../core/time/time.ts";
import {
  ApiRefusal,
  badRequest,
  conflict,
  forbidden,
  notFound,
  tooManyRequests,
} from "../api-refusal.ts";
import type { ApiContext, ResourceType } from "../resource-registry.ts";
import { isReady, type ModelObject, timestamp, withMeta } from "../store/object-store.ts";
import { allowedCondition, budgetStatus, budgetStorage, budgetsOf } from "./pod-budget.ts";

/** The parts of DeleteOptions that the model supports; propagation is always Background. */
export interface DeleteOptions {
  readonly gracePeriodSeconds?: number | undefined;
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
  readonly dryRun?: boolean;
}

interface Deletion {
  readonly type: ResourceType;
  readonly namespace: string;
  readonly name: string;
  readonly options: DeleteOptions;
}

interface Deleted {
  /** The object as it is now, or as it last was. */
  readonly object: ModelObject;
  readonly gone: boolean;
}

/** Reads DeleteOptions from a body, and otherwise from the query. */
export function deleteOptionsOf(
  body: unknown,
  query: Readonly<Record<string, string>>,
): DeleteOptions {
  const options = fieldsOf(body);
  const preconditions = fieldsOf(options.preconditions);
  const inQuery = query.gracePeriodSeconds;
  const grace = options.gracePeriodSeconds ?? (inQuery === undefined ? undefined : +inQuery);
  return {
    gracePeriodSeconds: typeof grace === "number" ? grace : undefined,
    uid: textOf(preconditions.uid),
    resourceVersion: textOf(preconditions.resourceVersion),
    dryRun: isDryRun(options, query),
  };
}

export function isDryRun(options: Fields, query: Readonly<Record<string, string>>): boolean {
  const inBody = options.dryRun;
  return query.dryRun === "All" || (Array.isArray(inBody) && inBody.includes("All"));
}

/**
 * Deletes an object, or starts to: a pod on a node gets its grace period, and an object with
 * finalizers waits for them. Throws `ApiRefusal`. Source: apiserver `pkg/registry/rest/delete.go`
 * and `pkg/registry/generic/registry/store.go`.
 */
export function deleteObject(context: ApiContext, deletion: Deletion): Deleted {
  const { type, namespace, name, options } = deletion;
  const collection = context.store.collection(type.storage);
  const current = collection.get(namespace, name);
  if (!current) throw notFound({ type, name });
  checkPreconditions(current, deletion);
  const marked = markDeleted(context, { current, options });
  if (options.dryRun) return { object: marked, gone: isGone(marked) };
  const stored = marked === current ? current : collection.put(marked);
  if (!isGone(stored)) return { object: stored, gone: false };
  collection.remove(stored);
  return { object: stored, gone: true };
}

function checkPreconditions(current: ModelObject, { type, name, options }: Deletion): void {
  const { uid, resourceVersion } = options;
  const target = { type: { ...type, plural: type.kind }, name };
  if (uid !== undefined && uid !== current.metadata.uid) {
    throw conflict(
      target,
      `the UID in the precondition (${uid}) does not match the UID in record (${current.metadata.uid}). The object might have been deleted and then recreated`,
    );
  }
  if (resourceVersion === undefined || resourceVersion === current.metadata.resourceVersion) return;
  throw conflict(
    target,
    `the ResourceVersion in the precondition (${resourceVersion}) does not match the ResourceVersion in record (${current.metadata.resourceVersion}). The object might have been modified`,
  );
}

interface Marking {
  readonly current: ModelObject;
  readonly options: DeleteOptions;
}

function markDeleted(context: ApiContext, marking: Marking): ModelObject {
  const { current } = marking;
  if (current.kind === "Pod" && current.apiVersion === "v1") return markPod(context, marking);
  if (current.metadata.deletionTimestamp !== undefined) return current;
  const deletionTimestamp = timestamp(context.clock.now());
  if (current.kind === "Namespace" && current.apiVersion === "v1") {
    return { ...withMeta(current, { deletionTimestamp }), status: { phase: "Terminating" } };
  }
  if ((current.metadata.finalizers ?? []).length === 0) return current;
  return withMeta(current, { deletionTimestamp, deletionGracePeriodSeconds: 0 });
}

function markPod(context: ApiContext, { current, options }: Marking): ModelObject {
  const asked = options.gracePeriodSeconds;
  // Source: delete.go, BeforeDelete: a negative grace period counts as one second.
  const wanted = asked !== undefined && asked < 0 ? 1 : asked;
  if (current.metadata.deletionTimestamp !== undefined) {
    return shortened(context, { current, graceSeconds: wanted });
  }
  const graceSeconds = firstGrace(current, wanted);
  const deadlineAt = plus(context.clock.now(), seconds(graceSeconds));
  return withMeta(current, {
    deletionTimestamp: timestamp(deadlineAt),
    deletionGracePeriodSeconds: graceSeconds,
    generation: (current.metadata.generation ?? 1) + 1,
  });
}

/** Source: kubernetes `pkg/registry/core/pod/strategy.go`, CheckGracefulDelete. */
function firstGrace(pod: ModelObject, wanted: number | undefined): number {
  const spec = fieldsOf(pod.spec);
  const phase = fieldsOf(pod.status).phase;
  if (!spec.nodeName || phase === "Failed" || phase === "Succeeded") return 0;
  const grace = wanted ?? Number(spec.terminationGracePeriodSeconds ?? 0);
  return grace < 0 ? 1 : grace;
}

/** A deletion under way can only be shortened: its deadline counts from its start. */
function shortened(
  context: ApiContext,
  pod: { current: ModelObject; graceSeconds: number | undefined },
): ModelObject {
  const { current, graceSeconds } = pod;
  const before = current.metadata.deletionGracePeriodSeconds ?? 0;
  if (graceSeconds === undefined || graceSeconds >= before) return current;
  const nowAt = context.clock.now();
  const deadlineAt = parseInstant(current.metadata.deletionTimestamp ?? "") ?? nowAt;
  const movedAt = plus(deadlineAt, seconds(graceSeconds - before));
  if (movedAt >= nowAt) return withDeadline(current, { at: timestamp(movedAt), graceSeconds });
  // The time is already up: still a graceful deletion, unless a grace period of zero was requested.
  return withDeadline(current, { at: timestamp(nowAt), graceSeconds: graceSeconds === 0 ? 0 : 1 });
}

function withDeadline(
  pod: ModelObject,
  deadline: { at: string; graceSeconds: number },
): ModelObject {
  return withMeta(pod, {
    deletionTimestamp: deadline.at,
    deletionGracePeriodSeconds: deadline.graceSeconds,
  });
}

function isGone(object: ModelObject): boolean {
  const { finalizers, deletionTimestamp, deletionGracePeriodSeconds } = object.metadata;
  if ((finalizers ?? []).length > 0) return false;
  if (object.kind === "Namespace" && object.apiVersion === "v1") {
    const held = fieldsOf(object.spec).finalizers;
    return !Array.isArray(held) || held.length === 0;
  }
  return deletionTimestamp === undefined || (deletionGracePeriodSeconds ?? 0) === 0;
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

interface EvictionRequest {
  readonly type: ResourceType;
  readonly namespace: string;
  readonly name: string;
  readonly body: unknown;
  readonly query: Readonly<Record<string, string>>;
}

/** The body that the server sends with HTTP 201. */
const evicted: object = Object.freeze({
  kind: "Status",
  apiVersion: "v1",
  metadata: {},
  status: "Success",
  code: 201,
});

/**
 * The storage returns a failure Status as its result, and the request's finisher turns it into an
 * HTTP error. Source: apiserver `pkg/endpoints/handlers/finisher/finisher.go`.
 */
function twoBudgets(): ApiRefusal {
  const message =
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
  return new ApiRefusal({ code: 500, message });
}

/**
 * With more entries than this the server refuses to evict. Source: eviction.go,
 * MaxDisruptedPodSize.
 */
const disruptedPodsMax = 2000;

/**
 * Evicts a pod: checks its budget, takes one disruption off it, adds the condition
 * `DisruptionTarget` to the pod and deletes it. Returns the body of a 201 answer; throws
 * `ApiRefusal` (400, 403, 404, 409, 429, 500). Source: kubernetes
 * `pkg/registry/core/pod/storage/eviction.go`.
 */
export function evictPod(context: ApiContext, request: EvictionRequest): object {
  const { type, namespace, name } = request;
  const options = optionsOf(request);
  const pod = context.store.collection("pods").get(namespace, name);
  if (!pod) throw notFound({ type, name });
  if (ignoresBudgets(pod)) {
    markAndDelete(context, { pod, type, options });
    return evicted;
  }
  const [budget, second] = budgetsOf(context, pod);
  if (second) throw twoBudgets();
  if (budget) checkPrecondition(pod, options);
  if (budget && !isFreeAsUnhealthy(pod, budget)) spend(context, { budget, pod, options });
  markAndDelete(context, { pod, type, options });
  return evicted;
}

function optionsOf({ name, body, query }: EvictionRequest): DeleteOptions {
  const eviction = isFields(body) ? body : {};
  if (eviction.kind !== undefined && eviction.kind !== "Eviction") {
    throw badRequest(`not a Eviction object: ${JSON.stringify(eviction.kind)}`);
  }
  if (fieldsOf(eviction.metadata).name !== name) {
    throw badRequest("name in URL does not match name in Eviction object");
  }
  return deleteOptionsOf(eviction.deleteOptions, query);
}

/** Such a pod is not in service, or is already terminating: budgets do not apply. */
function ignoresBudgets(pod: ModelObject): boolean {
  const phase = fieldsOf(pod.status).phase;
  const going = pod.metadata.deletionTimestamp !== undefined;
  return going || phase === "Pending" || phase === "Succeeded" || phase === "Failed";
}

/** An unready pod may be evicted freely, depending on its budget's policy. */
function isFreeAsUnhealthy(pod: ModelObject, budget: ModelObject): boolean {
  if (isReady(pod)) return false;
  if (fieldsOf(budget.spec).unhealthyPodEvictionPolicy === "AlwaysAllow") return true;
  const { currentHealthy = 0, desiredHealthy = 0 } = budgetStatus(budget);
  return currentHealthy >= desiredHealthy && desiredHealthy > 0;
}

const budgetType = { group: "policy", plural: "poddisruptionbudget", kind: "PodDisruptionBudget" };
const violates = "Cannot evict pod as it would violate the pod's disruption budget.";

function spend(
  context: ApiContext,
  parts: { budget: ModelObject; pod: ModelObject; options: DeleteOptions },
): void {
  const { budget, pod, options } = parts;
  const status = budgetStatus(budget);
  const { name } = budget.metadata;
  const generation = budget.metadata.generation ?? 0;
  const allowed = status.disruptionsAllowed ?? 0;
  if ((status.observedGeneration ?? 0) < generation) throw stillProcessed(name);
  if (allowed < 0) {
    throw forbidden({ type: budgetType, name }, { message: "pdb disruptions allowed is negative" });
  }
  if (Object.keys(status.disruptedPods ?? {}).length > disruptedPodsMax) {
    const message =
      "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
    throw forbidden({ type: budgetType, name }, { message });
  }
  if (allowed === 0) throw exhausted(budget);
  if (options.dryRun) return;
  const disruptedPods = {
    ...status.disruptedPods,
    [pod.metadata.name]: timestamp(context.clock.now()),
  };
  const conditions = allowed === 1 ? { conditions: [allowedCondition(0, generation)] } : {};
  const next = { ...status, disruptionsAllowed: allowed - 1, disruptedPods, ...conditions };
  context.store.collection(budgetStorage).put({ ...budget, status: next });
}

function stillProcessed(name: string): unknown {
  const message = `The disruption budget ${name} is still being processed by the server.`;
  const causes = [{ reason: "DisruptionBudget", message }];
  return tooManyRequests(violates, { causes, retryAfterSeconds: 10 });
}

function exhausted(budget: ModelObject): unknown {
  const { desiredHealthy = 0, currentHealthy = 0 } = budgetStatus(budget);
  const message = `The disruption budget ${budget.metadata.name} needs ${desiredHealthy} healthy pods and has ${currentHealthy} currently`;
  return tooManyRequests(violates, { causes: [{ reason: "DisruptionBudget", message }] });
}

/**
 * The real server first takes the disruption and then refuses a wrong uid; the next sync of the
 * disruption controller restores it. The model refuses first, with the same result.
 */
function checkPrecondition(pod: ModelObject, { uid }: DeleteOptions): void {
  if (uid === undefined || uid === pod.metadata.uid) return;
  throw conflict(
    { type: { group: "", plural: "Pod", kind: "Pod" }, name: pod.metadata.name },
    `the UID in the precondition (${uid}) does not match the UID in record (${pod.metadata.uid}). The object might have been deleted and then recreated`,
  );
}

function markAndDelete(
  context: ApiContext,
  parts: { pod: ModelObject; type: ResourceType; options: DeleteOptions },
): void {
  const { pod, type, options } = parts;
  checkPrecondition(pod, options);
  const { name, namespace = "" } = pod.metadata;
  if (options.dryRun) {
    deleteObject(context, { type, namespace, name, options });
    return;
  }
  const versionFits = options.resourceVersion === pod.metadata.resourceVersion;
  const marked = context.store.collection("pods").put(withDisruptionTarget(context, pod));
  // This function itself writes the condition, so the caller's precondition is updated.
  const resourceVersion = versionFits ? marked.metadata.resourceVersion : options.resourceVersion;
  deleteObject(context, { type, namespace, name, options: { ...options, resourceVersion } });
}

function withDisruptionTarget(context: ApiContext, pod: ModelObject): ModelObject {
  const status = fieldsOf(pod.status);
  const before = Array.isArray(status.conditions) ? (status.conditions as Fields[]) : [];
  const condition = {
    type: "DisruptionTarget",
    status: "True",
    reason: "EvictionByEvictionAPI",
    message: "Eviction API: evicting",
    lastTransitionTime: timestamp(context.clock.now()),
  };
  const others = before.filter((one) => one.type !== "DisruptionTarget");
  return { ...pod, status: { ...status, conditions: [...others, condition] } };
}
