import type { ApiContext } from "./api-context.ts";
import type { StatusCause } from "./api-refusal.ts";
import { crdCauses, establish } from "./custom-resource-definition.ts";
import { type JsonRecord, recordOf } from "./frozen-copy.ts";
import { jsonEqual } from "./json-equal.ts";
import type { ModelObject } from "./model-object.ts";
import { admitPod, podCauses, podUpdateCauses, withPodSpecDefaults } from "./pod-admission.ts";

/** What the server fills in and refuses, kind by kind; a kind without rules takes anything. */
interface KindRules {
  /** Fills defaults in; called before `causes`. */
  readonly prepare?: (context: ApiContext, object: JsonRecord) => JsonRecord;
  /** Fills defaults in at every write of the object, not only at the first. */
  readonly prepareUpdate?: (object: JsonRecord) => JsonRecord;
  /** What is wrong with an object, however it is written. */
  readonly causes?: (object: JsonRecord) => readonly StatusCause[];
  /** What is wrong with a change. */
  readonly updateCauses?: (before: ModelObject, after: ModelObject) => readonly StatusCause[];
}

const noRules: KindRules = {};

const rules: Readonly<Record<string, KindRules>> = {
  namespaces: { prepare: (_, object) => withNamespaceDefaults(object) },
  nodes: { updateCauses: nodeUpdateCauses },
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

function workloadRules(defaults: JsonRecord): KindRules {
  const prepareUpdate = (object: JsonRecord): JsonRecord => {
    const spec = recordOf(object.spec);
    const template = recordOf(spec.template);
    const withTemplate = { ...template, spec: withPodSpecDefaults(recordOf(template.spec)) };
    return { ...object, spec: { ...defaults, ...spec, template: withTemplate } };
  };
  return {
    prepare: (_, object) => ({ ...prepareUpdate(object), status: {} }),
    prepareUpdate,
    causes: workloadCauses,
  };
}

function withNamespaceDefaults(object: JsonRecord): JsonRecord {
  const metadata = recordOf(object.metadata);
  const labels = {
    "kubernetes.io/metadata.name": metadata.name,
    ...recordOf(metadata.labels),
  };
  return {
    ...object,
    metadata: { ...metadata, labels },
    spec: { finalizers: ["kubernetes"] },
    status: { phase: "Active" },
  };
}

function workloadCauses(object: JsonRecord): readonly StatusCause[] {
  const causes = templateCauses(object);
  if (recordOf(object.spec).selector !== undefined) return causes;
  const field = "spec.selector";
  return [{ reason: "FieldValueRequired", message: "Required value", field }, ...causes];
}

function templateCauses(object: JsonRecord): readonly StatusCause[] {
  return podCauses(recordOf(recordOf(object.spec).template)).map((cause) => ({
    ...cause,
    field: `spec.template.${cause.field}`,
  }));
}

/** Source: kubernetes `pkg/apis/policy/validation/validation.go`. */
function budgetCauses(object: JsonRecord): readonly StatusCause[] {
  const spec = recordOf(object.spec);
  if (spec.minAvailable === undefined || spec.maxUnavailable === undefined) return [];
  const message = `Invalid value: ${JSON.stringify(spec)}: minAvailable and maxUnavailable cannot be both set`;
  return [{ reason: "FieldValueInvalid", message, field: "spec" }];
}

/** A Node's machine is named once. Source: kubernetes `pkg/apis/core/validation`, ValidateNodeUpdate. */
function nodeUpdateCauses(before: ModelObject, after: ModelObject): readonly StatusCause[] {
  const old = recordOf(before.spec).providerID;
  if (!old || jsonEqual(old, recordOf(after.spec).providerID)) return [];
  const message = "Forbidden: node updates may not change providerID except from ''";
  return [{ reason: "FieldValueForbidden", message, field: "spec.providerID" }];
}
