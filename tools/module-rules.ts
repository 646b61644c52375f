/** What modules declare: exports are used, and a type has one declaration and a meaningful name. */
import type { Module } from "./module-graph.ts";

/**
 * Known violations. Each list may only shrink: an entry that no longer violates its rule must be
 * removed.
 */
export interface Exceptions {
  /** Type names that are declared more than once in `src`. */
  readonly types: readonly string[];
  /**
   * Types of `src` with a name that only says how they are passed, but that are meaningful anyway.
   */
  readonly bags: readonly string[];
}

export function moduleFindings(modules: readonly Module[], except: Exceptions): string[] {
  return [
    ...unusedExports(modules),
    ...listed("types declared twice", typesDeclaredTwice(modules), except.types),
    ...listed("bags", bags(modules), except.bags),
  ];
}

/**
 * Values that no other file imports must not be exported. A type that only its own file names may
 * be exported if it describes what an exported function takes or returns.
 */
function unusedExports(modules: readonly Module[]): string[] {
  const taken = new Map<string, Set<string>>();
  for (const { imports } of modules) {
    for (const [file, names] of imports) {
      taken.set(file, new Set([...(taken.get(file) ?? []), ...names]));
    }
  }
  return modules.flatMap((module) => {
    // Frameworks or other languages refer to some test files by name.
    if (module.path.startsWith("test/")) return [];
    const names = taken.get(module.path) ?? new Set();
    if (names.has("*")) return [];
    const values = module.exportedValues.filter((name) => !names.has(name));
    const types = module.types.filter(
      ({ name, exported }) => exported && !names.has(name) && mentions(module.text, name) < 2,
    );
    return [...values, ...types.map(({ name }) => name)].map(
      (name) => `${module.path}: nothing imports ${name}, so it need not be exported`,
    );
  });
}

function mentions(text: string, name: string): number {
  return [...text.matchAll(new RegExp(`\\b${name}\\b`, "g"))].length;
}

interface Breach {
  /** The name to use in a list of exceptions. */
  readonly name: string;
  readonly finding: string;
}

/**
 * Private ones count too: whoever searches for a name, or reads a message that contains it, finds
 * one type.
 */
function typesDeclaredTwice(modules: readonly Module[]): readonly Breach[] {
  const declared = modules
    .filter(({ path }) => path.startsWith("src/"))
    .flatMap(({ path, types }) => types.map(({ name }) => ({ name, path })));
  return [...Map.groupBy(declared, ({ name }) => name)].flatMap(([name, found]) => {
    if (found.length < 2) return [];
    const where = found.map(({ path }) => path).join(", ");
    return [{ name, finding: `the type ${name} is declared in ${where}` }];
  });
}

const bagName = /(Parts|Tools|Order|Context|Bag)$/;

/** Types whose name only says that some values are passed together: a function takes options. */
function bags(modules: readonly Module[]): readonly Breach[] {
  return modules.flatMap(({ path, types }) => {
    if (!path.startsWith("src/")) return [];
    return types
      .filter(({ name }) => bagName.test(name))
      .map(({ name }) => ({
        name,
        finding: `${path}: ${name} does not say what it holds: call it ${name.replace(bagName, "Options")}, or what it is`,
      }));
  });
}

function listed(what: string, breaches: readonly Breach[], except: readonly string[]): string[] {
  const found = new Set(breaches.map(({ name }) => name));
  return [
    ...breaches.filter(({ name }) => !except.includes(name)).map(({ finding }) => finding),
    ...except
      .filter((name) => !found.has(name))
      .map((name) => `${name} keeps the rule now: take it off the list of ${what}`),
  ];
}
