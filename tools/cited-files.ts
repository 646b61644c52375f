/** Files that docs and comments name: whoever follows them is to find something. */
import { dirname, join } from "node:path/posix";

const folders =
  "src|test|tools|bench|docs|deploy|core|controller|agent|kube|cloud|contracts|config|cli|sim|audit|server|runtime|actions";
const cited = new RegExp(
  `(?<![\\w/{.-])((?:${folders})/[\\w./-]+\\.(?:ts|md|yaml|json|sh))\\b`,
  "g",
);

/**
 * A line for each file that a page, or a comment of a source, names and that is not there. A path
 * counts from the root of the repository, from `src` or from the file itself.
 */
export function missingFiles(
  { path, text }: { readonly path: string; readonly text: string },
  exists: (path: string) => boolean,
): readonly string[] {
  return text.split("\n").flatMap((line, index) => {
    if (path.endsWith(".ts") && !/^\s*(\*|\/\/|\/\*)/.test(line)) return [];
    return [...line.matchAll(cited)]
      .map(([, file = ""]) => file)
      .filter((file) => ![file, `src/${file}`, join(dirname(path), file)].some(exists))
      .map((file) => `${path}:${index + 1}: there is no ${file}`);
  });
}
