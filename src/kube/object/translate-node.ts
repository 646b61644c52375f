import { noticeConditions } from "../../cloud/facts/cloud-marks.ts";
import type { KubeObject } from "../../contracts/kube-api.ts";
import {
  type Amounts,
  type AnnotationWriter,
  holdAnnotation,
  holdByAnnotation,
  holdMarkIn,
  killerAnnotation,
  kuredAnnotation,
  largerOf,
  type NodeCondition,
  type NodeFacts,
  parseQuantity,
  sumOf,
  type Taint,
} from "../../core/cluster/node.ts";
import type {
  LabelRequirement,
  NodeSelector,
  NodeSelectorTerm,
  PodPlacement,
  PodTerm,
} from "../../core/cluster/pod.ts";
import {
  type Fields,
  fieldsOf,
  instantOf,
  listOf,
  oneOf,
  textMapOf,
  textOf,
} from "../../core/json/json-field.ts";

const operators = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"] as const;
const required = "requiredDuringSchedulingIgnoredDuringExecution";

/** What a pod requires of its node. Total: missing or invalid fields require nothing. */
export function translatePlacement(spec: Fields): PodPlacement {
  const affinity = fieldsOf(spec.affinity);
  return {
    requests: podRequests(spec),
    nodeSelector: textMapOf(spec.nodeSelector),
    requiredNodes: nodeSelectorOf(fieldsOf(affinity.nodeAffinity)[required]),
    podAffinity: termsOf(affinity.podAffinity),
    podAntiAffinity: termsOf(affinity.podAntiAffinity),
    schedulerName:
      spec.schedulerName === "default-scheduler" ? undefined : textOf(spec.schedulerName),
  };
}

/**
 * What a pod requests from its node: the largest of the sum of its containers and sidecars, of what
 * any init container requests while the sidecars before it are running, and of its own requests;
 * plus the overhead of its runtime. Source: k8s.io/component-helpers `resource/helpers.go`,
 * PodRequests.
 */
export function podRequests(spec: Fields): Amounts {
  let running = listOf(spec.containers).map(requestsOf).reduce(sumOf, {});
  let sidecars: Amounts = {};
  let starting: Amounts = {};
  for (const container of listOf(spec.initContainers)) {
    const own = requestsOf(container);
    if (fieldsOf(container).restartPolicy === "Always") {
      running = sumOf(running, own);
      sidecars = sumOf(sidecars, own);
      starting = largerOf(starting, sidecars);
    } else starting = largerOf(starting, sumOf(sidecars, own));
  }
  const asked = largerOf(largerOf(running, starting), amountsOf(fieldsOf(spec.resources).requests));
  return sumOf(asked, amountsOf(spec.overhead));
}

/** A map of quantities; entries with any other value are omitted. */
function amountsOf(value: unknown): Amounts {
  const amounts: Record<string, number> = {};
  for (const [resource, quantity] of Object.entries(fieldsOf(value))) {
    const amount = parseQuantity(quantity);
    if (amount !== undefined) amounts[resource] = amount;
  }
  return amounts;
}

/** A NodeSelector, as in node affinity; undefined if there is none. */
export function nodeSelectorOf(value: unknown): NodeSelector | undefined {
  const terms = fieldsOf(value).nodeSelectorTerms;
  if (!Array.isArray(terms)) return undefined;
  return { nodeSelectorTerms: terms.map((term) => toTerm(fieldsOf(term))) };
}

function toTerm(term: Fields): NodeSelectorTerm {
  return {
    matchExpressions: listOf(term.matchExpressions).map(toRequirement),
    matchFields: listOf(term.matchFields).map(toRequirement),
  };
}

/** A requirement with an unknown operator selects nothing: `In` without values. */
function toRequirement(value: unknown): LabelRequirement {
  const requirement = fieldsOf(value);
  const operator = oneOf(operators, requirement.operator);
  const values = listOf(requirement.values).flatMap((one) => textOf(one) ?? []);
  const key = textOf(requirement.key) ?? "";
  return operator === undefined ? { key, operator: "In", values: [] } : { key, operator, values };
}

function termsOf(affinity: unknown): readonly PodTerm[] {
  return listOf(fieldsOf(affinity)[required]).map(fieldsOf);
}

function requestsOf(container: unknown): Amounts {
  return amountsOf(fieldsOf(fieldsOf(container).resources).requests);
}

const effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"] as const;

/** The facts of a Node object. Total: missing or invalid fields are undefined, empty or false. */
export function translateNode(node: KubeObject): NodeFacts {
  const meta = fieldsOf(node.metadata);
  const spec = fieldsOf(node.spec);
  const status = fieldsOf(node.status);
  const ready = conditionOf(status.conditions, "Ready");
  const annotations = keptAnnotations(textMapOf(meta.annotations), nodeAnnotations);
  return {
    name: textOf(meta.name) ?? "",
    uid: textOf(meta.uid) ?? "",
    providerID: textOf(spec.providerID) || undefined,
    bootID: textOf(fieldsOf(status.nodeInfo).bootID) || undefined,
    labels: textMapOf(meta.labels),
    annotations,
    taints: listOf(spec.taints).flatMap(toTaint),
    unschedulable: spec.unschedulable === true,
    ready: ready.status === "True",
    readyMessage: textOf(ready.message),
    isUnreachable: (ready.status !== "True" && ready.status !== "False") || undefined,
    readySince: ready.status === "True" ? instantOf(ready.lastTransitionTime) : undefined,
    noticeConditions: noticeConditionsOf(status.conditions),
    clearedConditions: clearedConditionsOf(status.conditions),
    holdWriter: writerOf(annotations, meta.managedFields),
    allocatable: status.allocatable === undefined ? undefined : amountsOf(status.allocatable),
    createdAt: instantOf(meta.creationTimestamp),
    deletionAt: instantOf(meta.deletionTimestamp),
  };
}

/** OpenShift's, and those of each cloud. */
const noticeTypes: ReadonlySet<string> = new Set([
  "Terminating",
  ...noticeConditions.flatMap(({ types }) => types),
]);

/** Undefined instead of an empty list for each of the many nodes that have none. */
function noticeConditionsOf(conditions: unknown): readonly NodeCondition[] | undefined {
  const standing = listOf(conditions).flatMap((condition) => {
    const { type, status, reason, message, lastTransitionTime } = fieldsOf(condition);
    if (!isNoticeType(type) || (status !== "True" && status !== "Unknown")) return [];
    const isUnknown = status === "Unknown" ? { isUnknown: true } : {};
    const said = { reason: textOf(reason) ?? "", message: textOf(message) ?? "" };
    return [{ type, ...said, ...isUnknown, since: textOf(lastTransitionTime) }];
  });
  return standing.length === 0 ? undefined : standing;
}

function clearedConditionsOf(conditions: unknown): readonly string[] | undefined {
  const cleared = listOf(conditions).flatMap((condition) => {
    const { type, status } = fieldsOf(condition);
    return isNoticeType(type) && status === "False" ? [type] : [];
  });
  return cleared.length === 0 ? undefined : cleared;
}

function isNoticeType(type: unknown): type is string {
  return typeof type === "string" && noticeTypes.has(type);
}

/**
 * The last writer of the managers that own the hold. A user is named only by the program that still
 * owns both annotations: another that sets another hold leaves the name of the first behind.
 */
function writerOf(
  annotations: NodeFacts["annotations"],
  managed: unknown,
): AnnotationWriter | undefined {
  const mark = holdMarkIn(annotations);
  if (mark === undefined) return undefined;
  const writers = listOf(managed).flatMap((entry): readonly AnnotationWriter[] => {
    const { manager, time, fieldsV1 } = fieldsOf(entry);
    const owned = fieldsOf(fieldsOf(fieldsOf(fieldsV1)["f:metadata"])["f:annotations"]);
    const name = textOf(manager);
    if (!name || !(`f:${mark}` in owned)) return [];
    const ownsUser = mark === holdAnnotation && `f:${holdByAnnotation}` in owned;
    const user = ownsUser ? annotations[holdByAnnotation] : undefined;
    return [{ manager: name, at: instantOf(time), ...(user ? { user } : {}) }];
  });
  return writers.toSorted((a, b) => (b.at ?? 0) - (a.at ?? 0))[0];
}

/** The condition of that type; an empty object if there is none. */
export function conditionOf(conditions: unknown, type: string): Readonly<Record<string, unknown>> {
  return fieldsOf(listOf(conditions).find((condition) => fieldsOf(condition).type === type));
}

/** Skips a taint without a key or with an unknown effect. */
function toTaint(value: unknown): readonly Taint[] {
  const taint = fieldsOf(value);
  const key = textOf(taint.key);
  const effect = oneOf(effects, taint.effect);
  return key && effect ? [{ key, value: textOf(taint.value), effect }] : [];
}

/** Every key under this prefix is ours. */
const ownPrefix = "lastcall.dev/";

/** The node annotations that a decision or doctor reads, besides all of `lastcall.dev/`. */
export const nodeAnnotations = [
  "cluster-autoscaler.kubernetes.io/scale-down-disabled",
  "karpenter.sh/do-not-disrupt",
  kuredAnnotation,
  killerAnnotation,
] as const;

/** The pod annotations that a decision reads, besides all of `lastcall.dev/`. */
export const podAnnotations = [
  "cluster-autoscaler.kubernetes.io/safe-to-evict",
  "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes",
  "karpenter.sh/do-not-disrupt",
  "kubernetes.io/config.mirror",
] as const;

/**
 * Keeps the annotations that are read, and no others: those of tools (last-applied configurations,
 * checksums, CNI state) are most of a node's bytes, and memory is limited.
 */
export function keptAnnotations(
  annotations: Readonly<Record<string, string>>,
  wanted: readonly string[],
): Readonly<Record<string, string>> {
  const kept: Record<string, string> = {};
  for (const [key, value] of Object.entries(annotations)) {
    if (key.startsWith(ownPrefix) || wanted.includes(key)) kept[key] = value;
  }
  return kept;
}
