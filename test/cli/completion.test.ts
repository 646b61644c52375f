import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { completionScript } from "../../src/cli/command-line/completion.ts";

const commands = [
  { name: "plan", summary: "Shows when each node leaves", flags: ["--output", "--from", "--at"] },
  { name: "plant", summary: "Isn't there, but begins alike", flags: ["--depth"] },
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
    [[""], ["plan", "plant", "help", "completion"]],
    [["pl"], ["plan", "plant"]],
    [
      ["plan", "--"],
      ["--output", "--from", "--at"],
    ],
    [["plan", "-o", "json", "--f"], ["--from"]],
    [["plant", ""], ["--depth"]],
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
      "complete -c lastcall -n __fish_use_subcommand -a plant -d 'Isn\\'t there, but begins alike'",
    );
    expect(lines).toContain("complete -c lastcall -n '__fish_seen_subcommand_from plan' -l output");
  });

  it("refuses a shell that it does not know, with those that it does", () => {
    expect(() => completionScript("csh", commands)).toThrow(
      'Cannot complete for "csh": unknown shell, expected bash, zsh or fish',
    );
  });
});
