import type { Policy } from "../../core/policy/policy.ts";
import { LastcallError } from "../../errors.ts";
import { sentenceOf } from "../problem.ts";
import type { RuleWorld } from "../schema/field-schema.ts";
import { type Pointer, readYaml, type YamlDocument } from "../yaml-text.ts";
import { parsePolicyObject } from "./parse-policy-object.ts";

/** A policy file that has been read; its name is only used in messages. */
export interface PolicySource {
  readonly file: string;
  readonly text: string;
}

export interface PolicyReading {
  readonly policies: readonly Policy[];
  /** One `file:line: sentence` each. */
  readonly warnings: readonly string[];
}

/**
 * Reads policies as people write them: YAML or JSON, several documents or a List. Throws
 * `POLICY_INVALID` once all files have been read: the message is the first mistake as `file:line:
 * field path: found, expected` and how many more there are; `details` has all of them.
 */
export function readPolicies(sources: readonly PolicySource[], world: RuleWorld): PolicyReading {
  const readings = sources.map((source) => readSource(source, world));
  const placed = readings.flatMap(({ policies }) => policies);
  const mistakes = [...readings.flatMap((reading) => reading.mistakes), ...repeatedNames(placed)];
  if (mistakes.length > 0) {
    const files = sources.map(({ file }) => file);
    throw policiesInvalid(mistakes.toSorted(byPlace(files)).map(textOf));
  }
  return {
    policies: placed.map(({ policy }) => policy),
    warnings: readings.flatMap(({ warnings }) => warnings),
  };
}

interface PolicyPlace {
  readonly file: string;
  readonly line: number;
}

/** A sentence about a place in a file. */
interface PolicyNote extends PolicyPlace {
  readonly sentence: string;
}

interface LocatedPolicy extends PolicyPlace {
  readonly policy: Policy;
}

interface SourceReading {
  readonly policies: readonly LocatedPolicy[];
  readonly warnings: readonly string[];
  readonly mistakes: readonly PolicyNote[];
}

function textOf({ file, line, sentence }: PolicyNote): string {
  return `${file}:${line}: ${sentence}`;
}

function byPlace(files: readonly string[]): (a: PolicyNote, b: PolicyNote) => number {
  return (a, b) => files.indexOf(a.file) - files.indexOf(b.file) || a.line - b.line;
}

function policiesInvalid(mistakes: readonly string[]): LastcallError {
  const more = mistakes.length - 1;
  const rest = more === 0 ? "" : ` (and ${more} more ${more === 1 ? "mistake" : "mistakes"})`;
  return new LastcallError("POLICY_INVALID", `Cannot read the policy: ${mistakes[0]}${rest}`, {
    details: mistakes,
  });
}

function readSource({ file, text }: PolicySource, world: RuleWorld): SourceReading {
  const { documents, mistakes } = readYaml(text);
  const broken = mistakes.map(({ line, ...mistake }) => ({
    file,
    line,
    sentence: sentenceOf({ pointer: [], ...mistake }),
  }));
  const objects = documents.flatMap(objectsOf);
  if (objects.length + broken.length === 0) {
    const sentence = "found no policy, expected at least one DeparturePolicy";
    broken.push({ file, line: 1, sentence });
  }
  const read = objects.map((object) => readObject({ file, object, world }));
  return {
    policies: read.flatMap(({ policies }) => policies),
    warnings: read.flatMap(({ warnings }) => warnings),
    mistakes: [...broken, ...read.flatMap((reading) => reading.mistakes)],
  };
}

/** An object of a file, with the path to it: a List holds several. */
interface PlacedObject {
  readonly value: unknown;
  readonly at: Pointer;
  readonly document: YamlDocument;
}

function readObject(options: {
  readonly file: string;
  readonly object: PlacedObject;
  readonly world: RuleWorld;
}): SourceReading {
  const { file, object, world } = options;
  const { value, at, document } = object;
  const place = (pointer: Pointer) => ({ file, line: document.lineOf([...at, ...pointer]) });
  const parsed = parsePolicyObject(value, { ...world, unknownFields: "Refuse" });
  if ("problems" in parsed) {
    const mistakes = parsed.problems.map((problem) => {
      const sentence = sentenceOf({ ...problem, pointer: [...at, ...problem.pointer] });
      return { ...place(problem.pointer), sentence };
    });
    return { policies: [], warnings: [], mistakes };
  }
  const placed = { policy: parsed.policy, ...place(["metadata", "name"]) };
  const warnings = parsed.warnings.map(({ pointer, text: sentence }) =>
    textOf({ ...place(pointer), sentence }),
  );
  return { policies: [placed], warnings, mistakes: [] };
}

function objectsOf(document: YamlDocument): readonly PlacedObject[] {
  const { value } = document;
  const items = itemsOf(value);
  if (items === undefined) return [{ value, at: [], document }];
  return items.map((item, index) => ({ value: item, at: ["items", index], document }));
}

/** The items of what `kubectl get -o yaml` writes; undefined for any other object. */
function itemsOf(value: unknown): readonly unknown[] | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { kind, items } = value as { readonly kind?: unknown; readonly items?: unknown };
  const isList = kind === "List" || kind === "DeparturePolicyList";
  return isList && Array.isArray(items) ? items : undefined;
}

function repeatedNames(placed: readonly LocatedPolicy[]): readonly PolicyNote[] {
  const first = new Map<string, PolicyPlace>();
  return placed.flatMap(({ policy: { name }, file, line }) => {
    const before = first.get(name);
    first.set(name, before ?? { file, line });
    if (before === undefined) return [];
    const found = `${JSON.stringify(name)} a second time`;
    const wanted = `a unique name (${before.file}:${before.line} has this one)`;
    return [{ file, line, sentence: sentenceOf({ pointer: ["metadata", "name"], found, wanted }) }];
  });
}
