import type { KubeMeta, KubeObject } from "../../../contracts/kube-api.ts";
import { type Fields, fieldsOf } from "../../../core/json/json-field.ts";

/** An object as the model keeps it: complete, frozen to the bottom, shared without cloning. */
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
