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
import { withKubernetesScalars } from "../../config/kubernetes-scalar.ts";
import { nameOf } from "../../core/json/json-field.ts";
import { cutJsonValues, scanJsonLines } from "./json-lines.ts";

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
  /** One sentence per document that Kubernetes' tools read, but hardly as its author meant it. */
  readonly warnings: readonly string[];
}

/**
 * `Lines` is for handwritten manifests: it records where each item starts and finds duplicate
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
 * Parses YAML of any number of documents, or JSON. Of duplicate keys the last one counts, as for
 * kubectl and Helm (sigs.k8s.io/yaml, which converts to JSON), with a warning. Never throws:
 * problems are returned as sentences that name file and line.
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
  return { documents: [], problems: [problem], warnings: [] };
}

/** The contents of several parts of one text, in order. */
export function joinTexts(parts: readonly ParsedText[]): ParsedText {
  return {
    documents: parts.flatMap((part) => part.documents),
    problems: parts.flatMap((part) => part.problems),
    warnings: parts.flatMap((part) => part.warnings),
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
  const before = firstLine - 1;
  const line = before + text.slice(0, text.search(/\S/)).split("\n").length;
  const document = { value, line, itemLines: [], form: "Json" } as const;
  if (detail === "Values") return { documents: [document], problems: [], warnings: [] };
  try {
    const { duplicate, itemLines } = scanJsonLines(text);
    return {
      documents: [{ ...document, itemLines: itemLines.map((one) => one + before) }],
      problems: [],
      warnings: duplicate ? [duplicateKey({ file, ...duplicate, before })] : [],
    };
  } catch (thrown) {
    return { documents: [], problems: [notPlain(file, line, thrown)], warnings: [] };
  }
}

/** Documents are composed one by one, so that only one syntax tree is held at a time. */
function parseYaml(source: PlacedText): ParsedText {
  const lines = new LineCounter();
  const documents: ParsedDocument[] = [];
  const problems: string[] = [];
  const warnings: string[] = [];
  const composer = new Composer(composerOptions);
  try {
    for (const document of composer.compose(new Parser(lines.addNewLine).parse(source.text))) {
      const read = readDocument({ ...source, document, lines }, warnings);
      if (typeof read === "string") problems.push(read);
      else if (read !== undefined) documents.push(read);
    }
  } catch (thrown) {
    problems.push(notPlain(source.file, source.firstLine, thrown));
  }
  return { documents, problems, warnings };
}

/** The parser's own search for duplicate keys compares each key with every other. */
const composerOptions = {
  merge: true,
  uniqueKeys: false,
  prettyErrors: false,
  logLevel: "silent" as const,
  customTags: withKubernetesScalars,
};

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
function readDocument(
  source: ManifestDocument,
  warnings: string[],
): ParsedDocument | string | undefined {
  const { document } = source;
  const error = document.errors[0];
  if (error !== undefined) return describeError(source, error);
  const { contents } = document;
  if (contents === null) return undefined;
  const line = lineAt(source, contents.range[0]);
  try {
    const duplicates: FaultyKey[] = [];
    const faulty = faultyKey(contents, { document, duplicates });
    if (faulty !== undefined) return describeKey(source, faulty);
    const [first] = duplicates;
    if (first !== undefined) warnings.push(describeDuplicate(source, first));
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

/** A key in a document: as text, or what it is instead. */
interface FaultyKey {
  readonly offset: number;
  readonly key: string;
}

interface KeySearch {
  readonly document: Document.Parsed;
  /** Takes the duplicate keys of objects, compared as text, as in JSON. */
  readonly duplicates: FaultyKey[];
}

/**
 * The first key that JSON cannot have: `{{ .Values.replicas }}` is YAML for an object whose key is
 * an object.
 */
function faultyKey(node: unknown, search: KeySearch): FaultyKey | undefined {
  if (isSeq(node)) return firstOf(node.items, (item) => faultyKey(item, search));
  if (!isMap(node)) return undefined;
  const seen = new Set<string>();
  return firstOf(node.items, ({ key, value }) => {
    const offset = isNode(key) ? (key.range?.[0] ?? 0) : 0;
    const meant = isAlias(key) ? key.resolve(search.document) : key;
    if (isMap(meant)) return { offset, key: "an object" };
    if (isSeq(meant)) return { offset, key: "a list" };
    if (isScalar(key)) {
      const text = key.source ?? String(key.value);
      if (seen.has(text)) search.duplicates.push({ offset, key: text });
      seen.add(text);
    }
    return faultyKey(value, search);
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

function describeKey(source: ManifestDocument, { offset, key: what }: FaultyKey): string {
  const wanted = isTemplate(source, offset) ? "the output of helm template" : "text";
  const place = `${source.file}:${lineAt(source, offset)}`;
  return `Cannot read ${place}: a key is ${what}, expected ${wanted}`;
}

function describeDuplicate(source: ManifestDocument, { offset, key }: FaultyKey): string {
  const { file, firstLine, lines } = source;
  return duplicateKey({ file, key, line: lines.linePos(offset).line, before: firstLine - 1 });
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
  /** The lines of the file before the text. */
  readonly before: number;
}): string {
  return `${at.file}:${at.line + at.before}: the key ${nameOf(at.key)} appears twice in one object, of which kubectl and Helm read the last, expected once`;
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
