import type { Node, Pod } from "kubernetes-types/core/v1.js";
import type { ObjectMeta } from "kubernetes-types/meta/v1.js";
import type { PodDisruptionBudget } from "kubernetes-types/policy/v1.js";
import { type AuditEntry, unanswered } from "../support/audit-log.ts";

/** A Departure as it lies in the cluster; only what the judge reads. */
export interface RawDeparture {
  readonly metadata?: ObjectMeta;
  readonly spec?: {
    readonly node?: { readonly name?: string; readonly uid?: string };
    readonly cause?: string;
    readonly departAt?: string;
    readonly deadlineAt?: string;
    readonly source?: string;
  };
  readonly status?: {
    readonly phase?: string;
    readonly outcome?: string;
    readonly reason?: string;
  };
}

/** What Karpenter makes of a machine; only what is read here. */
export interface RawNodeClaim {
  readonly metadata?: ObjectMeta;
  readonly spec?: object;
  readonly status?: { readonly nodeName?: string };
}

interface Watched {
  readonly Node: Node;
  readonly Pod: Pod;
  readonly Budget: PodDisruptionBudget;
  readonly Departure: RawDeparture;
  /** Only where Karpenter is. */
  readonly NodeClaim: RawNodeClaim;
}

export type WatchedKind = keyof Watched;

/**
 * One change as the API server told it. `order` is its resourceVersion: one counter for the whole
 * cluster, so that changes of different kinds have one order that no clock has a say in.
 */
export type Change = {
  [Kind in WatchedKind]: {
    readonly kind: Kind;
    readonly order: number;
    readonly type: "Set" | "Gone";
    readonly object: Watched[Kind];
  };
}[WatchedKind];

/** A request to let a machine go, and the pods that its node had at that moment. */
export interface Release {
  readonly machine: string;
  readonly at: number;
  readonly podsThen: readonly Pod[];
}

export interface MachineEnd {
  readonly machine: string;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** What an independent onlooker has seen, sorted by order. Nothing of it is Lastcall's word. */
export interface History {
  readonly changes: readonly Change[];
  readonly audit: readonly AuditEntry[];
  readonly releases: readonly Release[];
  readonly machineEnds: readonly MachineEnd[];
}

/** Node objects and pods of one name are told apart by this. */
export function keyOf(object: { readonly metadata?: ObjectMeta | undefined }): string {
  return object.metadata?.uid ?? "";
}

export function nameOf(object: { readonly metadata?: ObjectMeta | undefined }): string {
  return object.metadata?.name ?? "";
}

/** A DaemonSet's pods stay where they are; a mirror pod is the kubelet's own. */
export function isBoundToNode(pod: Pod): boolean {
  const owner = pod.metadata?.ownerReferences?.[0]?.kind;
  return owner === "DaemonSet" || owner === "Node";
}

export function isReady(object: Pod | Node): boolean {
  const conditions = object.status?.conditions as
    | readonly { readonly type: string; readonly status: string }[]
    | undefined;
  return conditions?.find(({ type }) => type === "Ready")?.status === "True";
}

/**
 * `namespace/name` of each pod whose eviction the user was granted. One that was not answered
 * counts, too: a server that is killed in between may have granted it, and only the pod itself can
 * tell.
 */
export function evictionsBy(user: string, { audit }: History): ReadonlySet<string> {
  const granted = audit.filter(
    (entry) =>
      entry.user === user &&
      entry.subresource === "eviction" &&
      (entry.code === 201 || entry.code === unanswered),
  );
  return new Set(granted.map(({ namespace, name }) => `${namespace}/${name}`));
}
