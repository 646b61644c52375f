import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { type CompletedCommand, completionScript } from "../../src/cli/command-line/completion.ts";

const commands: readonly CompletedCommand[] = [
  {
    ...{ name: "plan", summary: "Shows when each node leaves", words: [] },
    flags: [
      { name: "output", short: "o", value: ["table", "json"] },
      { name: "from", value: "Any" },
      { name: "strict", value: "None" },
    ],
  },
  {
    ...{ name: "plant", summary: "Isn't there, but begins alike", words: ["tree", "flower"] },
    flags: [{ name: "depth", value: "Any" }],
  },
  { name: "help", summary: "Show help", words: ["plan", "plant"], flags: [] },
];

/** What bash offers for the words typed so far, the last of them unfinished. */
function offered(...typed: string[]): readonly string[] {
  const words = ["lastcall", ...typed].map((word) => `'${word}'`).join(" ");
  const script = `${completionScript("bash", commands)}
COMP_WORDS=(${words}); COMP_CWORD=${typed.length}; _lastcall; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { status, stdout, stderr } = spawnSync("bash", ["--norc", "-uc", script], {
    encoding: "utf8",
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  return stdout.split("\n").filter((line) => line !== "");
}

describe("completion in bash", () => {
  it.each<[readonly string[], readonly string[]]>([
    [[""], ["plan", "plant", "help"]],
    [["pl"], ["plan", "plant"]],
    [
      ["plan", "--"],
      ["--output", "--from", "--strict"],
    ],
    [
      ["plan", "--strict", ""],
      ["--output", "--from", "--strict"],
    ],
    [["plan", "-o", "json", "--f"], ["--from"]],
    [
      ["plan", "-o", ""],
      ["table", "json"],
    ],
    [["plan", "--output", "j"], ["json"]],
    [
      ["plan", "--output", "="],
      ["table", "json"],
    ],
    [["plan", "--output", "=", "t"], ["table"]],
    // Which bash completes as the name of a file.
    [["plan", "--from", ""], []],
    [
      ["plant", ""],
      ["tree", "flower", "--depth"],
    ],
    [
      ["help", "p"],
      ["plan", "plant"],
    ],
    [["nothing", "x"], []],
  ])("offers, after %j, %j", (typed, words) => {
    expect(offered(...typed)).toEqual(words);
  });
});

describe("completion", () => {
  it("in zsh is that of bash, by the shell's own bridge", () => {
    expect(completionScript("zsh", commands)).toBe(
      `autoload -U +X bashcompinit && bashcompinit\n${completionScript("bash", commands)}`,
    );
  });

  it("in fish quotes what it says of a command", () => {
    const lines = completionScript("fish", commands).split("\n");
    expect(lines).toContain(
      "complete -c lastcall -n __fish_use_subcommand -f -a plant -d 'Isn\\'t there, but begins alike'",
    );
    const plan = "complete -c lastcall -n '__fish_seen_subcommand_from plan'";
    expect(lines).toContain(`${plan} -l output -s o -x -a 'table json'`);
    expect(lines).toContain(`${plan} -l from -r`);
    expect(lines).toContain(`${plan} -l strict`);
    expect(lines).toContain(
      "complete -c lastcall -n '__fish_seen_subcommand_from plant' -f -a 'tree flower'",
    );
  });

  it("refuses a shell that it does not know, with those that it does", () => {
    expect(() => completionScript("csh", commands)).toThrow(
      'Cannot complete for "csh": unknown shell, expected bash, zsh or fish',
    );
  });
});
