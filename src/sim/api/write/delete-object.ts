import { type Fields, fieldsOf } from "../../../core/json/json-field.ts";
import { parseInstant, plus, seconds } from "../../../core/time/time.ts";
import { type ApiContext, timestamp } from "../api-context.ts";
import { conflict, notFound } from "../api-refusal.ts";
import type { ResourceType } from "../resource-registry.ts";
import { type ModelObject, withMeta } from "../store/model-object.ts";

/** The parts of DeleteOptions that the model obeys; propagation is always Background. */
export interface DeleteOptions {
  readonly gracePeriodSeconds?: number | undefined;
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
  readonly dryRun?: boolean;
}

interface Deletion {
  readonly type: ResourceType;
  readonly namespace: string;
  readonly name: string;
  readonly options: DeleteOptions;
}

interface Deleted {
  /** The object as it is now, or as it last was. */
  readonly object: ModelObject;
  readonly gone: boolean;
}

/** Reads DeleteOptions from a body, with what the query says as the second choice. */
export function deleteOptionsOf(
  body: unknown,
  query: Readonly<Record<string, string>>,
): DeleteOptions {
  const options = fieldsOf(body);
  const preconditions = fieldsOf(options.preconditions);
  const inQuery = query.gracePeriodSeconds;
  const grace = options.gracePeriodSeconds ?? (inQuery === undefined ? undefined : +inQuery);
  return {
    gracePeriodSeconds: typeof grace === "number" ? grace : undefined,
    uid: textOf(preconditions.uid),
    resourceVersion: textOf(preconditions.resourceVersion),
    dryRun: isDryRun(options, query),
  };
}

export function isDryRun(options: Fields, query: Readonly<Record<string, string>>): boolean {
  const inBody = options.dryRun;
  return query.dryRun === "All" || (Array.isArray(inBody) && inBody.includes("All"));
}

/**
 * Deletes an object, or begins to: a pod on a node is given its grace, an object with finalizers
 * waits for them. Throws `ApiRefusal`. Source: apiserver `pkg/registry/rest/delete.go` and
 * `pkg/registry/generic/registry/store.go`.
 */
export function deleteObject(context: ApiContext, deletion: Deletion): Deleted {
  const { type, namespace, name, options } = deletion;
  const collection = context.store.collection(type.storage);
  const current = collection.get(namespace, name);
  if (!current) throw notFound({ type, name });
  checkPreconditions(current, deletion);
  const marked = markDeleted(context, { current, options });
  if (options.dryRun) return { object: marked, gone: isGone(marked) };
  const stored = marked === current ? current : collection.put(marked);
  if (!isGone(stored)) return { object: stored, gone: false };
  collection.remove(stored);
  return { object: stored, gone: true };
}

function checkPreconditions(current: ModelObject, { type, name, options }: Deletion): void {
  const { uid, resourceVersion } = options;
  const target = { type: { ...type, plural: type.kind }, name };
  if (uid !== undefined && uid !== current.metadata.uid) {
    throw conflict(
      target,
      `the UID in the precondition (${uid}) does not match the UID in record (${current.metadata.uid}). The object might have been deleted and then recreated`,
    );
  }
  if (resourceVersion === undefined || resourceVersion === current.metadata.resourceVersion) return;
  throw conflict(
    target,
    `the ResourceVersion in the precondition (${resourceVersion}) does not match the ResourceVersion in record (${current.metadata.resourceVersion}). The object might have been modified`,
  );
}

interface Marking {
  readonly current: ModelObject;
  readonly options: DeleteOptions;
}

function markDeleted(context: ApiContext, marking: Marking): ModelObject {
  const { current } = marking;
  if (current.kind === "Pod" && current.apiVersion === "v1") return markPod(context, marking);
  if (current.metadata.deletionTimestamp !== undefined) return current;
  const deletionTimestamp = timestamp(context.clock.now());
  if (current.kind === "Namespace" && current.apiVersion === "v1") {
    return { ...withMeta(current, { deletionTimestamp }), status: { phase: "Terminating" } };
  }
  if ((current.metadata.finalizers ?? []).length === 0) return current;
  return withMeta(current, { deletionTimestamp, deletionGracePeriodSeconds: 0 });
}

function markPod(context: ApiContext, { current, options }: Marking): ModelObject {
  const asked = options.gracePeriodSeconds;
  // Source: delete.go, BeforeDelete: a negative grace counts as one second.
  const wanted = asked !== undefined && asked < 0 ? 1 : asked;
  if (current.metadata.deletionTimestamp !== undefined) {
    return shortened(context, { current, graceSeconds: wanted });
  }
  const graceSeconds = firstGrace(current, wanted);
  const deadlineAt = plus(context.clock.now(), seconds(graceSeconds));
  return withMeta(current, {
    deletionTimestamp: timestamp(deadlineAt),
    deletionGracePeriodSeconds: graceSeconds,
    generation: (current.metadata.generation ?? 1) + 1,
  });
}

/** Source: kubernetes `pkg/registry/core/pod/strategy.go`, CheckGracefulDelete. */
function firstGrace(pod: ModelObject, wanted: number | undefined): number {
  const spec = fieldsOf(pod.spec);
  const phase = fieldsOf(pod.status).phase;
  if (!spec.nodeName || phase === "Failed" || phase === "Succeeded") return 0;
  const grace = wanted ?? Number(spec.terminationGracePeriodSeconds ?? 0);
  return grace < 0 ? 1 : grace;
}

/** A deletion under way can only be hastened: its deadline is counted from its own beginning. */
function shortened(
  context: ApiContext,
  pod: { current: ModelObject; graceSeconds: number | undefined },
): ModelObject {
  const { current, graceSeconds } = pod;
  const before = current.metadata.deletionGracePeriodSeconds ?? 0;
  if (graceSeconds === undefined || graceSeconds >= before) return current;
  const nowAt = context.clock.now();
  const deadlineAt = parseInstant(current.metadata.deletionTimestamp ?? "") ?? nowAt;
  const movedAt = plus(deadlineAt, seconds(graceSeconds - before));
  if (movedAt >= nowAt) return withDeadline(current, { at: timestamp(movedAt), graceSeconds });
  // The time is up already: still a graceful deletion, unless none was wanted.
  return withDeadline(current, { at: timestamp(nowAt), graceSeconds: graceSeconds === 0 ? 0 : 1 });
}

function withDeadline(
  pod: ModelObject,
  deadline: { at: string; graceSeconds: number },
): ModelObject {
  return withMeta(pod, {
    deletionTimestamp: deadline.at,
    deletionGracePeriodSeconds: deadline.graceSeconds,
  });
}

function isGone(object: ModelObject): boolean {
  const { finalizers, deletionTimestamp, deletionGracePeriodSeconds } = object.metadata;
  if ((finalizers ?? []).length > 0) return false;
  if (object.kind === "Namespace" && object.apiVersion === "v1") {
    const held = fieldsOf(object.spec).finalizers;
    return !Array.isArray(held) || held.length === 0;
  }
  return deletionTimestamp === undefined || (deletionGracePeriodSeconds ?? 0) === 0;
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}
