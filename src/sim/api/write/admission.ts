import { type Fields, fieldsOf, isFields } from "../../../core/json/json-field.ts";
import { forbidden, type StatusCause } from "../api-refusal.ts";
import { crdCauses, establish } from "../custom-resource-definition.ts";
import type { ApiContext } from "../resource-registry.ts";
import { jsonEqual, type ModelObject } from "../store/object-store.ts";

/** The server's defaults and refusals, kind by kind; a kind without rules accepts anything. */
interface KindRules {
  /** Applies defaults; called before `causes`. */
  readonly prepare?: (context: ApiContext, object: Fields) => Fields;
  /** Applies defaults at every write of the object, not only the first. */
  readonly prepareUpdate?: (object: Fields) => Fields;
  /** Validation errors of an object, however it is written. */
  readonly causes?: (object: Fields) => readonly StatusCause[];
  /** Validation errors of a change. */
  readonly updateCauses?: (before: ModelObject, after: ModelObject) => readonly StatusCause[];
}

const noRules: KindRules = {};

const rules: Readonly<Record<string, KindRules>> = {
  namespaces: { prepare: (_, object) => withNamespaceDefaults(object) },
  nodes: {
    prepare: (_, object) => withNodeParts(object),
    prepareUpdate: withNodeParts,
    updateCauses: nodeUpdateCauses,
  },
  pods: { prepare: admitPod, causes: podCauses, updateCauses: podUpdateCauses },
  "deployments.apps": workloadRules({
    replicas: 1,
    revisionHistoryLimit: 10,
    progressDeadlineSeconds: 600,
    strategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: "25%", maxSurge: "25%" } },
  }),
  "replicasets.apps": workloadRules({ replicas: 1 }),
  "statefulsets.apps": workloadRules({
    replicas: 1,
    podManagementPolicy: "OrderedReady",
    revisionHistoryLimit: 10,
    updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 0 } },
  }),
  "daemonsets.apps": workloadRules({
    revisionHistoryLimit: 10,
    updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1, maxSurge: 0 } },
  }),
  "jobs.batch": {
    ...workloadRules({ parallelism: 1, completions: 1, backoffLimit: 6 }),
    causes: templateCauses,
  },
  "poddisruptionbudgets.policy": { causes: budgetCauses },
  "customresourcedefinitions.apiextensions.k8s.io": { prepare: establish, causes: crdCauses },
};

export function rulesOf(storage: string): KindRules {
  return rules[storage] ?? noRules;
}

/** The server always has both, even if the client omits them, and omits an empty list of taints. */
function withNodeParts(object: Fields): Fields {
  const { taints, ...spec } = fieldsOf(object.spec);
  const isEmpty = Array.isArray(taints) && taints.length === 0;
  return {
    ...object,
    spec: isEmpty ? spec : (object.spec ?? {}),
    status: object.status ?? {},
  };
}

function workloadRules(defaults: Fields): KindRules {
  const prepareUpdate = (object: Fields): Fields => {
    const spec = fieldsOf(object.spec);
    const template = fieldsOf(spec.template);
    const withTemplate = { ...template, spec: withPodSpecDefaults(fieldsOf(template.spec)) };
    return { ...object, spec: { ...defaults, ...spec, template: withTemplate } };
  };
  return {
    prepare: (_, object) => ({ ...prepareUpdate(object), status: {} }),
    prepareUpdate,
    causes: workloadCauses,
  };
}

function withNamespaceDefaults(object: Fields): Fields {
  const metadata = fieldsOf(object.metadata);
  const labels = {
    "kubernetes.io/metadata.name": metadata.name,
    ...fieldsOf(metadata.labels),
  };
  return {
    ...object,
    metadata: { ...metadata, labels },
    spec: { finalizers: ["kubernetes"] },
    status: { phase: "Active" },
  };
}

function workloadCauses(object: Fields): readonly StatusCause[] {
  const causes = templateCauses(object);
  if (fieldsOf(object.spec).selector !== undefined) return causes;
  const field = "spec.selector";
  return [{ reason: "FieldValueRequired", message: "Required value", field }, ...causes];
}

function templateCauses(object: Fields): readonly StatusCause[] {
  return podCauses(fieldsOf(fieldsOf(object.spec).template)).map((cause) => ({
    ...cause,
    field: `spec.template.${cause.field}`,
  }));
}

/** Source: kubernetes `pkg/apis/policy/validation/validation.go`. */
function budgetCauses(object: Fields): readonly StatusCause[] {
  const spec = fieldsOf(object.spec);
  if (spec.minAvailable === undefined || spec.maxUnavailable === undefined) return [];
  const message = `Invalid value: ${JSON.stringify(spec)}: minAvailable and maxUnavailable cannot be both set`;
  return [{ reason: "FieldValueInvalid", message, field: "spec" }];
}

/**
 * A Node's providerID can be set only once. Source: kubernetes `pkg/apis/core/validation`,
 * ValidateNodeUpdate.
 */
function nodeUpdateCauses(before: ModelObject, after: ModelObject): readonly StatusCause[] {
  const old = fieldsOf(before.spec).providerID;
  if (!old || jsonEqual(old, fieldsOf(after.spec).providerID)) return [];
  const message = "Forbidden: node updates may not change providerID except from ''";
  return [{ reason: "FieldValueForbidden", message, field: "spec.providerID" }];
}

/** Classes that every cluster has. Source: kubernetes `pkg/apis/scheduling/v1/helpers.go`. */
export const systemPriorityClasses: Readonly<Record<string, number>> = {
  "system-cluster-critical": 2_000_000_000,
  "system-node-critical": 2_000_001_000,
};

/** The defaults of a pod template, which a workload's pods get although nobody wrote them. */
function withPodSpecDefaults(spec: Fields): Fields {
  const containers = Array.isArray(spec.containers) ? spec.containers : [];
  return {
    restartPolicy: "Always",
    terminationGracePeriodSeconds: 30,
    dnsPolicy: "ClusterFirst",
    securityContext: {},
    schedulerName: "default-scheduler",
    ...spec,
    containers: containers.map(withContainerDefaults),
  };
}

/** Defaults, priority and tolerations of a new pod, as the server's admission chain sets them. */
function admitPod(context: ApiContext, pod: Fields): Fields {
  const spec = withPodSpecDefaults(fieldsOf(pod.spec));
  const name = String(fieldsOf(pod.metadata).name);
  const admitted = {
    serviceAccountName: "default",
    enableServiceLinks: true,
    ...spec,
    ...priorityOf(context, { name, spec }),
    tolerations: tolerationsOf(spec),
  };
  return { ...pod, spec: admitted, status: { phase: "Pending", qosClass: qosClassOf(spec) } };
}

/** Validation errors of a new pod, as far as the model checks. */
function podCauses(pod: Fields): readonly StatusCause[] {
  const spec = fieldsOf(pod.spec);
  const causes: StatusCause[] = [];
  if (!Array.isArray(spec.containers) || spec.containers.length === 0) {
    causes.push({
      reason: "FieldValueRequired",
      message: "Required value",
      field: "spec.containers",
    });
  }
  return causes;
}

const mutableInSpec = new Set([
  "activeDeadlineSeconds",
  "containers",
  "initContainers",
  "nodeName",
  "schedulingGates",
  "terminationGracePeriodSeconds",
  "tolerations",
]);

/** A pod's spec is immutable, except for images, tolerations and little more. */
function podUpdateCauses(before: ModelObject, after: ModelObject): readonly StatusCause[] {
  const [old, next] = [fieldsOf(before.spec), fieldsOf(after.spec)];
  const keys = new Set([...Object.keys(old), ...Object.keys(next)]);
  const changed = [...keys].filter((key) => !jsonEqual(old[key], next[key]));
  const placed = typeof old.nodeName === "string" && changed.includes("nodeName");
  if (!placed && changed.every((key) => mutableInSpec.has(key))) return [];
  const message =
    "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
  return [{ reason: "FieldValueForbidden", message, field: "spec" }];
}

function withContainerDefaults(container: unknown): unknown {
  if (!isFields(container)) return container;
  return {
    imagePullPolicy: "IfNotPresent",
    resources: {},
    terminationMessagePath: "/dev/termination-log",
    terminationMessagePolicy: "File",
    ...container,
  };
}

/** Source: kubernetes `plugin/pkg/admission/priority/admission.go`. */
function priorityOf(
  context: ApiContext,
  pod: { name: string; spec: Fields },
): { priority: number; priorityClassName?: string; preemptionPolicy: unknown } {
  const asked = pod.spec.priorityClassName;
  const named = typeof asked === "string" && asked !== "" ? asked : undefined;
  const chosen = named === undefined ? globalDefault(context) : classNamed(context, named);
  if (named !== undefined && chosen === undefined) {
    const message = `no PriorityClass with name ${named} was found`;
    throw forbidden({ type: podType, name: pod.name }, { message });
  }
  const priority = chosen?.value ?? 0;
  const given = pod.spec.priority;
  if (typeof given === "number" && given !== priority) {
    const message = `the integer value of priority (${given}) must not be provided in pod spec; priority admission controller computed ${priority} from the given PriorityClass name`;
    throw forbidden({ type: podType, name: pod.name }, { message });
  }
  const preemptionPolicy = chosen?.preemptionPolicy ?? "PreemptLowerPriority";
  if (chosen === undefined) return { priority, preemptionPolicy };
  return { priority, priorityClassName: chosen.name, preemptionPolicy };
}

const podType = { group: "", plural: "pods", kind: "Pod" };

interface PriorityClass {
  readonly name: string;
  readonly value: number;
  readonly preemptionPolicy?: unknown;
}

function classNamed(context: ApiContext, name: string): PriorityClass | undefined {
  const object = context.store.collection("priorityclasses.scheduling.k8s.io").get("", name);
  if (object) return priorityClassOf(object);
  const value = systemPriorityClasses[name];
  return value === undefined ? undefined : { name, value };
}

function globalDefault(context: ApiContext): PriorityClass | undefined {
  const classes = context.store.collection("priorityclasses.scheduling.k8s.io");
  for (const object of classes.all()) {
    if (object.globalDefault === true) return priorityClassOf(object);
  }
  return undefined;
}

function priorityClassOf(object: ModelObject): PriorityClass {
  return {
    name: object.metadata.name,
    value: Number(object.value),
    preemptionPolicy: object.preemptionPolicy,
  };
}

/**
 * 300 s on a node that is not ready or unreachable. Source:
 * `plugin/pkg/admission/defaulttolerationseconds`.
 */
const defaultTolerations = ["not-ready", "unreachable"].map((condition) =>
  Object.freeze({
    key: `node.kubernetes.io/${condition}`,
    operator: "Exists",
    effect: "NoExecute",
    tolerationSeconds: 300,
  }),
);

function tolerationsOf(spec: Fields): readonly unknown[] {
  const given: readonly unknown[] = Array.isArray(spec.tolerations) ? spec.tolerations : [];
  const covered = (key: string): boolean =>
    given.some((one) => {
      const toleration = fieldsOf(one);
      const keyFits = toleration.key === key || !toleration.key;
      return keyFits && (!toleration.effect || toleration.effect === "NoExecute");
    });
  return [...given, ...defaultTolerations.filter((one) => !covered(one.key))];
}

function qosClassOf(spec: Fields): string {
  const resources = (spec.containers as readonly unknown[]).map((container) =>
    fieldsOf(fieldsOf(container).resources),
  );
  const guaranteed = resources.every(
    ({ requests, limits }) =>
      isFields(limits) &&
      ["cpu", "memory"].every((one) => one in limits) &&
      (requests === undefined || jsonEqual(requests, limits)),
  );
  if (guaranteed && resources.length > 0) return "Guaranteed";
  const some = resources.some(({ requests, limits }) => isFields(requests) || isFields(limits));
  return some ? "Burstable" : "BestEffort";
}
