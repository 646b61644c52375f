/**
 * How code is cut into files: what is exported is imported, a type's name is declared once, a small
 * file stands for more than its one importer, and a folder can be overlooked.
 */
import { basename, dirname } from "node:path/posix";
import { importersOf, type Module } from "./module-graph.ts";

/** What still breaks a rule. Each list may only shrink: what keeps the rule has to leave it. */
export interface Exceptions {
  /** Type names that are declared more than once in `src`. */
  readonly types: readonly string[];
  /** Folders of `src` with more than `maxFolderFiles`, and with how many. */
  readonly folders: Readonly<Record<string, number>>;
  /** Small files with one importer and no test of their own. */
  readonly smallFiles: readonly string[];
  /** Types of `src` that are called after being handed on, and mean something all the same. */
  readonly bags: readonly string[];
}

const maxFolderFiles = 15;
const smallFileLines = 60;

export function moduleFindings(modules: readonly Module[], except: Exceptions): string[] {
  return [
    ...unusedExports(modules),
    ...listed("types declared twice", typesDeclaredTwice(modules), except.types),
    ...listed("small files", smallFiles(modules), except.smallFiles),
    ...crowdedFolders(modules, except.folders),
    ...listed("bags", bags(modules), except.bags),
  ];
}

/**
 * A value that no other file imports is not exported. A type that only its own file names may be:
 * it describes what an exported function takes or gives.
 */
function unusedExports(modules: readonly Module[]): string[] {
  const taken = new Map<string, Set<string>>();
  for (const { imports } of modules) {
    for (const [file, names] of imports) {
      taken.set(file, new Set([...(taken.get(file) ?? []), ...names]));
    }
  }
  return modules.flatMap((module) => {
    // Some files of tests are called by name, by their framework or by another language.
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
  /** What a list of exceptions names. */
  readonly name: string;
  readonly finding: string;
}

/** A private type may repeat another private one: no reader meets both. */
function typesDeclaredTwice(modules: readonly Module[]): readonly Breach[] {
  const places = new Map<string, { path: string; exported: boolean }[]>();
  for (const { path, types } of modules) {
    if (!path.startsWith("src/")) continue;
    for (const { name, exported } of types) {
      places.set(name, [...(places.get(name) ?? []), { path, exported }]);
    }
  }
  return [...places].flatMap(([name, found]) => {
    if (found.length < 2 || !found.some(({ exported }) => exported)) return [];
    const where = found.map(({ path }) => path).join(", ");
    return [{ name, finding: `the type ${name} is declared in ${where}` }];
  });
}

const bagName = /(Parts|Tools|Order|Context|Bag)$/;

/** A name that says only that some values travel together: what a function takes is its options. */
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

/** `src/doctor`: files of two rooms may not import the same. */
function roomOf(path: string): string {
  return path.split("/").slice(0, 2).join("/");
}

function smallFiles(modules: readonly Module[]): readonly Breach[] {
  const importers = importersOf(modules);
  const late = new Set(modules.flatMap(({ lateImports }) => [...lateImports]));
  const tested = new Set(
    modules
      .filter(({ path }) => path.startsWith("test/"))
      .map(({ path }) => basename(path).replace(/\..*$/, "")),
  );
  return modules.flatMap(({ path, lines }) => {
    const [only, ...others] = importers.get(path) ?? [];
    if (lines >= smallFileLines || only === undefined || others.length > 0) return [];
    // A seam is small on purpose, and what is loaded late has to be a file.
    if (!path.startsWith("src/") || path.startsWith("src/contracts/")) return [];
    if (roomOf(path) !== roomOf(only)) return [];
    if (late.has(path) || tested.has(basename(path, ".ts"))) return [];
    const finding = `${path}: ${lines} lines that only ${only} imports: they can stand there`;
    return [{ name: path, finding }];
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

function crowdedFolders(
  modules: readonly Module[],
  except: Readonly<Record<string, number>>,
): string[] {
  const counts = new Map(Object.keys(except).map((folder) => [folder, 0]));
  for (const { path } of modules) {
    if (!path.startsWith("src/")) continue;
    counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1);
  }
  return [...counts].flatMap(([folder, count]) => {
    const known = except[folder];
    const limit = known ?? maxFolderFiles;
    if (count > limit) return [`${folder}: ${count} files, at most ${limit}`];
    return known !== undefined && count < known
      ? [`${folder}: ${count} files now: lower its ${known} in the list of folders`]
      : [];
  });
}
