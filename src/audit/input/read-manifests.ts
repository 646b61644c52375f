import { normalize } from "node:path";
import { readYaml } from "../../config/yaml-text.ts";
import { describeValue, type Fields, isFields, nameOf } from "../../core/json/json-field.ts";
import { LastcallError } from "../../errors.ts";
import { type PlaceOfField, readKubeletConfiguration } from "../objects/audit-node.ts";
import type { FieldPointer, ManifestSource } from "../objects/manifest.ts";
import { type Platform, parsePlatform } from "../platform.ts";
import { jsonFieldLines } from "./json-lines.ts";
import {
  type ParsedDocument,
  type ParsedText,
  parseManifests,
  type ReadDetail,
} from "./parse-manifests.ts";
import { parseMany } from "./parse-many.ts";

/** The result of reading a file: expected failures are values. */
export type FileContent =
  | { readonly kind: "Text"; readonly text: string }
  | { readonly kind: "TooLarge"; readonly sizeBytes: number }
  | { readonly kind: "Unreadable"; readonly why: string };

export interface DirEntry {
  readonly name: string;
  readonly kind: "File" | "Directory";
}

/** The file system, as far as reading manifests needs it. */
export interface ManifestFiles {
  /** Reads a text file of at most `limitBytes`. */
  readFile(path: string, limitBytes: number): Promise<FileContent>;
  /** The entries of a directory; undefined if the path is not one. */
  readDir(path: string): Promise<readonly DirEntry[] | undefined>;
  /** Reads standard input to its end, at most `limitBytes`. */
  stdin(limitBytes: number): Promise<FileContent>;
}

export interface ReadManifests {
  readonly sources: readonly ManifestSource[];
  /** One sentence each; all files are read before any problem is reported. */
  readonly problems: readonly string[];
  /** Likewise, for files that could not be read at all. */
  readonly unreadable: readonly string[];
  /** Files without documents, and folders without files. */
  readonly empty: readonly { readonly path: string; readonly kind: "File" | "Folder" }[];
  /** Lists of one kind without items, such as a `DaemonSetList`: an empty list is a fact too. */
  readonly emptyLists: readonly ManifestSource[];
  /** Documents and items that are objects but not Kubernetes objects, with where each starts. */
  readonly others: readonly string[];
  /** What was skipped, or is read in another way than it seems, one sentence each. */
  readonly notes: readonly string[];
}

/** A longer file is refused: nobody writes such a manifest, and it would take too long to read. */
export const fileLimitBytes = 64 * 1024 * 1024;

/** A server's output for a large cluster may be longer, up to the longest possible string. */
const valuesLimitBytes = 500 * 1024 * 1024;

const manifestFile = /\.(ya?ml|json)$/i;

const kustomization = /^(kustomization\.ya?ml|Kustomization)$/;

interface Found {
  readonly detail: ReadDetail;
  readonly sources: ManifestSource[];
  readonly problems: string[];
  readonly unreadable: string[];
  readonly empty: ReadManifests["empty"][number][];
  readonly emptyLists: ManifestSource[];
  readonly others: string[];
  readonly notes: string[];
}

/**
 * Reads manifests from files, from directories recursively, and from standard input (`-`). Lists
 * are split into their items. A file that is named twice is read once. `onFile` is called before
 * each file with the number of files read so far.
 */
export async function readManifests(
  paths: readonly string[],
  options: {
    readonly files: ManifestFiles;
    readonly onFile?: (filesSoFar: number) => void;
    /** Default: Lines. */
    readonly detail?: ReadDetail;
  },
): Promise<ReadManifests> {
  const { files, detail = "Lines" } = options;
  const found: Found = {
    detail,
    ...{
      sources: [],
      problems: [],
      unreadable: [],
      empty: [],
      emptyLists: [],
      others: [],
      notes: [],
    },
  };
  const texts: SourceText[] = [];
  const known = new Set<string>();
  for (const path of paths) {
    const listed = await listFiles({ path, files, found });
    if (listed.length === 0) found.empty.push({ path, kind: "Folder" });
    for (const file of listed) {
      if (known.has(normalize(file))) continue;
      known.add(normalize(file));
      options.onFile?.(texts.length);
      const text = await readText(file, files, detail);
      if (text.kind === "Text") texts.push({ file, text: text.text });
      else found.unreadable.push(text.problem);
    }
  }
  const named = texts.map(({ file, text }) => ({ file: nameOfFile(file), text }));
  const parsed =
    detail === "Lines"
      ? await parseMany(named)
      : named.map((text) => parseManifests({ ...text, detail }));
  texts.forEach((source, at) => {
    takeText(found, source, parsed[at] ?? { documents: [], problems: [], warnings: [] });
  });
  return found;
}

interface SourceText {
  /** As named on the command line: `-` is standard input. */
  readonly file: string;
  readonly text: string;
}

/** A file's name within a sentence. */
function nameOfFile(file: string): string {
  return file === "-" ? "standard input" : file;
}

/**
 * Reads one file that must exist; returns its text, or a sentence that says why it cannot be read.
 */
export async function readText(
  file: string,
  files: ManifestFiles,
  detail: ReadDetail = "Lines",
): Promise<
  | { readonly kind: "Text"; readonly text: string }
  | { readonly kind: "Problem"; readonly problem: string }
> {
  const limitBytes = detail === "Lines" ? fileLimitBytes : valuesLimitBytes;
  const content = await (file === "-" ? files.stdin(limitBytes) : files.readFile(file, limitBytes));
  if (content.kind === "Text") return content;
  const limitMiB = limitBytes / 1024 / 1024;
  const why =
    content.kind === "TooLarge"
      ? `it has ${Math.ceil(content.sizeBytes / 1024 / 1024)} MiB, expected at most ${limitMiB} MiB`
      : `${content.why}, expected a readable file`;
  return { kind: "Problem", problem: `Cannot read ${nameOfFile(file)}: ${why}` };
}

export const unrenderedChart = "it is an unrendered Helm chart, pass the output of helm template";

async function listFiles(options: {
  readonly path: string;
  readonly files: ManifestFiles;
  readonly found: Found;
}): Promise<readonly string[]> {
  const { path, files, found } = options;
  const entries = path === "-" ? undefined : await files.readDir(path);
  if (entries === undefined) return [path];
  if (entries.some((entry) => entry.name === "Chart.yaml")) {
    found.problems.push(`Cannot read ${path}: ${unrenderedChart}`);
    return [];
  }
  if (entries.some((entry) => kustomization.test(entry.name))) {
    found.notes.push(
      `${path} is a Kustomize folder: its patches are audited as if they were whole objects, pass the output of kubectl kustomize instead`,
    );
  }
  const listed: string[] = [];
  for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    if (entry.name.startsWith(".") || entry.name === "node_modules") continue;
    const below = `${path.replace(/\/+$/, "")}/${entry.name}`;
    if (nameOf(entry.name) !== entry.name) {
      found.problems.push(
        `Cannot read ${nameOf(below)}: its name contains control characters, rename it`,
      );
      continue;
    }
    if (entry.kind === "Directory") {
      listed.push(...(await listFiles({ path: below, files, found })));
    } else if (manifestFile.test(entry.name)) listed.push(below);
  }
  return listed;
}

/** Adds the contents of one text to `found`. */
function takeText(found: Found, { file, text }: SourceText, parsed: ParsedText): void {
  found.problems.push(...parsed.problems);
  // A handwritten manifest is read as kubectl reads it; a recording with a key twice is none.
  (found.detail === "Lines" ? found.notes : found.problems).push(...parsed.warnings);
  if (parsed.documents.length + parsed.problems.length === 0) {
    found.empty.push({ path: file, kind: "File" });
  }
  for (const document of parsed.documents) {
    const { value, line, itemLines } = document;
    const lineOf = found.detail === "Lines" ? fieldLines(text, document) : () => undefined;
    takeObject(found, { file, value, line, itemLines, lineOf });
  }
}

interface Placed extends Omit<ParsedDocument, "form"> {
  readonly file: string;
  readonly lineOf: LineOfField;
}

function takeObject(found: Found, object: Placed): void {
  const { file, line, value, lineOf } = object;
  const place = `${nameOfFile(file)}:${line}`;
  if (!isFields(value)) {
    const what = describeValue(value);
    found.problems.push(`Cannot read ${place}: it is ${what}, expected a Kubernetes object`);
  } else if (isListWithoutList(value)) {
    const what = describeValue(value.items);
    const itemsLine = lineOf(["items"]) ?? line;
    const itemsPlace = `${nameOfFile(file)}:${itemsLine}`;
    found.problems.push(`Cannot read ${itemsPlace}: items is ${what}, expected a list`);
  } else if (isList(value)) takeItems(found, { object, list: value });
  else if (typeof value.kind !== "string" || !isVersioned(value, found.detail)) {
    found.others.push(place);
  } else found.sources.push({ file, line, json: value, lineOf });
}

/**
 * The output of a server is one of its objects, even if the fields that say so were removed later.
 */
function isVersioned({ apiVersion }: Fields, detail: ReadDetail): boolean {
  return detail === "Values" || typeof apiVersion === "string";
}

interface List extends Fields {
  readonly items: readonly unknown[];
}

function isList(value: Fields): value is List {
  const { kind, items } = value;
  return typeof kind === "string" && kind.endsWith("List") && Array.isArray(items);
}

/** A List whose items are not a list; missing items are an empty list, as Go writes it. */
function isListWithoutList({ kind, items }: Fields): boolean {
  return kind === "List" && items !== undefined && items !== null && !Array.isArray(items);
}

/** Items of a `DeploymentList` need not state their kind; those of a `List` must. */
function takeItems(
  found: Found,
  { object, list }: { readonly object: Placed; readonly list: List },
): void {
  const { file } = object;
  const kind = String(list.kind).slice(0, -"List".length);
  if (list.items.length === 0 && kind !== "") found.emptyLists.push({ file, json: list });
  const head = kind === "" ? {} : { apiVersion: list.apiVersion, kind };
  list.items.forEach((item, index) => {
    const line = object.itemLines[index] || object.line;
    if (isFields(item)) {
      const lineOf: LineOfField = (field) => object.lineOf(["items", index, ...field]);
      takeObject(found, { file, line, itemLines: [], value: { ...head, ...item }, lineOf });
      return;
    }
    const what = describeValue(item);
    found.problems.push(
      `Cannot read ${nameOfFile(file)}:${line}: items[${index}] is ${what}, expected a Kubernetes object`,
    );
  });
}

/** The line, from 1, of a field in its file; undefined if no part of its path is written there. */
type LineOfField = (pointer: FieldPointer) => number | undefined;

/**
 * Finds the lines of fields in a document that was parsed from `text` before. Only an error needs
 * them, so the text is parsed a second time then, and no lines are kept otherwise.
 */
export function fieldLines(
  text: string,
  { line, form }: Pick<ParsedDocument, "line" | "form">,
): LineOfField {
  let find: LineOfField | undefined;
  return (pointer) => {
    find ??= form === "Json" ? findInJson(fromLine(text, line)) : findInYaml(fromLine(text, line));
    const found = find(pointer);
    return found === undefined ? undefined : found + line - 1;
  };
}

function fromLine(text: string, line: number): string {
  let from = 0;
  for (let passed = 1; passed < line; passed += 1) from = text.indexOf("\n", from) + 1;
  return text.slice(from);
}

function findInYaml(text: string): LineOfField {
  const next = text.indexOf("\n---");
  const own = next < 0 ? text : text.slice(0, next + 1);
  const [document] = readYaml(own, Number.POSITIVE_INFINITY).documents;
  return (pointer) => document?.lineOf(pointer);
}

/** A missing field is reported at the nearest one around it. */
function findInJson(text: string): LineOfField {
  const byName = new Map<string, ReadonlyMap<string, number>>();
  const find: LineOfField = (pointer) => {
    const name = pointer.findLast((step) => typeof step === "string");
    if (name === undefined) return undefined;
    const lines = byName.get(name) ?? jsonFieldLines(text, name);
    byName.set(name, lines);
    return lines.get(JSON.stringify(pointer)) ?? find(pointer.slice(0, -1));
  };
  return find;
}

/**
 * A platform as typed; reads its file if it names one. Throws USAGE, INPUT_UNREADABLE,
 * INPUT_INVALID.
 */
export async function loadPlatform(text: string, files: ManifestFiles): Promise<Platform> {
  const request = parsePlatform(text);
  if (request.kind === "Ready") return request.platform;
  const { json, place } = await loadDocument(request.path, files);
  const groups = readKubeletConfiguration(json, place);
  return { name: request.name, groups, source: "File" };
}

/** The single document of a small file, and the lines of its fields. */
export async function loadDocument(
  path: string,
  files: ManifestFiles,
): Promise<{ readonly json: unknown; readonly place: PlaceOfField }> {
  const text = await readText(path, files);
  if (text.kind === "Problem") throw new LastcallError("INPUT_UNREADABLE", text.problem);
  const { documents, problems, warnings } = parseManifests({ file: path, text: text.text });
  // A kubelet decodes its configuration strictly, so it would not start with a duplicate key.
  const faults = [...problems, ...warnings.map((warning) => `Cannot read ${warning}`)];
  if (faults.length > 0) throw new LastcallError("INPUT_INVALID", faults.join("\n"));
  const [document] = documents;
  if (documents.length === 1 && document !== undefined) {
    const lineOf = fieldLines(text.text, document);
    return {
      json: document.value,
      place: (field) => `${path}:${lineOf(field) ?? document.line}`,
    };
  }
  throw new LastcallError(
    "INPUT_INVALID",
    `Cannot read ${path}: it contains ${documents.length} documents, expected exactly one`,
  );
}
