import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { World } from "./world.ts";

/** A world that was red once: a file of `test/regression`, which runs for ever. */
export interface RegressionCase {
  /** What was found, in a sentence. */
  readonly finding: string;
  /** The rule that it breaks, or broke. */
  readonly checker: string;
  /** `Open`: it still breaks it, and only it. Whoever mends it writes `Mended`. */
  readonly state: "Open" | "Mended";
  readonly world: World;
}

const folder = join(import.meta.dirname, "../regression");

/** All cases, by the name of their file. */
export function readCorpus(): ReadonlyMap<string, RegressionCase> {
  const names = readdirSync(folder).filter((name) => name.endsWith(".json"));
  return new Map(
    names.toSorted().map((name) => {
      const text = readFileSync(join(folder, name), "utf8");
      return [name.replace(/\.json$/, ""), JSON.parse(text) as RegressionCase];
    }),
  );
}

export function writeCase(name: string, regression: RegressionCase): string {
  const path = join(folder, `${name}.json`);
  writeFileSync(path, `${JSON.stringify(regression, null, 2)}\n`);
  return path;
}

/** The rules that are known to be broken: a seed that breaks one of them says nothing new. */
export function openCheckers(): ReadonlySet<string> {
  const open = [...readCorpus().values()].filter(({ state }) => state === "Open");
  return new Set(open.map(({ checker }) => checker));
}
