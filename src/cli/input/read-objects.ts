import { readYaml } from "../../config/yaml-text.ts";
import type { KubeObject } from "../../contracts/kube-api.ts";
import { isFields } from "../../core/json/json-field.ts";
import { describeValue } from "../../core/json/shown-value.ts";
import { LastcallError } from "../../errors.ts";
import type { CommandIo } from "../command-line/command-io.ts";

/** An object, and the file it was read from. */
export interface ReadObject {
  readonly file: string;
  readonly object: KubeObject;
}

/**
 * Reads what `kubectl get … -o json` (or yaml) wrote: files, folders of them, or `-`; single
 * objects, Lists, several documents. A typed list without items is given as it is. Throws
 * INPUT_UNREADABLE, and INPUT_INVALID for what is no Kubernetes object, with file and line.
 */
export async function readObjects(
  paths: readonly string[],
  io: CommandIo,
): Promise<readonly ReadObject[]> {
  const files = (await Promise.all(paths.map((path) => expand(path, io)))).flat();
  const read = files.map(async (file) => {
    const text = file === "-" ? await io.files.stdin() : await io.files.readText(file);
    return objectsOf(file === "-" ? "standard input" : file, text);
  });
  return (await Promise.all(read)).flat();
}

async function expand(path: string, io: CommandIo): Promise<readonly string[]> {
  if (path === "-") return [path];
  const names = await io.files.list(path);
  if (names === undefined) return [path];
  const files = names.filter((name) => /\.(json|ya?ml)$/.test(name));
  if (files.length === 0) {
    throw invalid(path, "found no .json, .yaml or .yml file, expected the output of kubectl get");
  }
  return files.map((name) => `${path}/${name}`);
}

function objectsOf(file: string, text: string): readonly ReadObject[] {
  return documentsOf(file, text)
    .flatMap(({ value, line }) => itemsOf(value, `${file}:${line}`))
    .map((object) => ({ file, object }));
}

interface Document {
  readonly value: unknown;
  readonly line: number;
}

/** JSON is read by the engine: a snapshot of a large cluster is a hundred megabytes of it. */
function documentsOf(file: string, text: string): readonly Document[] {
  if (/^\s*[{[]/.test(text)) {
    try {
      return [{ value: JSON.parse(text) as unknown, line: 1 }];
    } catch {
      // YAML in flow style, or several documents: below.
    }
  }
  const { documents, mistakes } = readYaml(text);
  const first = mistakes[0];
  if (first !== undefined) {
    throw invalid(`${file}:${first.line}`, `${first.found}, expected ${first.wanted}`);
  }
  // As a pipe from a kubectl that has failed: no fleet is not the same as an empty one.
  if (documents.length === 0) {
    throw invalid(`${file}:1`, "found nothing, expected the output of kubectl get -o json");
  }
  return documents.map((document) => ({ value: document.value, line: document.lineOf([]) }));
}

function itemsOf(value: unknown, place: string): readonly KubeObject[] {
  if (!isFields(value)) {
    throw invalid(place, `found ${describeValue(value)}, expected a Kubernetes object`);
  }
  if (typeof value.kind !== "string") {
    throw invalid(place, "found no kind, expected the output of kubectl get -o json");
  }
  if (!value.kind.endsWith("List")) return [value as KubeObject];
  if (!Array.isArray(value.items)) throw invalid(place, `found a ${value.kind} without items`);
  // That there is none of a kind is worth knowing, too.
  if (value.items.length === 0 && value.kind !== "List") return [value as KubeObject];
  return value.items.flatMap((item: unknown, index: number) =>
    itemsOf(withKind(item, value.kind as string), `${place}: items[${index}]`),
  );
}

/** The items of a typed list (`NodeList`), as the API itself answers, name no kind of their own. */
function withKind(item: unknown, listKind: string): unknown {
  if (!isFields(item) || item.kind !== undefined || listKind === "List") return item;
  return { ...item, kind: listKind.slice(0, -"List".length) };
}

function invalid(place: string, found: string): LastcallError {
  return new LastcallError("INPUT_INVALID", `Cannot read ${place}: ${found}`);
}
