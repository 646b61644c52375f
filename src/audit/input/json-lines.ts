/** What JSON.parse does not report: duplicate keys, and where list items start. */
export interface JsonLines {
  readonly duplicate?: { readonly key: string; readonly line: number } | undefined;
  /** The lines of the items of the outermost object's `items`, from 1. */
  readonly itemLines: readonly number[];
}

/** An object or list that is open at a position in the text. */
interface Open {
  /** The object's keys so far; undefined for a list. */
  readonly keys: Set<string> | undefined;
  /** The key or index of the value that comes next or is being read. */
  step: string | number;
}

interface JsonVisitor {
  /** Called when an object or list starts inside the open ones. */
  readonly onOpen?: (bracket: "{" | "[", line: number, open: readonly Open[]) => void;
  /** Called with a key, in the last of the open ones; returns whether to continue. */
  readonly onKey: (key: string, line: number, open: readonly Open[]) => "GoOn" | "Stop";
}

/**
 * Walks over JSON that is known to parse, to the end of its first value. It exists because
 * JSON.parse silently takes the last of two equal keys, and gives no positions.
 */
function walkJson(text: string, visitor: JsonVisitor): void {
  const open: Open[] = [];
  let line = 1;
  let atKey = false;
  for (let at = 0; at < text.length; at++) {
    const char = text[at];
    const top = open.at(-1);
    if (char === "\n") line++;
    else if (char === "{" || char === "[") {
      visitor.onOpen?.(char, line, open);
      open.push(char === "{" ? { keys: new Set(), step: "" } : { keys: undefined, step: 0 });
      atKey = char === "{";
    } else if (char === "}" || char === "]") {
      open.pop();
      atKey = false;
      if (open.length === 0) return;
    } else if (char === ",") {
      atKey = top?.keys !== undefined;
      if (typeof top?.step === "number") top.step += 1;
    } else if (char === '"') {
      const end = endOfString(text, at);
      if (atKey && top !== undefined) {
        top.step = JSON.parse(text.slice(at, end + 1)) as string;
        if (visitor.onKey(top.step, line, open) === "Stop") return;
        top.keys?.add(top.step);
        atKey = false;
      }
      at = end;
    }
  }
}

/** Where the items of a list start, and the first duplicate key of an object. */
export function scanJsonLines(text: string): JsonLines {
  const itemLines: number[] = [];
  let duplicate: JsonLines["duplicate"];
  walkJson(text, {
    onOpen: (bracket, line, open) => {
      if (bracket === "{" && isItem(open)) itemLines.push(line);
    },
    onKey: (key, line, open) => {
      if (open.at(-1)?.keys?.has(key) !== true) return "GoOn";
      duplicate = { key, line };
      return "Stop";
    },
  });
  return { duplicate, itemLines };
}

/**
 * The line, from 1, of every field with a given name, by its path as JSON: `["spec","replicas"]`.
 */
export function jsonFieldLines(text: string, name: string): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  walkJson(text, {
    onKey: (key, line, open) => {
      if (key === name) found.set(JSON.stringify(open.map(({ step }) => step)), line);
      return "GoOn";
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
  let depth = 0;
  let from = 0;
  let firstLine = 1;
  for (let at = 0; at < text.length; at++) {
    const char = text[at];
    if (char === '"') at = Math.max(at, endOfString(text, at));
    else if (char === "{" || char === "[") depth++;
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

/** Whether the next value is an item of the outermost object's `items`. */
function isItem(open: readonly Open[]): boolean {
  return open.length === 2 && open[0]?.step === "items" && open[1]?.keys === undefined;
}

/** The index of the quote that closes the string opened at `from`; -1 if there is none. */
function endOfString(text: string, from: number): number {
  let end = text.indexOf('"', from + 1);
  while (isEscaped(text, end)) end = text.indexOf('"', end + 1);
  return end;
}

function isEscaped(text: string, at: number): boolean {
  let slashes = 0;
  while (text[at - 1 - slashes] === "\\") slashes++;
  return slashes % 2 === 1;
}
