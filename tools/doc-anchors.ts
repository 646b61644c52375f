/** Anchors of links between pages, by GitHub's rule for headings. */
import { dirname, join } from "node:path/posix";

const link = /\[[^\]]*\]\(([^)#\s]*)#([^)\s]+)\)/g;

/** A heading to which a message of the program refers its reader. */
const cited = /(?<![\w/.-])(docs\/[\w/-]+\.md)(?:#([\w-]+)|, [A-Z])/g;

/** The anchors of a page: those of its headings, and explicit ones (`<a id="…">`). */
export function anchorsOf(markdown: string): ReadonlySet<string> {
  const anchors = new Set<string>();
  for (const line of linesOutsideCode(markdown)) {
    for (const [, id = ""] of line.matchAll(/<a (?:id|name)="([^"]+)"/g)) anchors.add(id);
    const heading = /^#{1,6}\s+(.*?)\s*#*$/.exec(line)?.[1];
    if (heading === undefined) continue;
    const slug = slugOf(heading);
    let anchor = slug;
    for (let again = 1; anchors.has(anchor); again += 1) anchor = `${slug}-${again}`;
    anchors.add(anchor);
  }
  return anchors;
}

function slugOf(heading: string): string {
  return heading
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\p{M}_\- ]/gu, "")
    .replaceAll(" ", "-");
}

function linesOutsideCode(markdown: string): readonly string[] {
  let inCode = false;
  return markdown.split("\n").filter((line) => {
    if (!/^\s*```/.test(line)) return !inCode;
    inCode = !inCode;
    return false;
  });
}

/** One line for each link of a page to an anchor that its target does not have. */
export function missingAnchors(
  page: { readonly path: string; readonly text: string },
  read: (path: string) => string | undefined,
): readonly string[] {
  return [...page.text.matchAll(link)].flatMap(([, target = "", anchor = ""]) => {
    if (/^[a-z]+:/.test(target)) return [];
    const path = join(dirname(page.path), target);
    // Other checks report targets that do not exist or are not pages.
    const other = path.endsWith(".md") ? read(path) : undefined;
    const text = target === "" ? page.text : other;
    if (text === undefined || anchorsOf(text).has(anchor)) return [];
    return [`${page.path}: ${target}#${anchor} leads to no heading`];
  });
}

/**
 * One line for each missing heading that a source names. A heading that is named by its text
 * instead of its anchor counts as missing.
 */
export function missingHeadings(
  source: { readonly path: string; readonly text: string },
  read: (path: string) => string | undefined,
): readonly string[] {
  return [...source.text.matchAll(cited)].flatMap(([words, page = "", anchor]) => {
    if (anchor === undefined) return [`${source.path}: name the heading by its anchor: ${words}`];
    if (anchorsOf(read(page) ?? "").has(anchor)) return [];
    return [`${source.path}: ${page}#${anchor} leads to no heading`];
  });
}
