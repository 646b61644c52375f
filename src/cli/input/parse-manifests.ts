import {
  Composer,
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  Parser,
} from "yaml";
import { nameOf } from "../../core/json/json-field.ts";

/** One document of a file: its value, and where it and the items of its list begin. */
export interface ParsedDocument {
  readonly value: unknown;
  /** From 1. */
  readonly line: number;
  readonly itemLines: readonly number[];
  readonly form: "Json" | "Yaml";
}

export interface ParsedText {
  readonly documents: readonly ParsedDocument[];
  /** One sentence a problem; with any, the documents are not to be used. */
  readonly problems: readonly string[];
}

/**
 * `Lines`: where each item begins, and no key twice, as people write manifests. `Values`: JSON is
 * taken as the engine reads it, in a fraction of the time, as a server has printed it.
 */
export type ReadDetail = "Lines" | "Values";

export interface ManifestText {
  readonly file: string;
  readonly text: string;
  /** Absent: Lines. */
  readonly detail?: ReadDetail | undefined;
  /** The line of the file on which the text begins, from 1; absent: the first. */
  readonly firstLine?: number | undefined;
}

/** Aliases may expand to at most this many nodes, or the file is taken for an alias bomb. */
const maxAliasCount = 1000;

/**
 * JSON that does not parse and is longer than this is not tried as YAML, which takes far longer.
 */
const flowLimitChars = 1_000_000;

/**
 * Parses YAML of any number of documents, or JSON. Keys that are written twice are refused, as
 * Kubernetes' own strict decoding does. Never throws: what is wrong comes back as sentences that
 * name file and line.
 */
export function parseManifests(source: ManifestText): ParsedText {
  const { file, detail = "Lines" } = source;
  const bare = source.text.startsWith("\uFEFF") ? source.text.slice(1) : source.text;
  const yaml = { file, text: bare, firstLine: source.firstLine ?? 1 };
  const start = /\S/.exec(bare)?.[0];
  if (start !== "{" && start !== "[") return parseYaml(yaml);
  const json = parseJson(yaml, detail);
  if (json !== undefined) return json;
  const values = cutJsonValues(bare).map((part) => parseJson({ file, ...part }, detail));
  if (values.length > 1 && values.every((value) => value !== undefined)) return joinTexts(values);
  if (bare.length < flowLimitChars) return parseYaml(yaml);
  const problem = `Cannot read ${file}: it looks like JSON but cannot be parsed, expected JSON or YAML`;
  return { documents: [], problems: [problem] };
}

/** What several parts of one text hold, in their order. */
export function joinTexts(parts: readonly ParsedText[]): ParsedText {
  return {
    documents: parts.flatMap((part) => part.documents),
    problems: parts.flatMap((part) => part.problems),
  };
}

/** One JSON value; undefined for text that is none. */
function parseJson(
  { file, text, firstLine }: PlacedText,
  detail: ReadDetail,
): ParsedText | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { duplicate, itemLines }: JsonLines =
    detail === "Lines" ? scanJsonLines(text) : { itemLines: [] };
  const before = firstLine - 1;
  if (duplicate !== undefined) {
    const { key, line } = duplicate;
    return { documents: [], problems: [duplicateKey({ file, key, line: line + before })] };
  }
  const line = before + text.slice(0, text.search(/\S/)).split("\n").length;
  return {
    documents: [{ value, line, itemLines: itemLines.map((one) => one + before), form: "Json" }],
    problems: [],
  };
}

/** Documents are composed one by one, so that only one syntax tree is held at a time. */
function parseYaml(source: PlacedText): ParsedText {
  const lines = new LineCounter();
  const documents: ParsedDocument[] = [];
  const problems: string[] = [];
  const composer = new Composer(composerOptions);
  try {
    for (const document of composer.compose(new Parser(lines.addNewLine).parse(source.text))) {
      const read = readDocument({ ...source, document, lines });
      if (typeof read === "string") problems.push(read);
      else if (read !== undefined) documents.push(read);
    }
  } catch (thrown) {
    problems.push(notPlain(source.file, source.firstLine, thrown));
  }
  return { documents, problems };
}

/** The parser's own search for keys that are written twice compares each with each. */
const composerOptions = {
  merge: true,
  uniqueKeys: false,
  prettyErrors: false,
  logLevel: "silent",
} as const;

interface PlacedText {
  readonly file: string;
  readonly text: string;
  readonly firstLine: number;
}

interface ManifestDocument extends PlacedText {
  readonly document: Document.Parsed;
  readonly lines: LineCounter;
}

/** The document's value, one sentence where it has none, or undefined where it is empty. */
function readDocument(source: ManifestDocument): ParsedDocument | string | undefined {
  const { document } = source;
  const error = document.errors[0];
  if (error !== undefined) return describeError(source, error);
  const { contents } = document;
  if (contents === null) return undefined;
  const line = lineAt(source, contents.range[0]);
  try {
    const faulty = faultyKey(contents, document);
    if (faulty !== undefined) return describeKey(source, faulty);
    const value: unknown = document.toJS({ maxAliasCount });
    if (value === null) return undefined;
    return { value, line, itemLines: itemLinesOf(source), form: "Yaml" };
  } catch (thrown) {
    return notPlain(source.file, line, thrown);
  }
}

/** What only hostile text does to a parser: nesting or aliases without end. */
function notPlain(file: string, line: number, thrown: unknown): string {
  const why = thrown instanceof Error ? thrown.message : String(thrown);
  return `Cannot read ${file}:${line}: ${nameOf(lowerFirst(why))}, expected plain YAML`;
}

interface FaultyKey {
  readonly offset: number;
  readonly fault:
    | { readonly kind: "Twice"; readonly key: string }
    | { readonly kind: "NoText"; readonly what: "a list" | "an object" };
}

/**
 * The first key that one object has twice, as text, which JSON makes of it; or that JSON could not
 * have: `{{ .Values.replicas }}` is YAML, an object whose key is an object.
 */
function faultyKey(node: unknown, document: Document.Parsed): FaultyKey | undefined {
  if (isSeq(node)) return firstOf(node.items, (item) => faultyKey(item, document));
  if (!isMap(node)) return undefined;
  const seen = new Set<string>();
  return firstOf(node.items, ({ key, value }) => {
    const offset = isNode(key) ? (key.range?.[0] ?? 0) : 0;
    const meant = isAlias(key) ? key.resolve(document) : key;
    if (isMap(meant)) return { offset, fault: { kind: "NoText", what: "an object" } };
    if (isSeq(meant)) return { offset, fault: { kind: "NoText", what: "a list" } };
    if (isScalar(key)) {
      const text = key.source ?? String(key.value);
      if (seen.has(text)) return { offset, fault: { kind: "Twice", key: text } };
      seen.add(text);
    }
    return faultyKey(value, document);
  });
}

function firstOf<Item, Found>(
  items: readonly Item[],
  find: (item: Item) => Found | undefined,
): Found | undefined {
  for (const item of items) {
    const found = find(item);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The line in the file, from 1, of an offset in the text. */
function lineAt({ lines, firstLine }: ManifestDocument, offset: number): number {
  return lines.linePos(offset).line + firstLine - 1;
}

function describeError(source: ManifestDocument, error: Document.Parsed["errors"][number]): string {
  const [from] = error.pos;
  const wanted = isTemplate(source, from) ? "the output of helm template" : "YAML";
  return `Cannot read ${source.file}:${lineAt(source, from)}: ${nameOf(lowerFirst(error.message))}, expected ${wanted}`;
}

function describeKey(source: ManifestDocument, { offset, fault }: FaultyKey): string {
  const { file } = source;
  const line = lineAt(source, offset);
  if (fault.kind === "Twice") return duplicateKey({ file, key: fault.key, line });
  const wanted = isTemplate(source, offset) ? "the output of helm template" : "text";
  return `Cannot read ${file}:${line}: a key is ${fault.what}, expected ${wanted}`;
}

/** Whether the line of this offset looks like a template that is not rendered. */
function isTemplate({ text, lines }: ManifestDocument, offset: number): boolean {
  const at = lines.linePos(offset).line;
  return text.slice(lines.lineStarts[at - 1] ?? 0, lines.lineStarts[at]).includes("{{");
}

function duplicateKey(at: {
  readonly file: string;
  readonly line: number;
  readonly key: string;
}): string {
  return `Cannot read ${at.file}:${at.line}: the key ${nameOf(at.key)} appears twice in one object, expected once`;
}

function itemLinesOf(source: ManifestDocument): readonly number[] {
  const { document } = source;
  const items = isMap(document.contents) ? document.contents.get("items", true) : undefined;
  if (!isSeq(items)) return [];
  return items.items.map((item) => (isNode(item) ? lineAt(source, item.range?.[0] ?? 0) : 0));
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}

/** What JSON.parse does not report: a key that is written twice, and where list items begin. */
interface JsonLines {
  readonly duplicate?: { readonly key: string; readonly line: number } | undefined;
  /** The lines of the items of the outermost object's `items`, from 1. */
  readonly itemLines: readonly number[];
}

/** An object or a list that is open at a place in the text. */
interface Open {
  /** The keys so far of an object; undefined for a list. */
  readonly keys: Set<string> | undefined;
  /** The key, or the index, of the value that comes next or is being read. */
  step: string | number;
}

interface JsonVisitor {
  /** An object or a list begins inside those that are open. */
  readonly onOpen?: (bracket: "{" | "[", line: number, open: readonly Open[]) => void;
  /** A key, as the last of those that are open shows it; gives whether the walk goes on. */
  readonly onKey: (key: string, line: number, open: readonly Open[]) => "GoOn" | "Stop";
}

/**
 * Walks over JSON that is known to parse, to the end of its first value. It exists because
 * JSON.parse takes the last of two equal keys without a word, and gives no positions.
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

/** Where the items of a list begin, and the first key that one object has twice. */
function scanJsonLines(text: string): JsonLines {
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

/** The line, from 1, of every field of a name, by its path as JSON: `["spec","replicas"]`. */
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

/** One of several JSON values in a text, and the line on which it begins. */
export interface JsonPart {
  readonly text: string;
  readonly firstLine: number;
}

/**
 * Cuts JSON objects that stand one after the other, as some tools write and kubectl reads them.
 * What is no JSON is cut somewhere, and fails to parse there.
 */
function cutJsonValues(text: string): readonly JsonPart[] {
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
