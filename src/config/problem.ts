import type { Pointer } from "./yaml-text.ts";

/** One mistake in an object, placed. */
export interface Problem {
  /** Where it is; for a field that is missing, where it should be. */
  readonly pointer: Pointer;
  readonly found: string;
  readonly wanted: string;
  /**
   * The field has a name that the schema does not know: a slip in a file, a newer field in a
   * cluster.
   */
  readonly unknownField: boolean;
}

/** `spec.windows[0].days: found an empty list, expected …`: a Problem as part of a sentence. */
export function sentenceOf(problem: Pick<Problem, "pointer" | "found" | "wanted">): string {
  const path = pathOf(problem.pointer);
  const place = path === "" ? "" : `${path}: `;
  return `${place}found ${problem.found}, expected ${problem.wanted}`;
}

/** A pointer as people write it, and as the API server does: `spec.windows[0].days`. */
export function pathOf(pointer: Pointer): string {
  return pointer
    .map((step, index) => {
      if (typeof step === "number") return `[${step}]`;
      if (!/^[A-Za-z_][A-Za-z0-9_-]*$/.test(step)) return `["${step}"]`;
      return index === 0 ? step : `.${step}`;
    })
    .join("");
}

/** A value as a sentence names it: text in quotes, the rest by what it is. */
export function describeValue(value: unknown): string {
  if (value === undefined || value === null) return "nothing";
  if (typeof value === "string") return JSON.stringify(shorten(value));
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : "a list";
  return typeof value === "object" ? "an object" : String(value);
}

function shorten(text: string): string {
  return text.length > 80 ? `${text.slice(0, 77)}…` : text;
}

/** `table, json or yaml`. */
export function orList(words: readonly string[]): string {
  const last = words.at(-1) ?? "";
  return words.length < 2 ? last : `${words.slice(0, -1).join(", ")} or ${last}`;
}
