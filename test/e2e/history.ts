import type { Node, Pod } from "kubernetes-types/core/v1.js";
import type { ObjectMeta } from "kubernetes-types/meta/v1.js";
import type { PodDisruptionBudget } from "kubernetes-types/policy/v1.js";
import { type AuditEntry, unanswered } from "../support/audit-log.ts";

/** A Departure as stored in the cluster; only the fields that the tests read. */
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
    readonly endedAt?: string;
    readonly outcome?: string;
    readonly reason?: string;
    readonly message?: string;
  };
}

/** Karpenter's object for a machine; only the fields that the tests read. */
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
  /** Only with Karpenter. */
  readonly NodeClaim: RawNodeClaim;
}

export type WatchedKind = keyof Watched;

/**
 * One change from a watch of the API server. `order` is its resourceVersion: one counter for the
 * whole cluster, so changes of different kinds have one order that depends on no clock.
 */
export type Change = {
  [Kind in WatchedKind]: {
    readonly kind: Kind;
    readonly order: number;
    readonly type: "Set" | "Gone";
    /** When the onlooker was told, in milliseconds since 1970. */
    readonly atMs?: number;
    readonly object: Watched[Kind];
  };
}[WatchedKind];

/** A request to release a machine, and the pods of its node at that moment. */
export interface Release {
  readonly machine: string;
  /** The cloud's id of the machine, where the cloud is one that tells it. */
  readonly id?: string;
  readonly at: number;
  /** The cluster's order at that moment. */
  readonly order?: number;
  readonly podsThen: readonly Pod[];
}

export interface MachineEnd {
  readonly machine: string;
  readonly id?: string | undefined;
  /** Milliseconds since 1970. */
  readonly at: number;
}

export interface MachineStart {
  readonly machine: string;
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** What an independent onlooker saw, sorted by order. None of it is reported by Lastcall. */
export interface History {
  readonly changes: readonly Change[];
  readonly audit: readonly AuditEntry[];
  readonly releases: readonly Release[];
  readonly machineEnds: readonly MachineEnd[];
  /** Only of a cloud that tells its machines' ids. */
  readonly machineStarts?: readonly MachineStart[];
}

/** The uid, which distinguishes Node objects and pods with the same name. */
export function keyOf(object: { readonly metadata?: ObjectMeta | undefined }): string {
  return object.metadata?.uid ?? "";
}

export function nameOf(object: { readonly metadata?: ObjectMeta | undefined }): string {
  return object.metadata?.name ?? "";
}

/** The pods of a DaemonSet stay on their node, and a mirror pod belongs to the kubelet. */
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
 * How the API server logs a request whose client was gone before its response. The request may have
 * been carried out: of 87 evictions logged so in a trial, 6 had deleted their pods.
 */
const clientGone = 504;

/**
 * `namespace/name` of each pod whose eviction was granted to the user. A request without a response
 * counts as well: a server or a client that was killed in between may have had it granted, and only
 * the pod itself shows that.
 */
export function evictionsBy(user: string, { audit }: History): ReadonlySet<string> {
  const granted = audit.filter(
    (entry) =>
      entry.user === user &&
      entry.subresource === "eviction" &&
      [201, unanswered, clientGone].includes(entry.code),
  );
  return new Set(granted.map(({ namespace, name }) => `${namespace}/${name}`));
}
