import type { FieldPointer } from "../../audit/objects/manifest.ts";
import { readYaml } from "../../config/yaml-text.ts";
import { jsonFieldLines } from "./json-lines.ts";
import type { ParsedDocument } from "./parse-manifests.ts";

/** The line, from 1, of a field in its file; undefined where nothing of it is written. */
export type LineOfField = (pointer: FieldPointer) => number | undefined;

/**
 * Finds the lines of fields of a document that was parsed from `text` before. Only a refusal asks,
 * so that the text is read a second time then, and no line is kept for the others.
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

/** A field that is missing is named by the nearest one around it. */
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
