/** Files that docs and comments name: they must exist. */
import { dirname, join } from "node:path/posix";

const folders =
  "src|test|tools|bench|docs|deploy|core|controller|agent|kube|cloud|contracts|config|cli|sim|audit|server|runtime|actions";
const cited = new RegExp(
  `(?<![\\w/{.-])((?:${folders})/[\\w./-]+\\.(?:ts|md|yaml|json|sh))\\b`,
  "g",
);

export interface FileLookup {
  /** Whether a file exists at this path from the root. */
  readonly exists: (path: string) => boolean;
  /** Whether a file anywhere has this name. */
  readonly isName: (name: string) => boolean;
}

/** A name without a folder, such as `drain-turn.ts`: any file of that name may be meant. */
const named = /(?<![\w/.{}*<>-])([a-z][\w-]*\.tsx?)\b/g;

/**
 * One line for each missing file that a page or a source comment names. Paths are relative to the
 * root of the repository, to `src` or to the file itself.
 */
export function missingFiles(
  { path, text }: { readonly path: string; readonly text: string },
  { exists, isName }: FileLookup,
): readonly string[] {
  return text.split("\n").flatMap((line, index) => {
    if (path.endsWith(".ts") && !/^\s*(\*|\/\/|\/\*)/.test(line)) return [];
    const paths = [...line.matchAll(cited)]
      .map(([, file = ""]) => file)
      .filter((file) => ![file, `src/${file}`, join(dirname(path), file)].some(exists));
    const names = [...line.matchAll(named)].map(([, file = ""]) => file);
    return [...paths, ...names.filter((name) => !isName(name))].map(
      (file) => `${path}:${index + 1}: there is no ${file}`,
    );
  });
}
