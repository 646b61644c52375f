/** What JSON.parse does not tell: a key that is written twice, and where list items begin. */
export interface JsonLines {
  readonly duplicate?: { readonly key: string; readonly line: number } | undefined;
  /** The lines of the items of the outermost object's `items`, from 1. */
  readonly itemLines: readonly number[];
}

interface Open {
  /** The keys so far of an object; undefined for a list. */
  readonly keys: Set<string> | undefined;
  lastKey: string;
}

/**
 * Walks over JSON that is known to parse. It exists because JSON.parse takes the last of two equal
 * keys without a word, and gives no positions.
 */
export function scanJsonLines(text: string): JsonLines {
  const open: Open[] = [];
  const itemLines: number[] = [];
  let line = 1;
  let atKey = false;
  for (let at = 0; at < text.length; at++) {
    const char = text[at];
    if (char === "\n") line++;
    else if (char === "{" || char === "[") {
      if (char === "{" && isItem(open)) itemLines.push(line);
      open.push({ keys: char === "{" ? new Set() : undefined, lastKey: "" });
      atKey = char === "{";
    } else if (char === "}" || char === "]") {
      open.pop();
      atKey = false;
    } else if (char === ",") atKey = open.at(-1)?.keys !== undefined;
    else if (char === '"') {
      const end = endOfString(text, at);
      const top = open.at(-1);
      if (atKey && top?.keys !== undefined) {
        const key = JSON.parse(text.slice(at, end + 1)) as string;
        if (top.keys.has(key)) return { duplicate: { key, line }, itemLines };
        top.keys.add(key);
        top.lastKey = key;
        atKey = false;
      }
      at = end;
    }
  }
  return { itemLines };
}

/** One of several JSON values in a text, and the line on which it begins. */
export interface JsonPart {
  readonly text: string;
  readonly firstLine: number;
}

/**
 * Cuts JSON objects that stand one after the other, as some tools write and kubectl reads them.
 * What is no JSON is cut somewhere, and fails to parse there.
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
  return open.length === 2 && open[0]?.lastKey === "items" && open[1]?.keys === undefined;
}

/** The index of the quote that closes the string opened at `from`; -1 where none does. */
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
