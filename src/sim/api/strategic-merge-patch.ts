import { isRecord, type JsonRecord } from "./frozen-copy.ts";

/**
 * Lists of the built-in kinds that are merged by a key instead of being replaced, by the name of
 * their field. Source: the `patchMergeKey` tags of k8s.io/api. Node taints are atomic.
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
 * A strategic merge patch as kubectl sends it: objects merge, null takes away, lists with a merge
 * key merge by it. `$patch`, `$deleteFromPrimitiveList` and `$retainKeys` are understood,
 * `$setElementOrder` is not obeyed. Source: k8s.io/apimachinery `pkg/util/strategicpatch`.
 */
export function applyStrategicMergePatch(document: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return patch;
  if (patch.$patch === "replace") return withoutDirectives(patch);
  if (patch.$patch === "delete") return {};
  const result = retained(isRecord(document) ? { ...document } : {}, patch.$retainKeys);
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
  if (change.some((item) => isRecord(item) && item.$patch === "replace")) {
    return change.filter((item) => !(isRecord(item) && "$patch" in item));
  }
  return change.reduce<readonly unknown[]>((list, item) => mergeItem(list, { key, item }), before);
}

/** `ports` has two keys: `containerPort` in a container, `port` in a Service. */
function mergeKeyOf(field: string, change: readonly unknown[]): string | undefined {
  if (field !== "ports") return mergeKeys[field];
  return change.some((item) => isRecord(item) && "containerPort" in item)
    ? "containerPort"
    : "port";
}

function mergeItem(
  list: readonly unknown[],
  patch: { key: string; item: unknown },
): readonly unknown[] {
  const { key, item } = patch;
  if (!isRecord(item)) return [...list, item];
  const at = list.findIndex((one) => isRecord(one) && one[key] === item[key]);
  if (item.$patch === "delete") return at < 0 ? list : list.toSpliced(at, 1);
  if (at < 0) return [...list, applyStrategicMergePatch({}, item)];
  return list.with(at, applyStrategicMergePatch(list[at], item));
}

function retained(document: Record<string, unknown>, keys: unknown): Record<string, unknown> {
  if (!Array.isArray(keys)) return document;
  return Object.fromEntries(Object.entries(document).filter(([key]) => keys.includes(key)));
}

function withoutDirectives(value: unknown): unknown {
  if (!isRecord(value)) return value;
  const kept = Object.entries(value as JsonRecord).filter(([key]) => !key.startsWith("$"));
  return Object.fromEntries(kept.filter(([, member]) => member !== null));
}
