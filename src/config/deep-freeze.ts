/** Freezes plain data through and through, and gives it back. */
export function deepFreeze<Data>(data: Data): Data {
  if (typeof data !== "object" || data === null || Object.isFrozen(data)) return data;
  for (const part of Object.values(data)) deepFreeze(part);
  return Object.freeze(data);
}
