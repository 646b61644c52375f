import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { CommandIo } from "../../src/cli/command-line/command.ts";
import { runCommandLine } from "../../src/cli/command-line/command-line.ts";
import { commandList } from "../../src/cli/command-line/command-list.ts";

interface Example {
  /** The file, and for a page its line. */
  readonly place: string;
  /** The command as typed, from `lastcall` on. */
  readonly line: string;
}

/** Where a command starts, and the command up to a comment, pipe or redirection. */
const inLine =
  /(?:(?:^\s*|\| |\$ |npx |<\(|(?:run|entry): )lastcall|bin\/lastcall\.js) ((?:(?! #| \||[<>;`)]|&&).)+)/g;

function commandsIn(place: string, text: string): readonly Example[] {
  return [...text.matchAll(inLine)].map(([, words = ""]) => ({
    place,
    line: `lastcall ${words.replace(/ #.*/, "").trim()}`,
  }));
}

function pages(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".md"))
    .map((path) => join(folder, path));
}

/** The commands in a page's code blocks; a trailing backslash continues the line. */
function blocksOf(page: string): readonly Example[] {
  const text = readFileSync(page, "utf8").replaceAll("\\\n", " ");
  let isCode = false;
  return text.split("\n").flatMap((line) => {
    if (line.trimStart().startsWith("```")) isCode = !isCode;
    return isCode ? commandsIn(page, line) : [];
  });
}

/** Commands within a sentence that show options with their values and omit nothing. */
function mentionsIn(page: string): readonly Example[] {
  const text = readFileSync(page, "utf8");
  return [...text.matchAll(/`(?:npx )?(lastcall [a-z-]+ [^`]*)`/g)]
    .map(([, line = ""]) => line.replaceAll("\n", " ").replace(/ URL$/, " https://example.com"))
    .map((line) => ({ place: page, line }))
    .filter(({ line }) => /\s-/.test(line) && !/[…|]|\s-[a-z-]+$/.test(line))
    .filter(({ line }) => !/ --(from|queue|only-actions)$/.test(line));
}

const helps = commandList.flatMap(({ name, examples }) =>
  examples.flatMap((line) => commandsIn(`lastcall ${name} --help`, line)),
);
// The commands of docs/mistakes.md are mistakes, which mistakes.test.ts types.
const documents = ["README.md", ...pages("docs"), "deploy/chart/README.md"].filter(
  (page) => page !== join("docs", "mistakes.md"),
);

/** All commands, with their command lines parsed as usual but nothing behind them. */
const commands = commandList.map((spec) => ({ ...spec, load: async () => async () => 0 }));

async function refusalOf({ line }: Example): Promise<string> {
  const words = (line.match(/"[^"]*"|'[^']*'|\S+/g) ?? []).slice(1);
  let err = "";
  const io = {
    out: () => {},
    err: (text: string) => {
      err += text;
    },
    ...{ env: {}, signal: new AbortController().signal },
  } as unknown as CommandIo;
  await runCommandLine(
    words.map((word) => word.replaceAll(/^["']|["']$/g, "")),
    io,
    commands,
  );
  return err;
}

describe("the command line accepts what", () => {
  it.each(helps)("$place shows: $line", async (example) => {
    expect(await refusalOf(example)).toBe("");
  });

  it.each(documents.flatMap(blocksOf))("$place shows in a code block: $line", async (example) => {
    expect(await refusalOf(example)).toBe("");
  });

  it.each(documents.flatMap(mentionsIn))("$place mentions: $line", async (example) => {
    expect(await refusalOf(example)).toBe("");
  });
});

it("every command's help has an example of that command", () => {
  const shown = commandList.filter(({ name }) =>
    helps.some(({ place, line }) => place.includes(` ${name} `) && line.includes(` ${name}`)),
  );
  expect(shown).toEqual(commandList);
});
