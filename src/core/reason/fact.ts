/**
 * The facts of sentences. The name of a fact says what it is: `at`, `until` and names in `At` are
 * instants, and so are names in `Time`, written as people write them; names in `Ms` are spans;
 * names in `Seconds` and those of `counts` are numbers; those of `sayings` are sentences
 * themselves, or other text; any other is a word.
 */
import {
  briefInstant,
  formatInstant,
  formatRounded,
  type Instant,
  type Millis,
} from "../time/time.ts";

const counts = [
  ...(["departures", "nodes", "pods", "waves", "some", "more", "held", "left", "killed"] as const),
  ...(["drained", "cut", "missedCut", "plannedCut", "cutAsPlanned", "forced", "past"] as const),
  ...(["shut", "helpless", "overdue", "expiring", "noticed", "percent", "perHour"] as const),
  ...(["wave", "size", "succeeded", "underWay", "ready", "wanted", "notReady"] as const),
  ...(["missing", "most"] as const),
] as const;

const sayings = ["detail", "rest", "who", "where", "bornFrom", "verb", "cures"] as const;

/** What may have spaces and is never a sentence: names, and what people have written. */
const texts: readonly string[] = ["names", "value", "by", "window", "object", "right"];

/** A list may have lists. */
type Sayings<S> = string | S | readonly Sayings<S>[];

/** What a fact of this name is; `S` is a sentence. */
export type FactOf<N extends string, S> = N extends "at" | "until" | `${string}At` | `${string}Time`
  ? Instant
  : N extends `${string}Ms`
    ? Millis
    : N extends (typeof counts)[number] | `${string}Seconds`
      ? number
      : N extends (typeof sayings)[number]
        ? Sayings<S>
        : string;

/** Facts by name; one that is undefined, null or empty is missing. */
export type Facts = Readonly<Record<string, unknown>>;

export function isMissing(value: unknown): boolean {
  return value === undefined || value === null || value === "";
}

export type FactKind =
  | ("Instant" | "BriefInstant" | "Span" | "Number" | "Saying" | "Enumeration" | "Text" | "Pod")
  | "Word";

export function kindOf(name: string): FactKind {
  if (name === "at" || name === "until" || name.endsWith("At")) return "Instant";
  if (name.endsWith("Time")) return "BriefInstant";
  if (name.endsWith("Ms")) return "Span";
  if (name.endsWith("Seconds") || includes(counts, name)) return "Number";
  // A list of these is joined by commas, any other one by semicolons.
  if (name === "cures") return "Enumeration";
  if (includes(sayings, name)) return "Saying";
  if (name === "pod") return "Pod";
  return texts.includes(name) ? "Text" : "Word";
}

function includes(names: readonly string[], name: string): boolean {
  return names.includes(name);
}

/** A fact that is no sentence, as text; in a text of elsewhere it is one already. */
export function factText(kind: FactKind, value: unknown): string {
  if (typeof value !== "number") return String(value);
  switch (kind) {
    case "Instant":
      return formatInstant(value as Instant);
    case "BriefInstant":
      return briefInstant(value as Instant);
    case "Span":
      return formatRounded(value as Millis);
    default:
      return String(value);
  }
}

/** What the text of a fact looks like, as a regular expression. */
export const factPatterns: Readonly<Record<FactKind, string>> = {
  Instant: "\\S+Z",
  BriefInstant: "\\S+Z",
  Span: "\\S+",
  Number: "\\d+(?:\\.\\d+)?",
  Saying: ".+?",
  Enumeration: ".+?",
  Text: ".+?",
  Pod: "\\S+/\\S+",
  Word: "\\S+",
};
