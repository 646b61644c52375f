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

/** One document of a file: its value, and the lines on which it and the items of its list start. */
export interface ParsedDocument {
  readonly value: unknown;
  /** Counted from 1. */
  readonly line: number;
  readonly itemLines: readonly number[];
  readonly form: "Json" | "Yaml";
}

export interface ParsedText {
  readonly documents: readonly ParsedDocument[];
  /** One sentence per problem; if there are any, the documents must not be used. */
  readonly problems: readonly string[];
}

/**
 * `Lines` is for handwritten manifests: it records where each item starts and refuses duplicate
 * keys. `Values` is for the output of a server: JSON is parsed by the engine alone, in a fraction
 * of the time.
 */
export type ReadDetail = "Lines" | "Values";

export interface ManifestText {
  readonly file: string;
  readonly text: string;
  /** Default: Lines. */
  readonly detail?: ReadDetail | undefined;
  /** The line of the file on which the text starts, from 1; default: the first. */
  readonly firstLine?: number | undefined;
}

/** Aliases may expand to at most this many nodes; a file with more counts as an alias bomb. */
const maxAliasCount = 1000;

/**
 * JSON that does not parse and is longer than this is not tried as YAML, which takes far longer.
 */
const flowLimitChars = 1_000_000;

/**
 * Parses YAML of any number of documents, or JSON. Duplicate keys are refused, as in Kubernetes'
 * strict decoding. Never throws: problems are returned as sentences that name file and line.
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

/** The contents of several parts of one text, in order. */
export function joinTexts(parts: readonly ParsedText[]): ParsedText {
  return {
    documents: parts.flatMap((part) => part.documents),
    problems: parts.flatMap((part) => part.problems),
  };
}

/** One JSON value; undefined if the text is not JSON. */
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

/** The parser's own search for duplicate keys compares each key with every other. */
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

/** The document's value, a sentence if it has none, or undefined if it is empty. */
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

/** Errors that only hostile text causes in a parser: endless nesting or aliases. */
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
 * The first duplicate key of an object, compared as text, as in JSON; or a key that JSON cannot
 * have: `{{ .Values.replicas }}` is YAML for an object whose key is an object.
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

/** Whether the line at this offset looks like an unrendered template. */
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

/** What JSON.parse does not report: duplicate keys, and where list items start. */
interface JsonLines {
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
