import { type Fields, isFields } from "../../core/json/json-field.ts";

/**
 * The merge patch (RFC 7386) that makes the second object of the first: what is missing from it, or
 * from an object in it, is set to null, which removes it.
 */
export function mergePatch(before: Fields, after: Fields): Fields {
  const removed = Object.keys(before).map((field) => [field, null] as const);
  const kept = Object.entries(after).flatMap(([field, value]) => {
    if (value === undefined) return [];
    const former = before[field];
    const isNested = isFields(former) && isFields(value);
    return [[field, isNested ? mergePatch(former, value) : value] as const];
  });
  return { ...Object.fromEntries(removed), ...Object.fromEntries(kept) };
}
