/**
 * House rules that a linter does not know: sizes, names, and what is banned outside the shell. The
 * lists of exceptions may only shrink.
 */
import { basename } from "node:path/posix";
import { ownProcess } from "../test/support/own-process.ts";
import { report, type SourceFile, sourceFiles } from "./source-tree.ts";

const maxFileLines = 400;
const maxFunctionLines = 70;
/** The formatter's width, which it does not apply to comments. */
const maxCommentColumns = 100;
const bannedNames = /^(utils?|helpers?|common|misc)\.ts$/;
const kebabCase = /^[a-z0-9]+(-[a-z0-9]+)*(\.(contract|e2e|config))*(\.test)?\.tsx?$/;

interface Ban {
  readonly pattern: RegExp;
  readonly instead: string;
  /** Files, or folders ending in a slash, where it is allowed. */
  readonly allowed: readonly string[];
}

/** `src/web/browser.ts` is for the page what `src/runtime` is for the process. */
const shell = ["src/runtime/", "src/web/browser.ts"];

const codeBans: readonly Ban[] = [
  {
    pattern: /\bDate\.now\(|\bnew Date\(\)|\bperformance\.now\(/,
    instead: "take a Clock",
    allowed: shell,
  },
  {
    pattern: /\bnew Date\(|\bDate\.(parse|UTC)\(/,
    instead: "use src/core/time/time.ts",
    allowed: [...shell, "src/core/time/time.ts"],
  },
  {
    pattern: /\b(setTimeout|setInterval|setImmediate)\(/,
    instead: "take a Clock",
    allowed: [...shell],
  },
  { pattern: /\bMath\.random\(/, instead: "take an Rng", allowed: shell },
  {
    pattern: /\bprocess\.(env|argv|exit|stdout|stderr|stdin)\b/,
    instead: "take it as a parameter",
    allowed: [...shell, "src/cli/main.ts", "src/cli/agent-main.ts"],
  },
  {
    pattern: /(?<![.\w])fetch\(/,
    instead: "take a fetch function as a parameter",
    allowed: shell,
  },
  {
    // For the operator's own addresses only: those of the options, and of metadata services.
    pattern: /\btypeof fetch\b|\bglobalThis\.fetch\b/,
    instead:
      "reach a host that a policy, a Secret or a node names through src/actions/http-sender.ts",
    allowed: [
      ...[...shell, "src/cloud/", "src/cli/command-line/command.ts"],
      ...["src/cli/board/start-board.ts", "src/contracts/cloud-descriptor.ts"],
    ],
  },
  {
    pattern: /\bconsole\./,
    instead: "take a Log, or write to the output you were given",
    allowed: shell,
  },
];

/** Phrases that strings for users must not contain, each with the usual Kubernetes terms. */
const dialect: readonly Ban[] = [
  ["heed(s|ed)?|forsak\\w+|in peace|by the word of", "acted on, abandoned, without a conflict"],
  ["anew|made again|is made again", "again, recreated"],
  ["(is|are) wanted|; wanted|found no --", "expected, required"],
  ["[;,(] ?absent:|Absent:", "default:, If not set"],
  ["put back to work|goes back to work", "uncordoned"],
  ["is left alone|was left alone|Left alone", "skipped"],
  ["(was|were|is|are|being) taken back|took the departure back", "cancelled, withdrawn"],
  ["somebody asked for", "requested by a user"],
  ["is in force|can be kept", "valid and active, on schedule"],
  ["lets? (\\w+ ){0,3}go(?! on)\\b|is let go", "released, allows an eviction"],
  ["speaks? (of|to)|stray\\w*", "names, describes, sends requests to, orphan"],
  ["that it wants|of the wanted", "instead of, truncated from"],
  ["may pass|leaves no other way|left no other way", "retrying, allows no later start"],
  ["comes back nowhere|past its budget", "not recreated, regardless of its budget"],
  ["has not turned|stood still|know us", "stuck, rejected the credentials"],
  ["logged at the least|form of (the log|what is printed)", "Minimum log level, Output format"],
  [
    "does not have it|has no end|holds? no list|the whole wait|to hear why",
    "is incomplete, contains",
  ],
  ["(leave|left) (it|them|one of the two|--\\S+) out|(is|are) left out", "omit, remove, skipped"],
  ["(take|takes|taken|taking|took) away|would lose|has lost", "remove"],
  ["(is|are) there (already|without)|already there|not there any more", "already exists"],
  ["ended (badly|well)|left well|ends well|stands? still|stood", "succeeded, failed, stuck"],
  [
    "grace (was|were) over|in spite of|mid-drain|(where|which) nobody",
    "at the end of, despite, if",
  ],
  ["so that (no|nothing)|this one has none", "so no, lacks"],
  ["is no (list|JSON|instant|instance|text|answer|address|terminal|URL)", "is not a"],
  ["no answer (within|came|from)|the answer (is|has|was|holds)|expected an answer", "response"],
  ["go(es)? on (with|:)|Cannot go on|cannot begin|did not begin", "continue, start"],
  ["beside --|without --\\S+ it has", "together with, no effect without"],
].map(([words, instead]) => ({
  pattern: new RegExp(`["'\`][^"'\`]*(?<!\\w)(${words})(?!\\w)|["'\`][^"'\`]*, wanted \\w`),
  instead: `use the field's words: ${instead}`,
  allowed: [],
}));

export function styleFindings(file: SourceFile): string[] {
  const findings: string[] = [];
  const name = basename(file.path);
  if (!kebabCase.test(name)) findings.push(`${file.path}: the name is not kebab-case`);
  if (bannedNames.test(name)) findings.push(`${file.path}: the name does not say what is in it`);
  if (file.lines.length > maxFileLines) {
    findings.push(`${file.path}: ${file.lines.length} lines, at most ${maxFileLines}`);
  }
  return [
    ...findings,
    ...wideComments(file),
    ...oddComments(file),
    ...oddNames(file),
    ...longFunctions(file),
    ...banned(file),
    ...changesToTheProcess(file),
  ];
}

/** Phrases that comments must not contain either, each with the usual terms. */
const commentDialect: readonly (readonly [pattern: RegExp, instead: string])[] = [
  [/\b(taken|takes?|took) back\b/, "withdrawn, cancelled or undone"],
  [/\bback to work\b/, "uncordoned"],
  [/\blets? ([\w']+ ){0,4}go\b(?! on)/i, "released, stopped"],
  [/\b(cloud|budget)'s word\b|\bno word (of|that)\b|\bwhomever\b/, "notice, status, anybody"],
  [/\b(desk|teller|bell|voice|stray)s?\b/i, "the glossary's word"],
  [/\bby the word of\b|\bheed|\bforsak|\bin peace\b/, "by, acted on, abandoned"],
];

/** Names that no identifier, log event or object may have, each with the field's term. */
const nameDialect: readonly (readonly [pattern: RegExp, instead: string])[] = [
  [/\b(letGo|letsGo|isLetGo)\b/, "released, allowsEviction"],
  [/\b(takenBack|isTakenBack)\b/, "withdrawn, isRolledBack"],
  [/\b(goesOut|goesSometime|mayGo)\b/, "departs, mayDepart"],
  [/\bleftWell\b/, "succeeded"],
  [/\b(un)?told(At|Ms|DeadlineAt)\b/, "announcedAt, reportedAt"],
  [/\b(runWithout|SeenPlatform)\b/, "skipped, DetectedPlatform"],
  [/["'`](left-alone\b|room-)/, "skipped, placeholder-"],
];

function oddNames({ path, lines }: SourceFile): string[] {
  if (!path.startsWith("src/")) return [];
  return lines.flatMap((line, index) => {
    const odd = isComment(line) ? undefined : nameDialect.find(([pattern]) => pattern.test(line));
    return odd === undefined ? [] : [`${path}:${index + 1}: ${line.trim()}: use ${odd[1]}`];
  });
}

function oddComments({ path, lines }: SourceFile): string[] {
  if (!path.startsWith("src/")) return [];
  return lines.flatMap((line, index) => {
    const odd = isComment(line)
      ? commentDialect.find(([pattern]) => pattern.test(line))
      : undefined;
    return odd === undefined ? [] : [`${path}:${index + 1}: ${line.trim()}: use ${odd[1]}`];
  });
}

/** A directive has to be on one line, and a long link cannot be broken. */
function wideComments({ path, lines }: SourceFile): string[] {
  return lines.flatMap((line, index) => {
    const isText = /^\s*(\/\/|\/?\*+) (?!biome-ignore)/.test(line);
    const hasLongWord = line.split(" ").some((word) => word.length > maxCommentColumns / 2);
    return line.length > maxCommentColumns && isText && !hasLongWord
      ? [`${path}:${index + 1}: a comment of ${line.length} columns, at most ${maxCommentColumns}`]
      : [];
  });
}

function banned(file: SourceFile): string[] {
  if (!file.path.startsWith("src/")) return [];
  return [...codeBans, ...dialect].flatMap((ban) => {
    const atHome = ban.allowed.some((place) =>
      place.endsWith("/") ? file.path.startsWith(place) : file.path === place,
    );
    if (atHome) return [];
    return file.lines.flatMap((line, index) =>
      ban.pattern.test(line) && !isComment(line)
        ? [`${file.path}:${index + 1}: ${line.trim()}: ${ban.instead}`]
        : [],
    );
  });
}

/**
 * Changes in tests that the other files of the process would see. Variables of the environment,
 * stubs and spies are no such change: `process-setup.ts` takes them back.
 */
function changesToTheProcess({ path, lines }: SourceFile): string[] {
  const isShared = path.startsWith("test/") && !path.includes(".e2e.");
  if (!isShared || ownProcess.includes(path)) return [];
  const change =
    /^\s*(vi\.(mock|doMock|resetModules)\(|(process\.env|globalThis(\.\w+|\[[^\]]+\])+) =(?!=)|process\.chdir\()/;
  return lines.flatMap((line, index) =>
    change.test(line)
      ? [`${path}:${index + 1}: ${line.trim()}: other files share the process of this one`]
      : [],
  );
}

function isComment(line: string): boolean {
  return /^\s*(\/\/|\*|\/\*)/.test(line);
}

const functionStart =
  /^(\s*)(?:export )?(?:async )?(?:function\*? |(?:private |static |async |get |set |\*)*#?[A-Za-z]+(?:<[^>]*>)?\([^;]*$)/;

/**
 * A function ends at the first line that closes a brace at its own indentation; Biome ensures that.
 */
function longFunctions(file: SourceFile): string[] {
  if (file.path.startsWith("test/")) return [];
  const findings: string[] = [];
  file.lines.forEach((line, index) => {
    const match = functionStart.exec(line);
    if (match === null || /^\s*(if|for|while|switch|return|await|describe|it)\b/.test(line)) return;
    const indent = match[1] as string;
    if (isCall(line, indent, file.lines.slice(index + 1))) return;
    const end = file.lines.findIndex((later, at) => at > index && later.startsWith(`${indent}}`));
    const length = end < 0 ? 0 : codeLines(file.lines.slice(index, end));
    if (length > maxFunctionLines) {
      findings.push(
        `${file.path}:${index + 1}: a function of ${length} lines, at most ${maxFunctionLines}`,
      );
    }
  });
  return findings;
}

/**
 * Whether the line only calls a function: a declaration opens its body or its parameters, and a
 * type or the body follows those.
 */
function isCall(line: string, indent: string, after: readonly string[]): boolean {
  if (!line.endsWith("(")) return !/[{<|:]$/.test(line);
  const end = after.find((later) => later.startsWith(`${indent})`)) ?? "";
  return !/^\s*\)(:| \{)/.test(end);
}

/** Lines inside a template literal are text, not code. */
function codeLines(lines: readonly string[]): number {
  let inText = false;
  let count = 0;
  for (const line of lines) {
    if (!inText) count += 1;
    const ticks = line.replaceAll(/\\`/g, "").split("`").length - 1;
    if (ticks % 2 === 1) inText = !inText;
  }
  return count;
}

if (import.meta.main) {
  const files = sourceFiles(["src", "test", "tools", "bench"]);
  process.exitCode = report("check-style", files.flatMap(styleFindings));
}
