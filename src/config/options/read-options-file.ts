import { LastcallError } from "../../errors.ts";
import { describeValue, didYouMean, sentenceOf } from "../problem.ts";
import { type Pointer, readYaml, type YamlDocument } from "../yaml-text.ts";
import { commands } from "./option.ts";
import { options } from "./options.ts";
import type { OptionsFile } from "./resolve-options.ts";

type Section = Readonly<Record<string, unknown>>;

/**
 * Reads the file of `--config`: options by name, for all commands at the top level, and for one
 * command under its name, which takes precedence:
 *
 *     log-level: debug
 *     run: {metrics-address: ":9200"}
 *
 * Throws `CONFIG_INVALID` with one sentence that names file, line and field.
 */
export function readOptionsFile({ file, text }: { file: string; text: string }): OptionsFile {
  const { documents, mistakes } = readYaml(text);
  const mistake = mistakes[0];
  if (mistake !== undefined) {
    const { line, pointer = [], found, wanted } = mistake;
    throw invalid(`${file}:${line}`, { pointer, found, wanted });
  }
  const document = documents[0];
  if (document === undefined) return { textsOf: () => undefined };
  const top = sectionOf({ file, document, pointer: [] }, document.value);
  checkNames({ file, document, pointer: [] }, [top, [...optionNames, ...commands]]);
  const sections = new Map<string, Section>();
  for (const command of commands.filter((name) => top[name] !== undefined)) {
    const place = { file, document, pointer: [command] };
    const section = sectionOf(place, top[command]);
    checkNames(place, [section, optionNames]);
    sections.set(command, section);
  }
  return {
    textsOf: (command, name) => {
      const inSection = sections.get(command)?.[name];
      const value = inSection ?? top[name];
      const pointer = inSection === undefined ? [name] : [command, name];
      return value === undefined || value === null
        ? undefined
        : textsOf({ file, document, pointer }, value);
    },
  };
}

const optionNames: readonly string[] = [...new Set(options.map(({ name }) => name))];

interface FilePlace {
  readonly file: string;
  readonly document: YamlDocument;
  readonly pointer: Pointer;
}

function invalid(
  place: string,
  problem: { readonly pointer: Pointer; readonly found: string; readonly wanted: string },
): LastcallError {
  return new LastcallError("CONFIG_INVALID", `Cannot read ${place}: ${sentenceOf(problem)}`);
}

function lineAt({ file, document, pointer }: FilePlace): string {
  return `${file}:${document.lineOf(pointer)}`;
}

function sectionOf(place: FilePlace, value: unknown): Section {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Section;
  const { pointer } = place;
  throw invalid(lineAt(place), {
    pointer,
    found: describeValue(value),
    wanted: "options and their values",
  });
}

function checkNames(place: FilePlace, [section, known]: [Section, readonly string[]]): void {
  for (const name of Object.keys(section)) {
    if (known.includes(name)) continue;
    const pointer = [...place.pointer, name];
    const wanted = didYouMean(name, known) ?? "the name of an option";
    throw invalid(lineAt({ ...place, pointer }), { pointer, found: "an unknown option", wanted });
  }
}

function textsOf(place: FilePlace, value: unknown) {
  const items: readonly unknown[] = Array.isArray(value) ? value : [value];
  const { pointer } = place;
  const texts = items.map((item) => {
    if (typeof item === "string" || typeof item === "number" || typeof item === "boolean") {
      return String(item);
    }
    const found = describeValue(item);
    throw invalid(lineAt(place), { pointer, found, wanted: "a value or a list of values" });
  });
  return { place: `${lineAt(place)}: ${pointer.join(".")}`, texts };
}
