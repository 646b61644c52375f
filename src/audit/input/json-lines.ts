import { createScanner, visit } from "jsonc-parser";

/** What JSON.parse does not report: duplicate keys, and where list items start. */
export interface JsonLines {
  /** The first one in the text. */
  readonly duplicate?: { readonly key: string; readonly line: number } | undefined;
  /** The lines of the objects in the outermost object's `items`, from 1. */
  readonly itemLines: readonly number[];
}

/** Reads text that is known to parse, to the end of its first value. */
export function scanJsonLines(text: string): JsonLines {
  const itemLines: number[] = [];
  let duplicate: JsonLines["duplicate"];
  /** The keys so far of each object that is open. */
  const open: Set<string>[] = [];
  visit(text, {
    onObjectBegin: (_offset, _length, line, _column, pathOf) => {
      if (open.length === 1 && isItem(pathOf())) itemLines.push(line + 1);
      open.push(new Set());
    },
    onObjectProperty: (key, _offset, _length, line) => {
      const keys = open.at(-1);
      if (keys?.has(key)) duplicate ??= { key, line: line + 1 };
      keys?.add(key);
    },
    onObjectEnd: () => {
      open.pop();
    },
  });
  return { duplicate, itemLines };
}

function isItem(path: readonly (string | number)[]): boolean {
  return path.length === 2 && path[0] === "items" && typeof path[1] === "number";
}

/**
 * The line, from 1, of every field with a given name, by its path as JSON: `["spec","replicas"]`.
 */
export function jsonFieldLines(text: string, name: string): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  visit(text, {
    onObjectProperty: (key, _offset, _length, line, _column, pathOf) => {
      if (key === name) found.set(JSON.stringify([...pathOf(), key]), line + 1);
    },
  });
  return found;
}

/** One of several JSON values in a text, and the line on which it starts. */
export interface JsonPart {
  readonly text: string;
  readonly firstLine: number;
}

/**
 * Splits concatenated JSON objects, which some tools write and kubectl reads. Text that is not JSON
 * is split somewhere, and fails to parse there.
 */
export function cutJsonValues(text: string): readonly JsonPart[] {
  const parts: JsonPart[] = [];
  const scanner = createScanner(text, true);
  let depth = 0;
  let from = 0;
  let firstLine = 1;
  for (;;) {
    scanner.scan();
    const at = scanner.getTokenOffset();
    if (at >= text.length) break;
    const char = text[at];
    if (char === "{" || char === "[") depth++;
    else if ((char === "}" || char === "]") && --depth === 0) {
      const part = text.slice(from, at + 1);
      parts.push({ text: part, firstLine });
      firstLine += part.split("\n").length - 1;
      from = at + 1;
    }
  }
  const rest = text.slice(from);
  return rest.trim() === "" ? parts : [...parts, { text: rest, firstLine }];
}
