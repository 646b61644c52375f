import { Composer, type Document, isMap, isNode, isSeq, LineCounter, Parser } from "yaml";
import { scanJsonLines } from "./json-lines.ts";

/** One document of a file: its value, and where it and the items of its list begin. */
export interface ParsedDocument {
  readonly value: unknown;
  /** From 1. */
  readonly line: number;
  readonly itemLines: readonly number[];
}

export interface ParsedText {
  readonly documents: readonly ParsedDocument[];
  /** One sentence a problem; with any, the documents are not to be used. */
  readonly problems: readonly string[];
}

/** Aliases may expand to at most this many nodes, or the file is taken for an alias bomb. */
const maxAliasCount = 100;

/** JSON that does not parse and is longer than this is not tried as YAML, which takes far longer. */
const flowLimitChars = 1_000_000;

/**
 * Parses YAML of any number of documents, or JSON. Keys that are written twice are refused, as
 * Kubernetes' own strict decoding does. Never throws: what is wrong comes back as sentences that
 * name file and line.
 */
export function parseManifests(file: string, text: string): ParsedText {
  const bare = text.startsWith("\uFEFF") ? text.slice(1) : text;
  const start = /\S/.exec(bare)?.[0];
  if (start !== "{" && start !== "[") return parseYaml(file, bare);
  let value: unknown;
  try {
    value = JSON.parse(bare);
  } catch (error) {
    if (bare.length < flowLimitChars) return parseYaml(file, bare);
    const why = error instanceof Error ? error.message : String(error);
    return { documents: [], problems: [`Cannot read ${file}: ${lowerFirst(why)}, JSON is wanted`] };
  }
  const { duplicate, itemLines } = scanJsonLines(bare);
  if (duplicate !== undefined) {
    return { documents: [], problems: [duplicateKey({ file, ...duplicate })] };
  }
  const line = bare.slice(0, bare.search(/\S/)).split("\n").length;
  return { documents: [{ value, line, itemLines }], problems: [] };
}

/** Documents are composed one by one, so that only one syntax tree is held at a time. */
function parseYaml(file: string, text: string): ParsedText {
  const lines = new LineCounter();
  const documents: ParsedDocument[] = [];
  const problems: string[] = [];
  const composer = new Composer({ merge: true, prettyErrors: false, logLevel: "silent" });
  for (const document of composer.compose(new Parser(lines.addNewLine).parse(text))) {
    const read = readDocument({ file, text, document, lines });
    if (typeof read === "string") problems.push(read);
    else if (read !== undefined) documents.push(read);
  }
  return { documents, problems };
}

interface YamlDocument {
  readonly file: string;
  readonly text: string;
  readonly document: Document.Parsed;
  readonly lines: LineCounter;
}

/** The document's value, one sentence where it has none, or undefined where it is empty. */
function readDocument(source: YamlDocument): ParsedDocument | string | undefined {
  const { document, lines } = source;
  const error = document.errors[0];
  if (error !== undefined) return describeError(source, error);
  const { contents } = document;
  if (contents === null) return undefined;
  const line = lines.linePos(contents.range[0]).line;
  try {
    const value: unknown = document.toJS({ maxAliasCount });
    return value === null ? undefined : { value, line, itemLines: itemLinesOf(document, lines) };
  } catch (thrown) {
    const why = thrown instanceof Error ? thrown.message : String(thrown);
    return `Cannot read ${source.file}:${line}: ${lowerFirst(why)}, plain YAML is wanted`;
  }
}

function describeError(
  { file, text, lines }: YamlDocument,
  error: Document.Parsed["errors"][number],
): string {
  const [from] = error.pos;
  const { line } = lines.linePos(from);
  if (error.code === "DUPLICATE_KEY") {
    return duplicateKey({ file, line, key: keyAt(text, from) });
  }
  const row = text.slice(lines.lineStarts[line - 1] ?? 0, lines.lineStarts[line]);
  const wanted = row.includes("{{") ? "the output of helm template is wanted" : "YAML is wanted";
  return `Cannot read ${file}:${line}: ${lowerFirst(error.message)}, ${wanted}`;
}

function keyAt(text: string, offset: number): string {
  return /^["']?([^"':\n]*)/.exec(text.slice(offset, offset + 200))?.[1]?.trim() ?? "";
}

function duplicateKey(at: {
  readonly file: string;
  readonly line: number;
  readonly key: string;
}): string {
  return `Cannot read ${at.file}:${at.line}: the key ${at.key} is written twice in one object, once is wanted`;
}

function itemLinesOf(document: Document.Parsed, lines: LineCounter): readonly number[] {
  const items = isMap(document.contents) ? document.contents.get("items", true) : undefined;
  if (!isSeq(items)) return [];
  return items.items.map((item) => (isNode(item) ? lines.linePos(item.range?.[0] ?? 0).line : 0));
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}
