import { nodesVariable } from "../../core/cluster/gang.ts";
import {
  type Fields,
  fieldsOf,
  isFields,
  listOf,
  nameOf,
  textMapOf,
  textOf,
  valueAt,
} from "../../core/json/json-field.ts";
import { LastcallError } from "../../errors.ts";

/** One Kubernetes object as it was written, and where; files are read elsewhere. */
export interface ManifestSource {
  /** The file as named by the user; absent for an object of a live cluster. */
  readonly file?: string | undefined;
  /** The first line of the object in that file, from 1. */
  readonly line?: number | undefined;
  /**
   * Recorded: read from an API server, which has set its defaults. Absent: decided by its uid,
   * which only a server sets.
   */
  readonly origin?: "Written" | "Recorded" | undefined;
  readonly json: unknown;
  /** The line of a field of the object in that file; undefined if no part of it is there. */
  readonly lineOf?: ((pointer: FieldPointer) => number | undefined) | undefined;
}

/** The path to a field inside an object: names, and indexes of lists. */
export type FieldPointer = readonly (string | number)[];

export interface Manifest extends ManifestSource {
  readonly apiVersion: string;
  /** The part of `apiVersion` before the slash; empty for the core group. */
  readonly group: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** Where a custom resource has its pod template; set only if it has one. */
  readonly templatePath?: readonly string[] | undefined;
}

/** Reads the metadata of an object; one without a namespace belongs to `defaultNamespace`. */
export function readManifest(
  source: ManifestSource,
  defaultNamespace: string,
  templatePaths: readonly TemplatePath[] = [],
): Manifest {
  const object = fieldsOf(source.json);
  const metadata = fieldsOf(object.metadata);
  const apiVersion = textOf(object.apiVersion) ?? "";
  const group = groupIn(apiVersion);
  const kind = nameOf(object.kind) ?? "";
  const named = templatePaths.find((one) => one.kind === kind && (one.group ?? group) === group);
  const template = valueAt(source.json, named?.path ?? []) ?? undefined;
  const hasTemplate = named !== undefined && template !== undefined;
  return {
    ...source,
    origin: source.origin ?? (textOf(metadata.uid) === undefined ? "Written" : "Recorded"),
    apiVersion,
    group,
    kind,
    namespace: clusterKinds.has(`${group}/${kind}`)
      ? ""
      : nameOf(metadata.namespace) || defaultNamespace,
    name: nameOf(metadata.name) ?? nameOf(metadata.generateName) ?? "unnamed",
    labels: textMapOf(metadata.labels),
    annotations: textMapOf(metadata.annotations),
    ...(hasTemplate ? { templatePath: named.path } : {}),
  };
}

/** The API group of an `apiVersion`; empty for the core group. */
export function groupIn(apiVersion: string): string {
  return apiVersion.includes("/") ? apiVersion.slice(0, apiVersion.indexOf("/")) : "";
}

/** Kinds of the audit's input that are in no namespace. */
const clusterKinds: ReadonlySet<string> = new Set([
  ...["/Node", "/Namespace", "/PersistentVolume"],
  ...["scheduling.k8s.io/PriorityClass", "storage.k8s.io/StorageClass"],
]);

/** The name of an object in reports: `Deployment default/web`, `Node n1`. */
export function nameOfObject(object: {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}): string {
  const { kind, namespace, name } = object;
  return namespace === "" ? `${kind} ${name}` : `${kind} ${namespace}/${name}`;
}

/**
 * The place of an object, or of a field of it, in a sentence: `web.yaml:12 (Deployment
 * default/web)`.
 */
export function placeOf(manifest: Manifest, field?: FieldPointer): string {
  const name = nameOfObject(manifest);
  if (manifest.file === undefined) return name;
  const own = field === undefined ? undefined : manifest.lineOf?.(field);
  const line = own ?? manifest.line;
  return `${manifest.file}${line === undefined ? "" : `:${line}`} (${name})`;
}

/** A kind of custom resource whose controller creates pods, and where it has their template. */
export interface TemplatePath {
  readonly kind: string;
  /** Absent: any custom resource of the kind. */
  readonly group?: string | undefined;
  readonly path: readonly string[];
}

/**
 * Built in. A Rollout may refer to a Deployment instead (`workloadRef`): it has no template then,
 * and the Deployment is audited. OpenKruise's kinds have the fields of Kubernetes' own. Sources:
 * argoproj.io/v1alpha1, rollouts/v1alpha1/types.go; openkruise apis/apps.
 */
export const knownTemplatePaths: readonly TemplatePath[] = [
  { kind: "Rollout", group: "argoproj.io", path: ["spec", "template"] },
  { kind: "CloneSet", group: "apps.kruise.io", path: ["spec", "template"] },
  { kind: "StatefulSet", group: "apps.kruise.io", path: ["spec", "template"] },
  { kind: "DaemonSet", group: "apps.kruise.io", path: ["spec", "template"] },
];

const example = "Rollout.argoproj.io=spec.template";

/** Reads `KIND.GROUP=PATH` or `KIND=PATH`. Throws USAGE, naming what is expected. */
export function parseTemplatePath(text: string): TemplatePath {
  const [, kind, group, path] = /^([A-Z]\w*)(?:\.([\w.-]+))?=\.?(.+)$/.exec(text) ?? [];
  const steps = path?.split(".") ?? [];
  if (kind === undefined || steps.length === 0 || !steps.every(isFieldName)) {
    throw new LastcallError(
      "USAGE",
      `Cannot read --template-path ${text}: expected KIND.GROUP=PATH, such as ${example}`,
    );
  }
  return { kind, group, path: steps };
}

function isFieldName(step: string): boolean {
  return /^[A-Za-z][\w-]*$/.test(step);
}

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
 * An object as an API server returned it, without what no rule reads; for callers that keep many.
 * The audit of it is the same as of the whole object.
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

/** Kinds whose conditions show whether they are finished, or whether they can be computed. */
const kindsWithConditions: ReadonlySet<unknown> = new Set(["Job", "PodDisruptionBudget"]);

/** The status also shows whether a pod is finished, and what a node is. */
function leanStatus(kind: unknown, { phase, conditions, nodeInfo, addresses }: Fields): Fields {
  if (kind === "Pod") return { status: { phase } };
  if (kindsWithConditions.has(kind)) return { status: { conditions } };
  return kind === "Node" ? { status: { nodeInfo, addresses } } : {};
}

function leanMetadata(metadata: Fields): Fields {
  const { name, namespace, labels, annotations, ownerReferences } = metadata;
  const { [applied]: text, ...others } = fieldsOf(annotations);
  const kept = textOf(text)?.includes(ownGrace) === true ? { [applied]: ownGrace } : {};
  return { name, namespace, labels, annotations: { ...others, ...kept }, ownerReferences };
}

/** Pod templates are trimmed wherever they are: in a Deployment, or in the Job of a CronJob. */
function leanSpec(spec: unknown): unknown {
  const fields = fieldsOf(spec);
  if ("jobTemplate" in fields) {
    const job = fieldsOf(fields.jobTemplate);
    return { ...fields, jobTemplate: { ...job, spec: leanSpec(job.spec) } };
  }
  const { template } = fields;
  if (!isFields(template)) return spec;
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
  const fields = fieldsOf(container);
  const entries = Object.entries(fields).filter(([name]) => !unreadContainerFields.has(name));
  const env = listOf(fields.env).filter((one) => fieldsOf(one).name === nodesVariable);
  return { ...Object.fromEntries(entries), ...(env.length > 0 && { env }) };
}
