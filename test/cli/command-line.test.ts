import { expect, it } from "vitest";
import type { CommandIo } from "../../src/cli/command-line/command.ts";
import { runCommandLine } from "../../src/cli/command-line/command-line.ts";
import { commandList } from "../../src/cli/command-line/command-list.ts";
import { optionsFor } from "../../src/config/options/options.ts";

it.each([
  [
    ["plan", "--frm", "x"],
    "lastcall: Cannot run lastcall plan: found the unknown option --frm (did you mean --from?), expected one that lastcall plan --help lists\n",
  ],
  [
    ["plan", "--strct=true"],
    "lastcall: Cannot run lastcall plan: found the unknown option --strct (did you mean --strict?), expected one that lastcall plan --help lists\n",
  ],
  ...[["plna"], ["plna", "--help"], ["help", "plna"]].map((words): [string[], string] => [
    words,
    "lastcall: Cannot run lastcall: found the unknown command plna (did you mean plan?), expected one that lastcall help lists\n",
  ]),
  [["plan", "--at"], "lastcall: Cannot read --at: found no value, expected --at <TIME>\n"],
  [
    ["audit", "-o"],
    "lastcall: Cannot read --output: found no value, expected --output <table|json|yaml|sarif|github>\n",
  ],
  [
    ["completion"],
    "lastcall: Cannot run lastcall completion: no argument was given, expected bash, zsh or fish\n",
  ],
  [
    ["completion", "bash", "zsh"],
    "lastcall: Cannot run lastcall completion: found bash zsh, expected bash, zsh or fish\n",
  ],
  [
    ["run", "--leader-elect=maybe"],
    'lastcall: Cannot read --leader-elect: found "maybe", expected true or false\n',
  ],
  [
    ["--context", "x", "plan"],
    "lastcall: Cannot read the command line: found --context before the command, expected it after: lastcall plan --context …\n",
  ],
  [
    ["-n=x", "plan"],
    "lastcall: Cannot read the command line: found -n=x before the command, expected it after: lastcall plan -n=x …\n",
  ],
  [
    ["--context", "x"],
    "lastcall: Cannot read the command line: found --context and no command, expected one before it: lastcall COMMAND --context …\n",
  ],
  [
    ["--verbose", "plan"],
    "lastcall: Cannot run lastcall: found the unknown option --verbose, expected one that lastcall help lists\n",
  ],
  [
    ["audit", "d.yaml"],
    "lastcall: Cannot run lastcall audit: found d.yaml, expected no argument, pass files with -f\n",
  ],
  [["version", "x"], "lastcall: Cannot run lastcall version: found x, expected no argument\n"],
  [
    ["depart", ""],
    "lastcall: Cannot run lastcall depart: found an empty argument, expected NODE…\n",
  ],
  [
    ["setup", "gcp", "--project", "my-project-1", "--queue", "lastcall"],
    "lastcall: Cannot set up gcp: --queue was given, expected it only with aws\n",
  ],
  [
    ["setup", "gcp", "--project", "my-project-1", "--aws-actions"],
    "lastcall: Cannot set up gcp: --aws-actions was given, expected it only with aws\n",
  ],
  [
    ["setup", "crds", "--no-sqs-complete-hooks"],
    "lastcall: Cannot set up crds: --sqs-complete-hooks was given, expected it only with aws\n",
  ],
  [
    ["plan", "--zzzzzz"],
    "lastcall: Cannot run lastcall plan: found the unknown option --zzzzzz, expected one that lastcall plan --help lists\n",
  ],
])("%j is rejected with one line", async (words, sentence) => {
  expect(await type(words)).toEqual({ exitCode: 2, out: "", err: sentence });
});

it.each([...commandList.map(({ name }) => name), "completion"])(
  "%s rejects an unknown option with the usual form of message",
  async (name) => {
    const { exitCode, out, err } = await type([name, "--no-such-option"]);
    expect({ exitCode, out }).toEqual({ exitCode: 2, out: "" });
    expect(err).toMatch(/^lastcall: Cannot run lastcall [a-z-]+: found .*, expected [^\n]+\n$/);
  },
);

it.each(["plan", "drain-plan"])(
  "the help of %s explains the columns of its table",
  async (name) => {
    const { out } = await type([name, "--help"]);
    const legend = /\nColumns:\n(.*?)\n\n/s.exec(out)?.[1] ?? "";
    const heads = [...legend.matchAll(/^ {2}([A-Z]+) {2,}\S/gm)].map(([, head]) => head);
    expect(heads.length).toBeGreaterThan(2);
    expect(heads).toEqual([...new Set(heads)]);
  },
);

it("the help of a command shows its own options before the common ones", async () => {
  const { exitCode, out } = await type(["plan", "--help"]);
  const places = ["--strict", "--help", "Common options:", "--kubeconfig", "Examples:"].map(
    (word) => out.indexOf(word),
  );
  expect(exitCode).toBe(0);
  expect(places).not.toContain(-1);
  expect(places).toEqual(places.toSorted((a, b) => a - b));
});

it.each(commandList.map(({ name }) => name))(
  "the help of %s fits into 80 columns",
  async (name) => {
    const [options = ""] = (await type([name, "--help"])).out.split("\nExamples:\n");
    // A long word, such as a variable's name, cannot be broken.
    const wide = options.split("\n").filter((line) => line.length > 80 && / \S+ /.test(line));
    expect(wide).toEqual([]);
  },
);

it.each(["bash", "zsh", "fish"])(
  "the help of completion shows how to source it in %s",
  async (shell) => {
    const { out } = await type(["completion", "--help"]);
    expect(out).toMatch(new RegExp(`lastcall completion ${shell}\\b.* # in ~/`));
  },
);

it("the help of each setup option names the parts that read it", () => {
  for (const { name, help, parts } of optionsFor("setup")) {
    const [, told] = /^With ([^:]*):/.exec(help) ?? [];
    if (told === undefined || name === "undo" || name === "cluster") continue;
    expect({ name, parts: told.match(/gcp|aws|azure|admission/g) }).toEqual({ name, parts });
  }
});

it.each([["help"], ["help", "plan"], ["help", "help"]])("%s %s shows help", async (...words) => {
  const { exitCode, out, err } = await type(words);
  expect({ exitCode, err }).toEqual({ exitCode: 0, err: "" });
  expect(out).toContain("Usage: lastcall");
});

async function type(words: readonly string[]) {
  const [out, err]: [string[], string[]] = [[], []];
  const io = {
    ...{ out: (text: string) => void out.push(text), err: (text: string) => void err.push(text) },
    ...{ env: {}, signal: new AbortController().signal },
  } as unknown as CommandIo;
  const exitCode = await runCommandLine(words, io);
  return { exitCode, out: out.join(""), err: err.join("") };
}

it.each([
  ["get nodes", "the unknown command get, use lastcall plan, or kubectl get departures"],
  ["describe node n1", "the unknown command describe, use lastcall drain-plan NODE"],
  ["drain n1", "the unknown command drain, use lastcall depart NODE"],
  ["audit -A", "the unknown option -A, omit it: all namespaces are read"],
  ["plan --all-namespaces", "the unknown option --all-namespaces, omit it"],
  ["plan -w", "the unknown option -w, use lastcall board --tui"],
  ["plan --policy spot.yaml", "the unknown option --policy, use -f FILE with plan"],
  ["plan --polcy spot.yaml", "the unknown option --polcy, use -f FILE with plan"],
  ["simulate --polcy spot.yaml", "the unknown option --polcy (did you mean --policy?)"],
  ["hold n1 --release", "the unknown option --release, use --undo, with which lastcall hold"],
  ["freeze --all --end", "the unknown option --end, use --undo, with which lastcall hold"],
  ["depart n1 --cancel", "the unknown option --cancel, use kubectl delete departure NAME"],
  ["plan -l pool=spot", "the unknown option -l, omit it: only lastcall depart and lastcall hold"],
])("%s, a kubectl habit, is rejected with the alternative", async (line, instead) => {
  const { exitCode, err } = await type(line.split(" "));
  expect(err).toContain(instead);
  expect(exitCode).toBe(2);
});
