import type { Taint } from "../../core/cluster/node.ts";
import type {
  LabelRequirement,
  LabelSelector,
  PodPhase,
  Toleration,
} from "../../core/cluster/pod.ts";
import type { ModelObject, OwnerReference } from "../api/store/object-store.ts";

/** The objects that controllers work on, typed as far as controllers read them. */
export interface PodObject extends ModelObject {
  readonly spec: PodSpec;
  readonly status: PodStatus;
}

export interface PodSpec {
  readonly nodeName?: string;
  readonly schedulerName?: string;
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly affinity?: { readonly nodeAffinity?: NodeAffinity };
  readonly tolerations?: readonly Toleration[];
  readonly containers: readonly ContainerObject[];
  readonly priority?: number;
  readonly restartPolicy?: string;
  readonly terminationGracePeriodSeconds?: number;
}

interface NodeAffinity {
  readonly requiredDuringSchedulingIgnoredDuringExecution?: {
    readonly nodeSelectorTerms?: readonly NodeTerm[];
  };
}

export interface NodeTerm {
  readonly matchExpressions?: readonly LabelRequirement[];
  readonly matchFields?: readonly LabelRequirement[];
}

interface ContainerObject {
  readonly name: string;
  readonly image?: string;
  readonly resources?: { readonly requests?: Readonly<Record<string, string>> };
}

interface PodStatus {
  readonly phase: PodPhase;
  readonly conditions?: readonly Condition[];
  readonly [field: string]: unknown;
}

export interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
  readonly lastTransitionTime?: string;
  readonly [field: string]: unknown;
}

export interface NodeObject extends ModelObject {
  readonly spec: {
    readonly providerID?: string;
    readonly unschedulable?: boolean;
    readonly taints?: readonly Taint[];
  };
  readonly status: {
    readonly conditions?: readonly Condition[];
    readonly allocatable?: Readonly<Record<string, string>>;
    readonly [field: string]: unknown;
  };
}

/** A Deployment, ReplicaSet, StatefulSet, DaemonSet or Job. */
export interface WorkloadObject extends ModelObject {
  readonly spec: {
    readonly replicas?: number;
    readonly completions?: number;
    readonly parallelism?: number;
    readonly podManagementPolicy?: string;
    readonly selector?: LabelSelector;
    readonly strategy?: RolloutStrategy;
    readonly template: TemplateObject;
    readonly [field: string]: unknown;
  };
  readonly status: Readonly<Record<string, unknown>>;
}

interface RolloutStrategy {
  readonly type?: string;
  readonly rollingUpdate?: {
    readonly maxUnavailable?: number | string;
    readonly maxSurge?: number | string;
  };
}

export interface TemplateObject {
  readonly metadata?: {
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec: PodSpec;
}

/** Whether a pod still counts for its owner: neither finished nor terminating. */
export function isActive(pod: PodObject): boolean {
  const { phase } = pod.status;
  const finished = phase === "Succeeded" || phase === "Failed";
  return !finished && pod.metadata.deletionTimestamp === undefined;
}

export function conditionOf(object: ModelObject, type: string): Condition | undefined {
  const status = object.status as { readonly conditions?: readonly Condition[] } | undefined;
  return status?.conditions?.find((condition) => condition.type === type);
}

/** A Node without a Ready condition belongs to a test and counts as ready. */
export function readyOf(node: NodeObject): string {
  return conditionOf(node, "Ready")?.status ?? "True";
}

/** The conditions with one of them replaced or added. */
export function withCondition(
  conditions: readonly Condition[] | undefined,
  condition: Condition,
): readonly Condition[] {
  const others = (conditions ?? []).filter((one) => one.type !== condition.type);
  return [...others, condition];
}

/** A pod of Lastcall's own that reserves capacity, on any node: nothing is lost with it. */
export function isPlaceholder({ metadata }: ModelObject): boolean {
  return metadata.labels?.["app.kubernetes.io/component"] === "placeholder";
}

/** The owner that manages an object: its reference with `controller: true`. */
export function controllerOf(object: ModelObject): OwnerReference | undefined {
  return object.metadata.ownerReferences?.find((owner) => owner.controller === true);
}

export function ownerReferenceTo(owner: ModelObject): OwnerReference {
  return Object.freeze({
    apiVersion: owner.apiVersion,
    kind: owner.kind,
    name: owner.metadata.name,
    uid: owner.metadata.uid,
    controller: true,
    blockOwnerDeletion: true,
  });
}

/** `namespace/name`; the key by which controllers queue. */
export function keyOf(object: ModelObject): string {
  return `${object.metadata.namespace ?? ""}/${object.metadata.name}`;
}

export function splitKey(key: string): { readonly namespace: string; readonly name: string } {
  const slash = key.indexOf("/");
  return { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}

/** How a share of pods is rounded to a whole number. */
type Rounding = "Up" | "Down";

/**
 * A count, or a percentage such as `25%` of `total`.
 * Source: k8s.io/apimachinery `pkg/util/intstr`, GetScaledValueFromIntOrPercent.
 */
export function scaledValue(
  value: number | string,
  of: { readonly total: number; readonly rounding: Rounding },
): number {
  if (typeof value === "number") return value;
  const exact = (Number.parseInt(value, 10) * of.total) / 100;
  return of.rounding === "Up" ? Math.ceil(exact) : Math.floor(exact);
}
