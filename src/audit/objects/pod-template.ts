import type { LabelRequirement, LabelSelector } from "../../core/cluster/label-selector.ts";
import type { Toleration } from "../../core/cluster/pod.ts";
import {
  type Fields,
  fieldsOf,
  isFields,
  listOf,
  textListOf,
  textMapOf,
  textOf,
  valueAt,
} from "../../core/json/json-field.ts";
import { nameOf } from "../../core/json/shown-value.ts";
import { preStopActs, preStopSeconds } from "../pre-stop.ts";
import { readRequirements, readSelector } from "./read-selector.ts";

/** What the rules know of the pods of a workload: only the fields that some rule reads. */
export interface PodTemplate {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly containers: readonly Container[];
  readonly volumes: readonly Volume[];
  readonly nodeSelector: Readonly<Record<string, string>>;
  /** Required node affinity: terms are OR-ed, the requirements of one AND-ed; absent: none. */
  readonly nodeTerms?: readonly (readonly LabelRequirement[])[] | undefined;
  readonly tolerations: readonly Toleration[];
  readonly spread: readonly SpreadConstraint[];
  readonly apart: readonly AntiAffinityTerm[];
  readonly restartPolicy: string;
  readonly priorityClassName?: string | undefined;
}

/** One container that runs while the pod does: a main one, or a sidecar. */
export interface Container {
  readonly name: string;
  readonly sidecar: boolean;
  readonly command: readonly string[];
  readonly args: readonly string[];
  /** Ports that somebody may wait for; those of metrics and health checks are none. */
  readonly hasPorts: boolean;
  readonly hasReadinessProbe: boolean;
  /** Seconds that the preStop hook takes at least; 0 where none shows. */
  readonly preStopSeconds: number;
  /** The preStop hook does more than wait, so that it may end the process itself. */
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
  | { readonly kind: "Other"; readonly name: string };

export interface SpreadConstraint {
  readonly selector: LabelSelector | undefined;
  readonly topologyKey: string;
}

export interface AntiAffinityTerm {
  readonly selector: LabelSelector | undefined;
  /** The term looks into named or selected namespaces, not only into the pod's own. */
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
    tolerations: listOf(spec.tolerations).map((item) => fieldsOf(item) as Toleration),
    spread: listOf(spec.topologySpreadConstraints).map((item) => ({
      selector: readSelector(fieldsOf(item).labelSelector),
      topologyKey: textOf(fieldsOf(item).topologyKey) ?? "",
    })),
    apart: readAntiAffinity(spec),
    restartPolicy: textOf(spec.restartPolicy) ?? "Always",
    priorityClassName: textOf(spec.priorityClassName),
  };
}

/** Init containers run before; only those that are restarted always live on as sidecars. */
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
  if (!isFields(hostPath)) return { kind: "Other", name };
  return { kind: "HostPath", name, path: nameOf(hostPath.path) ?? "", type: textOf(hostPath.type) };
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
  // The DaemonSet controller ties each pod to its node so; of the workload it says nothing.
  if (terms.some((term) => "matchFields" in term && listOf(term.matchExpressions).length === 0)) {
    return undefined;
  }
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
      otherNamespaces: "namespaces" in fields || "namespaceSelector" in fields,
      topologyKey: textOf(fields.topologyKey) ?? "",
    };
  });
}
