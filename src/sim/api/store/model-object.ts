import type { KubeMeta, KubeObject } from "../../../contracts/kube-api.ts";
import { type Fields, fieldsOf } from "../../../core/json/json-field.ts";

/**
 * Copies JSON deeply and freezes the copy, so that the store can share it with all readers.
 * Undefined properties are omitted, as in JSON. A part that is already frozen is shared as it is:
 * all data in this code base are either deeply frozen or not at all.
 */
export function frozenCopy<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  if (Array.isArray(value)) return Object.freeze(value.map(frozenElement)) as T;
  const copy: Record<string, unknown> = {};
  for (const [key, member] of Object.entries(value)) {
    if (member !== undefined) copy[key] = frozenCopy(member);
  }
  return Object.freeze(copy) as T;
}

/** Freezes a value that the caller owns in place; stops at frozen parts. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  for (const key in value) deepFreeze(value[key]);
  return Object.freeze(value);
}

/** Like `frozenCopy`, but also omits null members, as typed Kubernetes fields do. */
export function frozenCopyWithoutNulls<T>(value: T): T {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return Object.freeze(value.map(frozenCopyWithoutNulls)) as T;
  const copy: Record<string, unknown> = {};
  for (const [key, member] of Object.entries(value)) {
    if (member !== undefined && member !== null) copy[key] = frozenCopyWithoutNulls(member);
  }
  return Object.freeze(copy) as T;
}

function frozenElement(element: unknown): unknown {
  return element === undefined ? null : frozenCopy(element);
}

/** Whether two JSON values are equal; shared parts are compared at no cost. */
export function jsonEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) return arraysEqual(a, b);
  return recordsEqual(a as Record<string, unknown>, b as Record<string, unknown>);
}

function arraysEqual(a: unknown, b: unknown): boolean {
  if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
  return a.every((element, index) => jsonEqual(element, b[index]));
}

function recordsEqual(a: Record<string, unknown>, b: Record<string, unknown>): boolean {
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  return keys.every((key) => Object.hasOwn(b, key) && jsonEqual(a[key], b[key]));
}

/** An object as the model stores it: complete, deeply frozen, shared without cloning. */
export interface ModelObject extends KubeObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ModelMeta;
}

export interface ModelMeta extends KubeMeta {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly creationTimestamp: string;
  readonly generation?: number;
  readonly deletionGracePeriodSeconds?: number;
  readonly finalizers?: readonly string[];
  readonly ownerReferences?: readonly OwnerReference[];
}

export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
  readonly blockOwnerDeletion?: boolean;
}

/** A copy of the object with other metadata; the rest is shared. */
export function withMeta(object: ModelObject, changes: Partial<ModelMeta>): ModelObject {
  return { ...object, metadata: { ...object.metadata, ...changes } };
}

export function namespaceOf(object: ModelObject): string {
  return object.metadata.namespace ?? "";
}

/** Whether the condition Ready of a Pod or Node is True. */
export function isReady(object: ModelObject): boolean {
  const conditions = fieldsOf(object.status).conditions;
  if (!Array.isArray(conditions)) return false;
  return conditions.some((one: Fields) => one.type === "Ready" && one.status === "True");
}
