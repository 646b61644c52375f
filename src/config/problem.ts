import type { Pointer } from "./yaml-text.ts";

/** One mistake in an object, with its place. */
export interface Problem {
  /** Where it is; for a missing field, where it should be. */
  readonly pointer: Pointer;
  readonly found: string;
  readonly wanted: string;
  /** The schema has no field of this name: a typo in a file, a newer field in a cluster. */
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

/** A value in a sentence: text in quotes, a list or an object by its type. */
export function describeValue(value: unknown): string {
  if (value === undefined || value === null) return "nothing";
  if (typeof value === "string") return JSON.stringify(shorten(value));
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : "a list";
  return typeof value === "object" ? "an object" : String(value);
}

function shorten(text: string): string {
  return text.length > 80 ? `${text.slice(0, 77)}…` : text;
}

/** The address that is meant by `am:9093` or `example.com/path`. */
export function addressMeant(text: string): string | undefined {
  const [, port] = /^[a-z0-9.-]+(:\d+)?(?:\/[^\s?#{}@\\]*)?$/i.exec(text) ?? [];
  if (port !== undefined) return `http://${text}`;
  return /^[a-z0-9-]+(?:\.[a-z0-9-]+)+(?:\/|$)/i.test(text) ? `https://${text}` : undefined;
}

/** The candidate that a mistyped word most likely means; undefined if none is similar. */
export function didYouMean(word: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined;
  const letters = word.replace(/^-+/, "");
  let bestEdits = Math.max(1, Math.floor(letters.length / 3)) + 1;
  for (const candidate of candidates) {
    const edits = countEdits(word.toLowerCase(), candidate.toLowerCase());
    if (edits < bestEdits) {
      best = candidate;
      bestEdits = edits;
    }
  }
  return best;
}

/**
 * The number of letters to insert, delete, replace or swap with a neighbor to turn `from` into
 * `to`. Optimal string alignment distance (Damerau 1964), three rows at a time.
 */
function countEdits(from: string, to: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const same = from[row - 1] === to[column - 1];
      let edits = Math.min(
        at(last, column) + 1,
        at(current, column - 1) + 1,
        at(last, column - 1) + (same ? 0 : 1),
      );
      const swapped =
        row > 1 &&
        column > 1 &&
        from[row - 1] === to[column - 2] &&
        from[row - 2] === to[column - 1];
      if (swapped) edits = Math.min(edits, at(beforeLast, column - 2) + 1);
      current.push(edits);
    }
    beforeLast = last;
    last = current;
  }
  return at(last, to.length);
}

function at(row: readonly number[], column: number): number {
  return row[column] ?? Number.POSITIVE_INFINITY;
}

/**
 * ` (did you mean …?)` for the name of a node that does not exist: the one node whose short host
 * name it is (`ip-10-0-0-1`), or the one that it differs from in at most two letters. If several
 * are, none: a suggestion that is taken drains a node.
 */
export function nodeHint(name: string, nodes: readonly string[]): string {
  if (/[*?]/.test(name)) return " (it is a pattern: choose nodes by their labels with -l)";
  const listed = name.split(",");
  if (listed.length > 1 && listed.every((one) => nodes.includes(one))) {
    return ` (did you mean ${listed.join(" ")}?)`;
  }
  const lower = name.toLowerCase();
  const full = nodes.filter((one) => one === lower || one.startsWith(`${lower}.`));
  const near = full.length > 0 ? full : nodes.filter((one) => countEdits(lower, one) <= 2);
  return near.length === 1 ? ` (did you mean ${near[0]}?)` : "";
}
