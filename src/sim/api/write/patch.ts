import type { PatchType } from "../../../contracts/kube-api.ts";
import { type Fields, isFields } from "../../../core/json/json-field.ts";
import { badRequest, patchRefused } from "../api-refusal.ts";
import { jsonEqual } from "../store/object-store.ts";

/** How each content type of a PATCH changes a document. */
export const patches: Readonly<Record<PatchType, (document: unknown, patch: unknown) => unknown>> =
  {
    "application/json-patch+json": applyJsonPatch,
    "application/merge-patch+json": applyMergePatch,
    "application/strategic-merge-patch+json": applyStrategicMergePatch,
    "application/apply-patch+yaml": applyConfiguration,
  };

/** The content types of a PATCH, for callers that speak HTTP. */
export const patchTypes = Object.keys(patches) as readonly PatchType[];

/** RFC 7386: null removes a member, lists are replaced whole. */
function applyMergePatch(document: unknown, patch: unknown): unknown {
  if (!isFields(patch)) return patch;
  const result: Record<string, unknown> = isFields(document) ? { ...document } : {};
  for (const [key, change] of Object.entries(patch)) {
    if (change === null) delete result[key];
    else result[key] = applyMergePatch(result[key], change);
  }
  return result;
}

interface Operation {
  readonly op: string;
  readonly path: string;
  readonly from?: string;
  readonly value?: unknown;
}

/** A list of operations is applied whole or not at all; unchanged parts are shared. */
function applyJsonPatch(document: unknown, patch: unknown): unknown {
  if (!Array.isArray(patch)) {
    throw badRequest(
      "error decoding patch: json: cannot unmarshal object into Go value of type jsonpatch.Patch",
    );
  }
  return patch.reduce((current, operation) => applyOperation(current, operation), document);
}

/** RFC 6902; each refusal is the server's 422, which names neither the operation nor the path. */
function applyOperation(document: unknown, operation: Operation): unknown {
  const path = pointerOf(operation.path);
  switch (operation.op) {
    case "add":
      return edit(document, { path, change: (parent, key) => added(parent, key, operation.value) });
    case "replace":
      return edit(document, {
        path,
        change: (parent, key) => replaced(parent, key, operation.value),
      });
    case "remove":
      return edit(document, { path, change: removed });
    case "test":
      mustHold(document, path, operation.value);
      return document;
    case "copy":
      return copyTo(document, path, mustRead(document, pointerOf(operation.from)));
    case "move": {
      const from = pointerOf(operation.from);
      return copyTo(
        edit(document, { path: from, change: removed }),
        path,
        mustRead(document, from),
      );
    }
    default:
      // The server decodes an unknown operation and refuses it only when it applies it.
      throw patchRefused();
  }
}

/** Null tests for absence, but below something that is absent itself nothing holds. */
function mustHold(document: unknown, path: readonly string[], value: unknown): void {
  mustRead(document, path.slice(0, -1));
  if (!jsonEqual(read(document, path) ?? null, value ?? null)) throw patchRefused();
}

function copyTo(document: unknown, path: readonly string[], value: unknown): unknown {
  return edit(document, { path, change: (parent, key) => added(parent, key, value) });
}

function pointerOf(pointer: unknown): readonly string[] {
  if (typeof pointer !== "string") throw patchRefused();
  if (pointer === "") return [];
  if (!pointer.startsWith("/")) throw patchRefused();
  return pointer
    .slice(1)
    .split("/")
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
}

interface Edit {
  readonly path: readonly string[];
  readonly change: (parent: unknown, key: string) => unknown;
}

/** Copies the containers on the path and changes the last one. */
function edit(container: unknown, { path, change }: Edit): unknown {
  const [key, ...rest] = path;
  if (key === undefined) return change({ "": container }, "");
  if (rest.length === 0) return change(container, key);
  const inner = edit(mustRead(container, [key]), { path: rest, change });
  return replaced(container, key, inner);
}

function read(document: unknown, path: readonly string[]): unknown {
  let value = document;
  for (const key of path) value = member(value, key);
  return value;
}

function mustRead(document: unknown, path: readonly string[]): unknown {
  const value = read(document, path);
  if (value === undefined) throw patchRefused();
  return value;
}

function member(container: unknown, key: string): unknown {
  if (Array.isArray(container)) return container[indexOf(key, container.length - 1)];
  return isFields(container) && Object.hasOwn(container, key) ? container[key] : undefined;
}

function added(container: unknown, key: string, value: unknown): unknown {
  if (Array.isArray(container)) {
    const at = key === "-" ? container.length : indexOf(key, container.length);
    return container.toSpliced(at, 0, value);
  }
  if (!isFields(container)) throw patchRefused();
  return { ...container, [key]: value };
}

function replaced(container: unknown, key: string, value: unknown): unknown {
  if (member(container, key) === undefined) throw patchRefused();
  if (Array.isArray(container)) return container.with(indexOf(key, container.length - 1), value);
  return { ...(container as object), [key]: value };
}

function removed(container: unknown, key: string): unknown {
  if (member(container, key) === undefined) throw patchRefused();
  if (Array.isArray(container)) return container.toSpliced(indexOf(key, container.length - 1), 1);
  const { [key]: _gone, ...rest } = container as Record<string, unknown>;
  return rest;
}

function indexOf(key: string, last: number): number {
  const index = /^\d+$/.test(key) ? Number(key) : -1;
  if (index < 0 || index > last) throw patchRefused();
  return index;
}

/**
 * Lists of the built-in kinds that are merged by a key instead of replaced, by field name. Source:
 * the `patchMergeKey` tags of k8s.io/api. Node taints are atomic.
 */
const mergeKeys: Readonly<Record<string, string>> = {
  addresses: "type",
  conditions: "type",
  containers: "name",
  env: "name",
  ephemeralContainers: "name",
  hostAliases: "ip",
  imagePullSecrets: "name",
  initContainers: "name",
  ownerReferences: "uid",
  topologySpreadConstraints: "topologyKey",
  volumeDevices: "devicePath",
  volumeMounts: "mountPath",
  volumes: "name",
};

/** Lists of plain values that are merged as sets. */
const sets = new Set(["finalizers"]);

/**
 * A strategic merge patch as kubectl sends it: objects merge, null removes, lists with a merge key
 * merge by it. `$patch`, `$deleteFromPrimitiveList` and `$retainKeys` are supported,
 * `$setElementOrder` is ignored. Source: k8s.io/apimachinery `pkg/util/strategicpatch`.
 */
function applyStrategicMergePatch(document: unknown, patch: unknown): unknown {
  if (!isFields(patch)) return patch;
  if (patch.$patch === "replace") return withoutDirectives(patch);
  if (patch.$patch === "delete") return {};
  const result = retained(isFields(document) ? { ...document } : {}, patch.$retainKeys);
  for (const [key, change] of Object.entries(patch)) {
    if (key.startsWith("$")) applyDirective(result, key, change);
    else if (change === null) delete result[key];
    else if (Array.isArray(change)) result[key] = mergeList(result[key], { field: key, change });
    else result[key] = applyStrategicMergePatch(result[key], change);
  }
  return result;
}

function applyDirective(result: Record<string, unknown>, directive: string, change: unknown): void {
  const [name, field] = directive.split("/");
  if (name !== "$deleteFromPrimitiveList" || field === undefined) return;
  const current = result[field];
  if (!Array.isArray(current) || !Array.isArray(change)) return;
  result[field] = current.filter((value) => !change.includes(value));
}

function mergeList(
  current: unknown,
  patch: { field: string; change: readonly unknown[] },
): readonly unknown[] {
  const { field, change } = patch;
  const before = Array.isArray(current) ? (current as readonly unknown[]) : [];
  if (sets.has(field)) return [...new Set([...before, ...change])];
  const key = mergeKeyOf(field, change);
  if (key === undefined) return change.map(withoutDirectives);
  if (change.some((item) => isFields(item) && item.$patch === "replace")) {
    return change.filter((item) => !(isFields(item) && "$patch" in item));
  }
  return change.reduce<readonly unknown[]>((list, item) => mergeItem(list, { key, item }), before);
}

/** `ports` has two keys: `containerPort` in a container, `port` in a Service. */
function mergeKeyOf(field: string, change: readonly unknown[]): string | undefined {
  if (field !== "ports") return mergeKeys[field];
  return change.some((item) => isFields(item) && "containerPort" in item)
    ? "containerPort"
    : "port";
}

function mergeItem(
  list: readonly unknown[],
  patch: { key: string; item: unknown },
): readonly unknown[] {
  const { key, item } = patch;
  if (!isFields(item)) return [...list, item];
  const at = list.findIndex((one) => isFields(one) && one[key] === item[key]);
  if (item.$patch === "delete") return at < 0 ? list : list.toSpliced(at, 1);
  if (at < 0) return [...list, applyStrategicMergePatch({}, item)];
  return list.with(at, applyStrategicMergePatch(list[at], item));
}

function retained(document: Record<string, unknown>, keys: unknown): Record<string, unknown> {
  if (!Array.isArray(keys)) return document;
  return Object.fromEntries(Object.entries(document).filter(([key]) => keys.includes(key)));
}

function withoutDirectives(value: unknown): unknown {
  if (!isFields(value)) return value;
  const kept = Object.entries(value as Fields).filter(([key]) => !key.startsWith("$"));
  return Object.fromEntries(kept.filter(([, member]) => member !== null));
}

/** Lists that server-side apply merges by key in the kinds that the project writes. */
const mapKeys: Readonly<Record<string, string>> = {
  conditions: "type",
  containers: "name",
  env: "name",
  initContainers: "name",
  ownerReferences: "uid",
  volumes: "name",
};

/**
 * Simplified server-side apply: applied fields win, fields that are not mentioned stay. Field
 * owners are not tracked, so nothing conflicts, and a field that is no longer applied is not
 * removed (declared as a gap in the contract suite).
 */
function applyConfiguration(document: unknown, applied: unknown): unknown {
  if (!isFields(applied)) return applied;
  const result: Record<string, unknown> = isFields(document) ? { ...document } : {};
  for (const [key, value] of Object.entries(applied)) {
    if (value === null) delete result[key];
    else if (Array.isArray(value)) result[key] = mergeByKey(result[key], value, mapKeys[key]);
    else result[key] = applyConfiguration(result[key], value);
  }
  return result;
}

function mergeByKey(current: unknown, applied: unknown[], key: string | undefined): unknown[] {
  if (key === undefined || !Array.isArray(current)) return applied;
  const merged = [...current];
  for (const item of applied) {
    const at = merged.findIndex((one) => isFields(one) && isFields(item) && one[key] === item[key]);
    if (at < 0) merged.push(item);
    else merged[at] = applyConfiguration(merged[at], item);
  }
  return merged;
}
