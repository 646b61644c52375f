/** Foreign values in our own sentences: on one line, cut short, and without control characters. */
import { textOf } from "./json-field.ts";

/** A sentence shows no more of a text than this. */
const textLimit = 60;

/**
 * A name for a sentence, on one line and without escape sequences: what anybody wrote into a
 * manifest must not draw on a terminal, nor speak to a CI system in commands of its own.
 */
export function nameOf(value: unknown): string | undefined {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out
  return textOf(value)?.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, "\ufffd");
}

/** What a value is, for a sentence about a value that should be something else. */
export function describeValue(value: unknown): string {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "an object";
  if (typeof value !== "string") return String(value);
  return `the text ${JSON.stringify(cut(value))}`;
}

/** The beginning of what a service answered: printable ASCII only, quoted. */
export function excerpt(value: unknown): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? String(value));
  const line = text.replaceAll(/[^\x20-\x7e]+/g, " ").trim();
  return line === "" ? "nothing" : JSON.stringify(cut(line));
}

function cut(text: string): string {
  return text.length > textLimit ? `${text.slice(0, textLimit)}…` : text;
}
