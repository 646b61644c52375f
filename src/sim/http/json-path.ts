import { isRecord, recordOf } from "../api/frozen-copy.ts";

const step =
  /\.((?:[^.[\\]|\\.)+)|\[(\d+)\]|\[\?\(@\.([\w.]+)\s*==\s*["']([^"']*)["']\)\]|\[["']([^"']+)["']\]/g;

/**
 * Reads what a printer column's `jsonPath` names, such as `.status.phase`,
 * `.metadata.labels.example\.com/a` or `.status.conditions[?(@.type=="Ready")].status`;
 * undefined where there is nothing. Only these forms are understood.
 */
export function readJsonPath(object: unknown, path: string): unknown {
  let value: unknown = object;
  for (const [, name, index, field, wanted, quoted] of path.matchAll(step)) {
    if (index !== undefined) value = Array.isArray(value) ? value[Number(index)] : undefined;
    else if (field !== undefined) value = firstWith(value, { field, wanted: wanted ?? "" });
    else value = recordOf(value)[(quoted ?? name ?? "").replaceAll("\\", "")];
  }
  return value;
}

function firstWith(list: unknown, match: { field: string; wanted: string }): unknown {
  if (!Array.isArray(list)) return undefined;
  return list.find((item) => isRecord(item) && String(item[match.field]) === match.wanted);
}
