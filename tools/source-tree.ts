import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";

export const root = join(import.meta.dirname, "..");

export interface SourceFile {
  /** Relative to the repository, with forward slashes. */
  readonly path: string;
  readonly text: string;
  readonly lines: readonly string[];
}

/** Every TypeScript file, JSX or not, below the given folders, in a stable order. */
export function sourceFiles(folders: readonly string[]): SourceFile[] {
  return folders.flatMap((folder) => walk(join(root, folder))).map(readSource);
}

function readSource(absolute: string): SourceFile {
  const text = readFileSync(absolute, "utf8");
  return { path: relative(root, absolute).replaceAll("\\", "/"), text, lines: text.split("\n") };
}

function walk(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true })
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return entry.name === "node_modules" ? [] : walk(path);
      return /\.tsx?$/.test(entry.name) ? [path] : [];
    });
}

/** Prints the findings and returns the exit code: 1 if there are any. */
export function report(check: string, findings: readonly string[]): number {
  for (const finding of findings) console.error(`${check}: ${finding}`);
  if (findings.length === 0) console.log(`${check}: clean`);
  return findings.length === 0 ? 0 : 1;
}
