import { type Fields, fieldsOf, isFields } from "../../../core/json/json-field.ts";
import { type ApiContext, timestamp } from "../api-context.ts";
import {
  ApiRefusal,
  badRequest,
  conflict,
  forbidden,
  notFound,
  tooManyRequests,
} from "../api-refusal.ts";
import type { ResourceType } from "../resource-registry.ts";
import { isReady, type ModelObject } from "../store/model-object.ts";
import { type DeleteOptions, deleteObject, deleteOptionsOf } from "./delete-object.ts";
import { allowedCondition, budgetStatus, budgetStorage, budgetsOf } from "./pod-budget.ts";

interface EvictionRequest {
  readonly type: ResourceType;
  readonly namespace: string;
  readonly name: string;
  readonly body: unknown;
  readonly query: Readonly<Record<string, string>>;
}

/** What the server writes under HTTP 201. */
const evicted: object = Object.freeze({
  kind: "Status",
  apiVersion: "v1",
  metadata: {},
  status: "Success",
  code: 201,
});

/**
 * The storage gives a Status of failure back as its result; the finisher of the request makes an
 * HTTP error of it. Source: apiserver `pkg/endpoints/handlers/finisher/finisher.go`.
 */
function twoBudgets(): ApiRefusal {
  const message =
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
  return new ApiRefusal({ code: 500, message });
}

/**
 * At more entries than this the server stops to evict. Source: eviction.go, MaxDisruptedPodSize.
 */
const disruptedPodsMax = 2000;

/**
 * Evicts a pod: checks its budget, takes one disruption off it, adds the condition
 * `DisruptionTarget` to the pod and deletes it.
 * Gives back the body of an answer 201; throws `ApiRefusal` (400, 403, 404, 409, 429, 500).
 * Source: kubernetes `pkg/registry/core/pod/storage/eviction.go`.
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

/** Such a pod serves nobody, or is going already: no budget has a say. */
function ignoresBudgets(pod: ModelObject): boolean {
  const phase = fieldsOf(pod.status).phase;
  const going = pod.metadata.deletionTimestamp !== undefined;
  return going || phase === "Pending" || phase === "Succeeded" || phase === "Failed";
}

/** A pod that is not ready may go without cost, by the policy of its budget. */
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
 * The real server spends the budget first and refuses a wrong uid after; the next sync of the
 * disruption controller gives it back. The model refuses first, which comes to the same.
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
  // The condition is a write of this function, so the caller's precondition moves along.
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
