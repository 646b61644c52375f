/** Foreign JSON, read field by field: what is missing or of another type is simply not there. */
export type Fields = Readonly<Record<string, unknown>>;

const none: Fields = Object.freeze({});

export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The value as an object; an empty one where it is none. */
export function fieldsOf(value: unknown): Fields {
  return isFields(value) ? value : none;
}

/** The value behind a path of keys; undefined as soon as a key is missing. */
export function valueAt(value: unknown, path: readonly string[]): unknown {
  let found = value;
  for (const key of path) {
    if (!isFields(found)) return undefined;
    found = found[key];
  }
  return found;
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

export function wholeNumberOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) ? value : undefined;
}

/** The entries of an object whose values are text, as labels and annotations are. */
export function textMapOf(value: unknown): Readonly<Record<string, string>> {
  const entries = Object.entries(fieldsOf(value));
  const texts = entries.filter((entry): entry is [string, string] => typeof entry[1] === "string");
  return Object.fromEntries(texts);
}

export function textListOf(value: unknown): readonly string[] {
  return listOf(value).filter((item) => typeof item === "string");
}

/**
 * A name for a sentence, on one line and without escape sequences: what a stranger wrote into a
 * manifest must not draw on a terminal, nor speak to a CI system in commands of its own.
 */
export function nameOf(value: unknown): string | undefined {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out
  return textOf(value)?.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, "\ufffd");
}

/** A sentence shows no more of a text than this. */
const textLimit = 60;

/** What a value is, for a sentence about a value that should be something else. */
export function describeValue(value: unknown): string {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "an object";
  if (typeof value !== "string") return String(value);
  const shown = value.length > textLimit ? `${value.slice(0, textLimit)}…` : value;
  return `the text ${JSON.stringify(shown)}`;
}
