import { isRecord } from "./frozen-copy.ts";

/** Lists that server-side apply merges by key in the kinds that we write. */
const mapKeys: Readonly<Record<string, string>> = {
  conditions: "type",
  containers: "name",
  env: "name",
  initContainers: "name",
  ownerReferences: "uid",
  volumes: "name",
};

/**
 * Server-side apply, simplified: what is applied wins, what is not mentioned stays. Owners of
 * fields are not tracked, so nothing conflicts and a field that is no longer applied is not
 * taken away (declared as a gap in the contract suite).
 */
export function applyConfiguration(document: unknown, applied: unknown): unknown {
  if (!isRecord(applied)) return applied;
  const result: Record<string, unknown> = isRecord(document) ? { ...document } : {};
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
    const at = merged.findIndex((one) => isRecord(one) && isRecord(item) && one[key] === item[key]);
    if (at < 0) merged.push(item);
    else merged[at] = applyConfiguration(merged[at], item);
  }
  return merged;
}
