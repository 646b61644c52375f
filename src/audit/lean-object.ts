import { type Fields, fieldsOf, listOf, textOf } from "./json-field.ts";

const applied = "kubectl.kubernetes.io/last-applied-configuration";
const ownGrace = '"terminationGracePeriodSeconds":30';

/** Half of what an API server gives back of a workload; no rule looks at any of it. */
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
    ...(spec === undefined ? {} : { spec: leanSpec(spec) }),
    // Of the kinds that are listed, only a Job's says something: whether it is over.
    ...(object.kind === "Job" ? { status } : {}),
  };
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
  const pod = fieldsOf(template.spec);
  const lists = (["containers", "initContainers"] as const)
    .filter((name) => name in pod)
    .map((name) => [name, listOf(pod[name]).map(leanContainer)]);
  const leanPod = { ...pod, ...Object.fromEntries(lists) };
  return { ...fields, template: { ...template, spec: leanPod } };
}

function leanContainer(container: unknown): Fields {
  const entries = Object.entries(fieldsOf(container));
  return Object.fromEntries(entries.filter(([name]) => !unreadContainerFields.has(name)));
}
