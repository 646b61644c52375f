import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  type CompletedCommand,
  completionScript,
} from "../../src/cli/command-line/command-list.ts";

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

type Shell = "bash" | "zsh" | "fish";

/** What each shell offers for a partially typed line; fleet.json is the file in `folder`. */
const lines: readonly (readonly [line: string, ...offered: readonly string[]])[] = [
  ["lastcall ", "plan", "plant", "help"],
  ["lastcall pl", "plan", "plant"],
  ["lastcall plan --", "--output", "--from", "--strict"],
  ["lastcall plan --strict --", "--output", "--from", "--strict"],
  ["lastcall plan -o json --f", "--from"],
  ["lastcall plan -o ", "table", "json"],
  ["lastcall plan --output j", "json"],
  ["lastcall plan --from fl", "fleet.json"],
  ["lastcall plant t", "tree"],
  ["lastcall help p", "plan", "plant"],
  // A node may have the name of a command.
  ["lastcall plan plant --", "--output", "--from", "--strict"],
  ["lastcall nothing x"],
];

/** In bash `=` starts a new word; in the other shells it does not. */
const assigned = {
  bash: [
    ["lastcall plan --output=", "table", "json"],
    ["lastcall plan --output=t", "table"],
  ],
  zsh: [
    ["lastcall plan --output=", "--output=table", "--output=json"],
    ["lastcall plan --output=t", "--output=table"],
  ],
  fish: [
    ["lastcall plan --output=", "--output=table", "--output=json"],
    ["lastcall plan --output=t", "--output=table"],
  ],
} satisfies Readonly<Record<Shell, readonly (readonly [string, ...string[]])[]>>;

/** Holds fleet.json and the files that the shells write. */
let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "lastcall-completion-"));
  writeFileSync(join(folder, "fleet.json"), "{}");
});

afterAll(() => rmSync(folder, { recursive: true }));

/** Runs a shell without user settings; returns the report that it wrote. */
function reported(shell: Shell, flags: readonly string[], input: string): string {
  const report = join(folder, `report-${shell}`);
  writeFileSync(join(folder, `_lastcall.${shell}`), completionScript(shell, commands));
  writeFileSync(
    join(folder, "lines"),
    [...lines, ...assigned[shell]].map(([line]) => `${line}\n`).join(""),
  );
  // Fish cannot read a script from the kind of pipe that Node gives it.
  writeFileSync(join(folder, "script"), input);
  const { error, status, stderr } = spawnSync(shell, flags, {
    ...{ cwd: folder, input, encoding: "utf8", timeout: 60_000 },
    env: { PATH: process.env.PATH, HOME: folder, TERM: "dumb", REPORT: report },
  });
  if (error !== undefined) throw error;
  expect({ status, stderr: shell === "bash" ? "" : stderr }).toEqual({ status: 0, stderr: "" });
  return readFileSync(report, "utf8");
}

/** Each line with its distinct offers in alphabetical order. */
function offersIn(report: string) {
  return report
    .split(/^== /m)
    .slice(1)
    .map((part) => {
      const [line = "", ...offered] = part.split("\n").filter((text) => text !== "");
      return [line, ...[...new Set(offered)].sort()];
    });
}

function expectedIn(shell: Shell) {
  return [...lines, ...assigned[shell]].map(([line, ...offered]) => [line, ...offered.toSorted()]);
}

/**
 * Skips the test with a warning if the shell is missing. In CI the shell must be there: .ci/run
 * installs it.
 */
function inShell(shell: Shell) {
  const isThere = spawnSync(shell, ["--version"]).status === 0;
  if (!isThere) console.warn(`${shell} is not there, and its completion not tried: install it`);
  return it.skipIf(!isThere && !process.env.CI);
}

/** Readline itself calls the function, and its Tab key completes the file name. */
function bashInput(): string {
  const typed = [...lines, ...assigned.bash].map(([line]) => `${line}\t\x15`);
  return `source ./_lastcall.bash
bind 'set bell-style none' 'set show-all-if-ambiguous on' 'set completion-query-items 0'
eval "real$(declare -f _lastcall)"
_lastcall() { real_lastcall; printf '%s\\n' "== $COMP_LINE" "\${COMPREPLY[@]}" >> "$REPORT"; }
lastcall() { printf '%s\\n' "== $*" >> "$REPORT"; }
${typed.join("")}
lastcall plan --from fl\tx
exit
`;
}

/** A shell with a line editor needs a terminal, which zsh itself can create. */
const zshInput = `zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell 'source ./setup.zsh'
zpty -r shell seen '*READY*'
zpty -w -n shell $'\\x18a'
zpty -r shell seen '*FINISHED*'
`;

/** Lists the choices for each line, as Tab does, and records the matches given to the shell. */
const zshSetup = `PS1=
autoload -Uz compinit && compinit -u -D
source ./_lastcall.zsh
compadd() { local -a hits; builtin compadd -O hits "$@"; print -rl -- $hits >> $REPORT; builtin compadd "$@" }
ask() {
  local line
  for line in "\${(@f)$(<lines)}"; do
    BUFFER=$line CURSOR=$#line
    print -r -- "== $line" >> $REPORT
    zle list-choices
  done
  print FINISHED
}
zle -N ask
bindkey '^Xa' ask
print REA""DY
`;

const fishInput = `source ./_lastcall.fish
while read --local line
  echo "== $line" >> $REPORT
  complete -C $line | string replace --regex '\\t.*' '' >> $REPORT
end < lines
exit 0
`;

describe("completion, as the shell itself offers it", () => {
  inShell("bash")("in bash, by readline", () => {
    const offers = offersIn(reported("bash", ["--norc", "--noprofile", "-i"], bashInput()));
    // Readline completes file names itself; the function leaves them to it.
    const expected = expectedIn("bash").map((one) =>
      one[0] === "lastcall plan --from fl" ? [one[0]] : one,
    );
    expect(offers).toEqual([
      ...expected,
      ["lastcall plan --from fl"],
      ["plan --from fleet.json x"],
    ]);
  });

  inShell("zsh")("in zsh, by its completion system", () => {
    writeFileSync(join(folder, "setup.zsh"), zshSetup);
    expect(offersIn(reported("zsh", ["-f"], zshInput))).toEqual(expectedIn("zsh"));
  });

  inShell("fish")("in fish, which says what a command is for", () => {
    expect(offersIn(reported("fish", ["--no-config", "script"], fishInput))).toEqual(
      expectedIn("fish"),
    );
  });
});

describe("completion", () => {
  it("in fish quotes the descriptions of commands", () => {
    expect(completionScript("fish", commands)).toContain(
      "-a plant -d 'Isn\\'t there, but begins alike'",
    );
  });

  it("rejects an unknown shell and lists the known ones", () => {
    expect(() => completionScript("csh", commands)).toThrow(
      'Cannot complete for "csh": unknown shell, expected bash, zsh or fish',
    );
  });
});
