import type { StreamMessage } from "./stream.ts";

/** Of a list so many items are written at once, some ten kilobytes. */
const itemsAtOnce = 32;

/**
 * A message as server-sent events have it, part by part. The picture of thousands of nodes is
 * megabytes of text: in one piece they stay in memory until the whole heap is collected.
 */
export function* eventParts(message: StreamMessage): Generator<string> {
  const id = "id" in message ? `id: ${message.id}\n` : "";
  yield `${id}data: `;
  yield* jsonParts(message);
  yield "\n\n";
}

/** What `JSON.stringify` gives of plain data. */
export function* jsonParts(value: unknown): Generator<string> {
  if (Array.isArray(value)) yield* listParts(value);
  else if (typeof value === "object" && value !== null && isLarge(value)) yield* fieldParts(value);
  else yield JSON.stringify(value);
}

/** Whether there are lists in it, at some depth. */
function isLarge(value: object): boolean {
  return Object.values(value).some(
    (inner) =>
      typeof inner === "object" &&
      inner !== null &&
      (Array.isArray(inner) ? inner.length > itemsAtOnce : isLarge(inner)),
  );
}

function* listParts(items: readonly unknown[]): Generator<string> {
  for (let from = 0; from < items.length; from += itemsAtOnce) {
    const some = JSON.stringify(items.slice(from, from + itemsAtOnce)).slice(1, -1);
    yield `${from === 0 ? "[" : ","}${some}`;
  }
  yield items.length === 0 ? "[]" : "]";
}

function* fieldParts(value: object): Generator<string> {
  let before = "{";
  for (const [key, inner] of Object.entries(value)) {
    if (inner === undefined) continue;
    yield `${before}${JSON.stringify(key)}:`;
    yield* jsonParts(inner);
    before = ",";
  }
  yield "}";
}
