import { isRecord } from "./frozen-copy.ts";

/** RFC 7386: null takes a member away, lists are replaced whole. */
export function applyMergePatch(document: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return patch;
  const result: Record<string, unknown> = isRecord(document) ? { ...document } : {};
  for (const [key, change] of Object.entries(patch)) {
    if (change === null) delete result[key];
    else result[key] = applyMergePatch(result[key], change);
  }
  return result;
}
