/**
 * Copies JSON deeply and freezes the copy, so that the store can share it with every reader.
 * Properties that are undefined are left out, as a wire would. A part that is frozen already is
 * taken as it is: all data of this code base are frozen to the bottom or not at all.
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

/** Freezes a value of our own making in place; stops where it meets a frozen part. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  for (const key in value) deepFreeze(value[key]);
  return Object.freeze(value);
}

/** Like `frozenCopy`, and leaves members out that are null, as typed Kubernetes fields do. */
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

/** Whether two JSON values mean the same; shared parts cost nothing. */
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
