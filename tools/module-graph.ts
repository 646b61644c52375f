/**
 * What each file declares, exports and imports, recognized by the form that Biome's formatter gives
 * it.
 */
import { dirname, join } from "node:path/posix";
import type { SourceFile } from "./source-tree.ts";

export interface Module {
  readonly path: string;
  readonly text: string;
  readonly lines: number;
  /** Every type, interface and class, and whether it is exported. */
  readonly types: readonly { readonly name: string; readonly exported: boolean }[];
  /** Exported functions, constants and classes. */
  readonly exportedValues: readonly string[];
  /** Files of the repository, by path, with the names taken from each; `*` for all of them. */
  readonly imports: ReadonlyMap<string, ReadonlySet<string>>;
}

const typeForm = /^(export )?(?:abstract )?(?:interface|type|class) (\w+)/gm;
const valueForm = /^export (?:abstract )?(?:async )?(?:function\*?|class|const|let) (\w+)/gm;
const importForm =
  /^(?:import|export)\s+(?:type\s+)?(\{[^}]*\}|[^{}"';]*?)\s*from\s*"(\.[^"]+)"|^import "(\.[^"]+)"/gm;
const lateImportForm = /(?:import|vi\.mock|new URL)\(\s*"(\.[^"]+\.ts)"/g;

export function moduleOf({ path, text }: SourceFile): Module {
  return {
    path,
    text,
    lines: text.split("\n").length - 1,
    types: [...text.matchAll(typeForm)].map(([, exported, name = ""]) => ({
      name,
      exported: exported !== undefined,
    })),
    exportedValues: [...text.matchAll(valueForm)].map(([, name = ""]) => name),
    imports: importsOf(path, text),
  };
}

function lateImportsOf(path: string, text: string): ReadonlySet<string> {
  const targets = [...text.matchAll(lateImportForm)].map(([, target = ""]) => target);
  return new Set(targets.map((target) => join(dirname(path), target)));
}

function importsOf(path: string, text: string): ReadonlyMap<string, ReadonlySet<string>> {
  const found = new Map<string, Set<string>>();
  const add = (target: string, names: readonly string[]) => {
    const file = join(dirname(path), target);
    found.set(file, new Set([...(found.get(file) ?? []), ...names]));
  };
  for (const [, names = "", target, bare] of text.matchAll(importForm)) {
    if (target !== undefined) add(target, namesOf(names));
    else if (bare !== undefined) add(bare, []);
  }
  for (const file of lateImportsOf(path, text)) found.set(file, new Set("*"));
  return found;
}

/** `{ a, type B as C }` imports `a` and `B`; anything else may import all names. */
function namesOf(names: string): readonly string[] {
  if (!names.startsWith("{")) return ["*"];
  return names
    .slice(1, -1)
    .split(",")
    .map((one) =>
      one
        .trim()
        .replace(/^type /, "")
        .replace(/ as .*$/, ""),
    )
    .filter((one) => one !== "");
}
