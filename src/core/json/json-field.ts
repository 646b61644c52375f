/**
 * Readers of foreign JSON. Each is total: what is missing or of another type counts as absent.
 * Objects and responses are written by many programs, and one odd field must not invalidate the
 * rest.
 */
import { type Instant, parseInstant } from "../time/time.ts";
import { escapedJson, printable } from "./printable-text.ts";

export type Fields = Readonly<Record<string, unknown>>;

const none: Fields = Object.freeze({});

/** Parses JSON; undefined if the text is not JSON. */
export function parseJson(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch {
    return undefined;
  }
}

export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Whether both are equal regardless of the order of their fields; an undefined field counts as
 * absent.
 */
export function isSameJson(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (Array.isArray(one)) {
    if (!Array.isArray(other) || one.length !== other.length) return false;
    return one.every((part, place) => isSameJson(part, other[place]));
  }
  if (!isFields(one) || !isFields(other)) return false;
  // For large objects this is several times faster than comparing two lists of names.
  for (const name in one) if (!isSameJson(one[name], other[name])) return false;
  for (const name in other) if (one[name] === undefined && other[name] !== undefined) return false;
  return true;
}

/** The value as an object; an empty object if it is none. */
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

/** A text without surrounding white space; undefined if nothing is left. */
export function trimmedTextOf(value: unknown): string | undefined {
  return textOf(value)?.trim() || undefined;
}

export function numberOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

export function wholeNumberOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) ? value : undefined;
}

/** An instant of RFC 3339. */
export function instantOf(value: unknown): Instant | undefined {
  return typeof value === "string" ? parseInstant(value) : undefined;
}

/** The entries of an object whose values are text, as labels and annotations are. */
export function textMapOf(value: unknown): Readonly<Record<string, string>> {
  const fields = fieldsOf(value);
  // Nearly always all values are text; then thousands of maps are not copied.
  if (Object.values(fields).every((entry) => typeof entry === "string")) {
    return fields as Readonly<Record<string, string>>;
  }
  const texts = Object.entries(fields).filter(([, entry]) => typeof entry === "string");
  return Object.fromEntries(texts) as Record<string, string>;
}

export function textListOf(value: unknown): readonly string[] {
  return listOf(value).filter((item) => typeof item === "string");
}

/** The value if it is one of `choices`. */
export function oneOf<T extends string>(choices: readonly T[], value: unknown): T | undefined {
  return choices.find((choice) => choice === value);
}

/** The longest excerpt of a text in a sentence. */
const textLimit = 60;

/**
 * A name for a sentence, on one line and without escape sequences: text from a manifest must not
 * draw on a terminal, nor pass commands to a CI system.
 */
export function nameOf(value: unknown): string | undefined {
  const text = textOf(value);
  return text === undefined ? undefined : printable(text);
}

/** Describes a value for a sentence about a value of the wrong type. */
export function describeValue(value: unknown): string {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "an object";
  if (typeof value !== "string") return String(value);
  return `the text ${escapedJson(cut(value))}`;
}

/** The longest text of a server in a message, of which several may have to fit an Event. */
const longestWords = 300;

/**
 * What a server says, for a sentence: on one line, without control characters, and not too long. A
 * webhook of a stranger may have written it.
 */
export function wordsOf(text: string): string {
  const line = nameOf(text.replaceAll(/\s+/g, " ").trim()) ?? "";
  const letters = [...line];
  return letters.length <= longestWords ? line : `${letters.slice(0, longestWords).join("")}…`;
}

/** The start of a service's response: printable ASCII only, quoted. */
export function excerpt(value: unknown): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? String(value));
  const line = text.replaceAll(/[^\x20-\x7e]+/g, " ").trim();
  return line === "" ? "nothing" : JSON.stringify(cut(line));
}

function cut(text: string): string {
  return text.length > textLimit ? `${text.slice(0, textLimit)}…` : text;
}
