import { type Fields, fieldsOf, listOf, textOf } from "../../core/json/json-field.ts";

const applied = "kubectl.kubernetes.io/last-applied-configuration";
const ownGrace = '"terminationGracePeriodSeconds":30';

/** Half of a workload as the API server returns it; no rule reads any of it. */
const unreadContainerFields = new Set([
  "env",
  "envFrom",
  "image",
  "livenessProbe",
  "resources",
  "securityContext",
  "startupProbe",
]);

/**
 * An object as an API server gave it back, without what no rule reads; for those who hold many.
 * The audit says the same of it as of the whole.
 */
export function leanObject(object: Fields): Fields {
  const { metadata, status, spec, ...head } = object;
  return {
    ...head,
    metadata: leanMetadata(fieldsOf(metadata)),
    ...(spec === undefined ? {} : { spec: object.kind === "Pod" ? leanPod(spec) : leanSpec(spec) }),
    ...leanStatus(object.kind, fieldsOf(status)),
  };
}

/** Whether a pod or a Job is over, and what a node is. */
function leanStatus(kind: unknown, { phase, conditions, nodeInfo, addresses }: Fields): Fields {
  if (kind === "Pod") return { status: { phase } };
  if (kind === "Job") return { status: { conditions } };
  return kind === "Node" ? { status: { nodeInfo, addresses } } : {};
}

function leanMetadata(metadata: Fields): Fields {
  const { name, namespace, labels, annotations, ownerReferences } = metadata;
  const { [applied]: text, ...others } = fieldsOf(annotations);
  const kept = textOf(text)?.includes(ownGrace) === true ? { [applied]: ownGrace } : {};
  return { name, namespace, labels, annotations: { ...others, ...kept }, ownerReferences };
}

/** Pod templates are lean wherever they stand: in a Deployment, or in the Job of a CronJob. */
function leanSpec(spec: unknown): unknown {
  const fields = fieldsOf(spec);
  if ("jobTemplate" in fields) {
    const job = fieldsOf(fields.jobTemplate);
    return { ...fields, jobTemplate: { ...job, spec: leanSpec(job.spec) } };
  }
  if (!("template" in fields)) return spec;
  const template = fieldsOf(fields.template);
  return { ...fields, template: { ...template, spec: leanPod(template.spec) } };
}

function leanPod(spec: unknown): Fields {
  const pod = fieldsOf(spec);
  const lists = (["containers", "initContainers"] as const)
    .filter((name) => name in pod)
    .map((name) => [name, listOf(pod[name]).map(leanContainer)]);
  return { ...pod, ...Object.fromEntries(lists) };
}

function leanContainer(container: unknown): Fields {
  const entries = Object.entries(fieldsOf(container));
  return Object.fromEntries(entries.filter(([name]) => !unreadContainerFields.has(name)));
}
