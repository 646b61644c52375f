/**
 * Keeps docs and code in step. Each reason is in the glossary, and in docs/troubleshooting.md with
 * its cause and remedy; each error code is in docs/errors.md in the same way; and the code uses all
 * of them. Every listed option, metric and command has code that reads, sets or runs it. Files that
 * pages and comments name exist. Relative links, their anchors and the headings that messages name
 * exist. Each test that docs/failure-modes.md and test/support/README.md name exists. Translated
 * pages are in step.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { commandList } from "../src/cli/command-line/command-list.ts";
import { options } from "../src/config/options/options.ts";
import { metricNames } from "../src/contracts/telemetry.ts";
import { reasons } from "../src/core/reason/reason.ts";
import { errorCodes } from "../src/errors.ts";
import { unkept } from "./advertised.ts";
import { missingFiles } from "./cited-files.ts";
import { missingAnchors, missingHeadings } from "./doc-anchors.ts";
import { testProblems } from "./named-tests.ts";
import { missingRemedies } from "./remedies.ts";
import { report, root, sourceFiles } from "./source-tree.ts";
import { translationProblems, translations } from "./translations.ts";

const link = /\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)/g;

function pages(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return pages(path);
    return entry.name.endsWith(".md") ? [path] : [];
  });
}

function brokenLinks(page: string): string[] {
  const text = readFileSync(join(root, page), "utf8");
  return [...text.matchAll(link)].flatMap(([, target]) => {
    if (target === undefined || /^[a-z]+:/.test(target)) return [];
    const path = join(root, dirname(page), target);
    return existsSync(path) ? [] : [`${page}: the link ${target} leads nowhere`];
  });
}

function brokenAnchors(page: string): readonly string[] {
  return missingAnchors({ path: page, text: readFileSync(join(root, page), "utf8") }, textOf);
}

function textOf(path: string): string | undefined {
  return existsSync(join(root, path)) ? readFileSync(join(root, path), "utf8") : undefined;
}

/** In both directions: everything that the code knows is listed, and everything listed is known. */
function listed(page: string, words: readonly string[], pattern: RegExp): string[] {
  const text = readFileSync(join(root, page), "utf8");
  const found = new Set([...text.matchAll(pattern)].map((match) => match[1]));
  return [
    ...words.filter((word) => !found.has(word)).map((word) => `${page}: ${word} is not listed`),
    ...[...found]
      .filter((word) => word !== undefined && !words.includes(word))
      .map((word) => `${page}: ${word} is listed, but the code does not know it`),
  ];
}

/** Members of a closed list that the code never uses. */
function unused(definedIn: string, words: readonly string[]): string[] {
  const texts = sourceFiles(["src"])
    .filter(({ path }) => path !== definedIn)
    .map(({ text }) => text);
  return words
    .filter((word) => !texts.some((text) => text.includes(`"${word}"`)))
    .map((word) => `${definedIn}: nothing gives ${word}`);
}

function unexplained(path: string, words: readonly string[]): readonly string[] {
  return missingRemedies({ path, text: readFileSync(join(root, path), "utf8"), words });
}

function namedTests(page: string): string[] {
  const text = readFileSync(join(root, page), "utf8");
  return testProblems(page, text, textOf);
}

function unkeptPromises(): readonly string[] {
  const promised = {
    options: options.map(({ name }) => name),
    optionCommands: options.flatMap(({ commands }) => (commands === "all" ? [] : commands)),
    commands: commandList.map(({ name }) => name),
    metrics: Object.values(metricNames).flat(),
  };
  return unkept(promised, sourceFiles(["src"]));
}

function filesNotThere(pages: readonly string[]): readonly string[] {
  const texts = pages.map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));
  const files = [...texts, ...sourceFiles(["src", "bench", "test/support", "test/contract"])];
  const everyFile = sourceFiles(["src", "bench", "test", "tools"]);
  const names = new Set(everyFile.map(({ path }) => basename(path)));
  const lookup = {
    exists: (path: string) => existsSync(join(root, path)),
    isName: (name: string) => names.has(name),
  };
  return files.flatMap((file) => missingFiles(file, lookup));
}

const markdown = [
  ...readdirSync(root).filter((name) => name.endsWith(".md")),
  ...pages("docs"),
  ...pages("test/data"),
  ...pages("test/support"),
].map((page) => relative(root, join(root, page)));

process.exitCode = report("check-docs", [
  ...markdown.flatMap(brokenLinks),
  ...markdown.flatMap(brokenAnchors),
  ...sourceFiles(["src"]).flatMap((file) => missingHeadings(file, textOf)),
  ...filesNotThere(markdown),
  ...unkeptPromises(),
  ...unused("src/core/reason/reason.ts", reasons),
  ...unused("src/errors.ts", errorCodes),
  ...listed("docs/glossary.md", reasons, /^\| `([A-Za-z]+)` \|/gm),
  ...namedTests("docs/failure-modes.md"),
  ...namedTests("test/support/README.md"),
  ...listed("docs/errors.md", errorCodes, /^\| `([A-Z_]+)` \|/gm),
  ...listed("docs/troubleshooting.md", reasons, /^\| `([A-Z][A-Za-z]+)` \|/gm),
  ...unexplained("docs/troubleshooting.md", reasons),
  ...unexplained("docs/errors.md", errorCodes),
  ...translations.flatMap((one) => translationProblems(one, textOf)),
]);
