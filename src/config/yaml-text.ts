import { type Document, isMap, isScalar, LineCounter, parseAllDocuments, stringify } from "yaml";
import { withKubernetesScalars } from "./kubernetes-scalar.ts";

/** The path to a value inside a document: field names and list indexes. */
export type Pointer = readonly (string | number)[];

/** One document of a YAML text: plain data and its line numbers. */
export interface YamlDocument {
  readonly value: unknown;
  /** The line (from 1) of the value at the pointer, or of its nearest ancestor in the text. */
  readonly lineOf: (pointer: Pointer) => number;
}

/** What makes a text invalid or ambiguous as YAML. */
export interface YamlMistake {
  readonly line: number;
  /** The field that occurs twice; unset if the text does not parse at all. */
  readonly pointer?: Pointer;
  readonly found: string;
  readonly wanted: string;
}

export interface YamlText {
  readonly documents: readonly YamlDocument[];
  readonly mistakes: readonly YamlMistake[];
}

/**
 * A policy file has a few kilobytes; a larger file is the wrong one, and parsing it would take
 * minutes.
 */
const largestLength = 4 * 1024 * 1024;

/**
 * How many aliases a document may expand to: enough for any real file, too few for an alias bomb.
 */
const mostAliases = 1000;

/** Reads a YAML text with any number of documents (JSON is YAML). Omits empty documents. */
export function readYaml(text: string, mostChars = largestLength): YamlText {
  if (text.length > mostChars) {
    const found = `a file of ${Math.ceil(text.length / 1_048_576)} MiB`;
    return { documents: [], mistakes: [{ line: 1, found, wanted: "at most 4 MiB of YAML" }] };
  }
  const lines = new LineCounter();
  const options = {
    ...{ lineCounter: lines, prettyErrors: false, uniqueKeys: false, merge: true },
    customTags: withKubernetesScalars,
  };
  const mistakes: YamlMistake[] = [];
  const documents: YamlDocument[] = [];
  for (const document of parseAllDocuments(text, options) as Document.Parsed[]) {
    const found = mistakesOf(document, lines);
    mistakes.push(...found);
    if (found.length > 0) continue;
    const read = toPlainData(document, lines);
    if ("found" in read) mistakes.push(read);
    else if (read.value !== null) documents.push(read);
  }
  return { documents, mistakes };
}

/** Writes plain data as YAML, folded at 100 columns; `12:00`, a number in YAML 1.1, is quoted. */
export function printYaml(value: unknown): string {
  return stringify(value, { lineWidth: 100, aliasDuplicateObjects: false, compat: "yaml-1.1" });
}

function mistakesOf(document: Document.Parsed, lines: LineCounter): readonly YamlMistake[] {
  const broken = document.errors[0];
  if (broken === undefined) return repeatedKeys(document.contents, { lines, at: [] });
  const message = broken.message.split("\n")[0];
  const line = lines.linePos(broken.pos[0]).line;
  return [{ line, found: `invalid YAML (${message})`, wanted: "YAML" }];
}

/** In YAML, the last of two equal keys silently wins; here each key may occur only once. */
function repeatedKeys(
  value: unknown,
  place: { readonly lines: LineCounter; readonly at: Pointer },
): readonly YamlMistake[] {
  if (!isCollection(value)) return [];
  const mistakes: YamlMistake[] = [];
  const firstLine = new Map<unknown, number>();
  for (const [index, item] of value.items.entries()) {
    const isPair = typeof item === "object" && item !== null && "key" in item;
    const key = isPair ? (isScalar(item.key) ? item.key.value : undefined) : index;
    const at = [...place.at, typeof key === "number" ? key : String(key)];
    if (isPair && isScalar(item.key)) {
      const line = place.lines.linePos(item.key.range?.[0] ?? 0).line;
      const before = firstLine.get(key);
      if (before !== undefined && key !== "<<") {
        const wanted = `it once (line ${before} already has it)`;
        mistakes.push({ line, pointer: at, found: "the field a second time", wanted });
      }
      firstLine.set(key, before ?? line);
    }
    mistakes.push(...repeatedKeys(isPair ? item.value : item, { lines: place.lines, at }));
  }
  return mistakes;
}

function isCollection(value: unknown): value is { readonly items: readonly YamlItem[] } {
  return typeof value === "object" && value !== null && "items" in value;
}

type YamlItem = { readonly key: unknown; readonly value: unknown } | null;

function toPlainData(document: Document.Parsed, lines: LineCounter): YamlDocument | YamlMistake {
  try {
    const value: unknown = document.toJS({ maxAliasCount: mostAliases });
    return { value, lineOf: (pointer) => lineOf(document, lines, pointer) };
  } catch (error) {
    const line = lines.linePos(document.range[0]).line;
    const message = error instanceof Error ? error.message : String(error);
    return { line, found: `YAML that cannot be expanded (${message})`, wanted: "plain YAML" };
  }
}

function lineOf(document: Document.Parsed, lines: LineCounter, pointer: Pointer): number {
  let offset = rangeStart(document.contents) ?? document.range[0];
  let node: unknown = document.contents;
  for (const step of pointer) {
    if (!isCollection(node)) break;
    const pair = isMap(node)
      ? node.items.find(({ key }) => isScalar(key) && String(key.value) === String(step))
      : undefined;
    const next: unknown = isMap(node) ? pair?.value : node.items[Number(step)];
    // The line of a field is that of its name, which is above the value of a list or an object.
    offset = rangeStart(pair?.key) ?? rangeStart(next) ?? offset;
    if (next === undefined) break;
    node = next;
  }
  return lines.linePos(offset).line;
}

function rangeStart(node: unknown): number | undefined {
  if (typeof node !== "object" || node === null || !("range" in node)) return undefined;
  const range = node.range as readonly number[] | undefined | null;
  return range?.[0];
}
