import { isElastic, schedulingGroupOf } from "../../core/cluster/gang.ts";
import type { LabelRequirement, LabelSelector, Toleration } from "../../core/cluster/pod.ts";
import {
  type Fields,
  fieldsOf,
  isFields,
  listOf,
  nameOf,
  textListOf,
  textMapOf,
  textOf,
  valueAt,
} from "../../core/json/json-field.ts";
import { preStopActs, preStopSeconds } from "./sleep-seconds.ts";

/** The pods of a workload, with only the fields that some rule reads. */
export interface PodTemplate {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly containers: readonly Container[];
  readonly volumes: readonly Volume[];
  readonly nodeSelector: Readonly<Record<string, string>>;
  /** Required node affinity: terms are ORed, the requirements of a term ANDed; absent: none. */
  readonly nodeTerms?: readonly (readonly LabelRequirement[])[] | undefined;
  readonly tolerations: readonly Toleration[];
  readonly spread: readonly SpreadConstraint[];
  readonly apart: readonly AntiAffinityTerm[];
  readonly restartPolicy: string;
  readonly priorityClassName?: string | undefined;
  /** The group of Kubernetes' workload API that the pods are scheduled in. */
  readonly schedulingGroup?: string | undefined;
  /** Whether the pods go on without some of them. */
  readonly isElastic: boolean;
}

/** A container that runs as long as the pod does: a main container, or a sidecar. */
export interface Container {
  readonly name: string;
  readonly sidecar: boolean;
  readonly command: readonly string[];
  readonly args: readonly string[];
  /** Ports that serve requests; those of metrics and health checks are left out. */
  readonly hasPorts: boolean;
  readonly hasReadinessProbe: boolean;
  /** The least number of seconds that the preStop hook takes; 0 if it does not show. */
  readonly preStopSeconds: number;
  /** The preStop hook does more than wait, so it may end the process itself. */
  readonly preStopActs: boolean;
  readonly mounts: readonly Mount[];
}

export interface Mount {
  readonly volume: string;
  readonly path: string;
  readonly readOnly: boolean;
}

export type Volume =
  | { readonly kind: "EmptyDir"; readonly name: string; readonly inMemory: boolean }
  | {
      readonly kind: "HostPath";
      readonly name: string;
      readonly path: string;
      readonly type?: string | undefined;
    }
  | ClaimVolume
  | { readonly kind: "Other"; readonly name: string };

/** A volume that a PersistentVolumeClaim provides. */
export interface ClaimVolume {
  readonly kind: "Claim";
  readonly name: string;
  /** Of a claim that exists by itself; undefined if one is created for each pod. */
  readonly claim?: string | undefined;
  /** As each pod's own claim names it; undefined: the cluster's default class. */
  readonly storageClass?: string | undefined;
}

export interface SpreadConstraint {
  readonly selector: LabelSelector | undefined;
  readonly topologyKey: string;
}

export interface AntiAffinityTerm {
  readonly selector: LabelSelector | undefined;
  /** The term applies to named or selected namespaces, not only to the pod's own. */
  readonly otherNamespaces: boolean;
  readonly topologyKey: string;
}

/** Reads a pod, or the pod template of a workload: `{metadata, spec}`. */
export function readPodTemplate(template: unknown): PodTemplate {
  const metadata = fieldsOf(valueAt(template, ["metadata"]));
  const spec = fieldsOf(valueAt(template, ["spec"]));
  return {
    labels: textMapOf(metadata.labels),
    annotations: textMapOf(metadata.annotations),
    containers: readContainers(spec),
    volumes: listOf(spec.volumes).map(readVolume),
    nodeSelector: textMapOf(spec.nodeSelector),
    nodeTerms: readNodeTerms(spec),
    tolerations: listOf(spec.tolerations).map(readToleration),
    spread: listOf(spec.topologySpreadConstraints).map((item) => ({
      selector: readSelector(fieldsOf(item).labelSelector),
      topologyKey: textOf(fieldsOf(item).topologyKey) ?? "",
    })),
    apart: readAntiAffinity(spec),
    restartPolicy: textOf(spec.restartPolicy) ?? "Always",
    priorityClassName: textOf(spec.priorityClassName),
    schedulingGroup: schedulingGroupOf(spec),
    isElastic: isElastic(spec),
  };
}

/** Kubernetes reads an empty field like one that is not set, and an empty operator as Equal. */
function readToleration(item: unknown): Toleration {
  const { key, operator, value, effect } = fieldsOf(item);
  return {
    key: textOf(key) || undefined,
    operator: operator === "Exists" ? "Exists" : "Equal",
    value: textOf(value),
    effect: (textOf(effect) || undefined) as Toleration["effect"],
  };
}

/** Init containers run before; only those that always restart live on, as sidecars. */
function readContainers(spec: unknown): readonly Container[] {
  const mains = listOf(valueAt(spec, ["containers"])).map((item) => readContainer(item, "Main"));
  const sidecars = listOf(valueAt(spec, ["initContainers"]))
    .filter((item) => fieldsOf(item).restartPolicy === "Always")
    .map((item) => readContainer(item, "Sidecar"));
  return [...mains, ...sidecars];
}

function readContainer(value: unknown, role: "Main" | "Sidecar"): Container {
  const fields = fieldsOf(value);
  return {
    name: nameOf(fields.name) ?? "",
    sidecar: role === "Sidecar",
    command: textListOf(fields.command),
    args: textListOf(fields.args),
    hasPorts: listOf(fields.ports).some((port) => !isStatusPort(fieldsOf(port))),
    hasReadinessProbe: isFields(fields.readinessProbe),
    preStopSeconds: preStopSeconds(fields),
    preStopActs: preStopActs(fields),
    mounts: listOf(fields.volumeMounts).map(readMount),
  };
}

const statusPort = /metrics|prometheus|health|^(?:prom|ready|readiness|liveness|probes?)$/i;

/**
 * A port for metrics or health checks, by its name: of a container's `ports`, or of a Service's.
 */
export function isStatusPort({ name, targetPort }: Fields): boolean {
  return [name, targetPort].some((word) => statusPort.test(textOf(word) ?? ""));
}

function readMount(value: unknown): Mount {
  const fields = fieldsOf(value);
  return {
    volume: nameOf(fields.name) ?? "",
    path: textOf(fields.mountPath) ?? "",
    readOnly: fields.readOnly === true,
  };
}

/** A volume without a source is an emptyDir. Source: kubernetes core/v1 SetDefaults_Volume. */
function readVolume(value: unknown): Volume {
  const { name: written, ...rest } = fieldsOf(value);
  const name = nameOf(written) ?? "";
  const sources = Object.entries(rest).filter(([, source]) => source !== null);
  const { emptyDir, hostPath } = Object.fromEntries(sources);
  if (emptyDir !== undefined || sources.length === 0) {
    return { kind: "EmptyDir", name, inMemory: fieldsOf(emptyDir).medium === "Memory" };
  }
  const { persistentVolumeClaim, ephemeral } = Object.fromEntries(sources);
  if (isFields(persistentVolumeClaim)) {
    return { kind: "Claim", name, claim: nameOf(persistentVolumeClaim.claimName) ?? "" };
  }
  if (isFields(ephemeral)) return claimFor(name, ephemeral.volumeClaimTemplate);
  if (!isFields(hostPath)) return { kind: "Other", name };
  return { kind: "HostPath", name, path: nameOf(hostPath.path) ?? "", type: textOf(hostPath.type) };
}

/** The volume of a claim that is created for each pod, from its template. */
export function claimFor(name: string, template: unknown): ClaimVolume {
  const storageClass = textOf(valueAt(template, ["spec", "storageClassName"]));
  return { kind: "Claim", name, storageClass };
}

function readNodeTerms(spec: unknown): PodTemplate["nodeTerms"] {
  const required = valueAt(spec, [
    "affinity",
    "nodeAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "nodeSelectorTerms",
  ]);
  if (!Array.isArray(required)) return undefined;
  const terms = required.map(fieldsOf);
  // The DaemonSet controller binds each pod to its node this way; it says nothing about the
  // workload.
  const names = (term: Fields) =>
    listOf(term.matchFields).length > 0 && listOf(term.matchExpressions).length === 0;
  if (terms.some(names)) return undefined;
  return terms.map((term) => readRequirements(term.matchExpressions));
}

function readAntiAffinity(spec: unknown): readonly AntiAffinityTerm[] {
  const rule = fieldsOf(valueAt(spec, ["affinity", "podAntiAffinity"]));
  const required = listOf(rule.requiredDuringSchedulingIgnoredDuringExecution);
  const preferred = listOf(rule.preferredDuringSchedulingIgnoredDuringExecution);
  const terms = [...required, ...preferred.map((item) => fieldsOf(item).podAffinityTerm)];
  return terms.map((item) => {
    const fields = fieldsOf(item);
    return {
      selector: readSelector(fields.labelSelector),
      otherNamespaces: listOf(fields.namespaces).length > 0 || isFields(fields.namespaceSelector),
      topologyKey: textOf(fields.topologyKey) ?? "",
    };
  });
}

/** Reads a label selector; undefined if there is none (which selects nothing). */
export function readSelector(value: unknown): LabelSelector | undefined {
  if (!isFields(value)) return undefined;
  return {
    matchLabels: textMapOf(value.matchLabels),
    matchExpressions: readRequirements(value.matchExpressions),
  };
}

/** Requirements of a label selector or of node affinity. */
export function readRequirements(value: unknown): readonly LabelRequirement[] {
  return listOf(value).map((item) => {
    const fields = fieldsOf(item);
    return {
      key: textOf(fields.key) ?? "",
      operator: (textOf(fields.operator) ?? "In") as LabelRequirement["operator"],
      values: textListOf(fields.values),
    };
  });
}

/** The longest hook of a pod: the hooks of its containers run in parallel. */
export function longestPreStop(pod: {
  readonly containers: readonly { readonly preStopSeconds: number }[];
}): number {
  return Math.max(0, ...pod.containers.map((container) => container.preStopSeconds));
}
