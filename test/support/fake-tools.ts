import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";

/** Command line tools that record their calls and keep their own state in files. */
export interface FakeTools<Standing extends string = string> {
  /** A PATH with only bash, mktemp, mv, rm and the fake tools. */
  readonly path: string;
  readonly folder: string;
  put(what: Standing, content?: string): void;
  has(what: Standing): boolean;
  /** From now on, calls that contain this text, with bars between the arguments, fail like this. */
  break(call: string, error: ToolError): void;
  mend(): void;
  /** Everything that exists, by name, with its content. */
  standing(): Readonly<Record<string, string>>;
  /** Every call so far, with its arguments separated by bars. */
  calls(): readonly string[];
  forget(): void;
  remove(): void;
}

export interface ToolError {
  readonly exitCode: number;
  /** One line on stderr. */
  readonly message: string;
  /** Whether the call takes effect all the same, as if only its response were lost. */
  readonly effective?: boolean;
}

/**
 * The start of each tool's script, in bash: `has`, `put`, `get` and `drop` for the things that
 * exist, `flag` for the value of a flag, `refuse` to fail with a sentence.
 */
export const fakeToolPreamble = `#!/bin/bash
here="\${0%/*}"
IFS='|'
args=("$@")
line="\${0##*/}|$*"
echo "\${line//$'\\n'/ }" >> "$here/calls"
has() { [[ -e "$here/has-$1" ]]; }
put() { echo "\${2-}" > "$here/has-$1"; }
get() { echo "$(< "$here/has-$1")"; }
drop() { rm "$here/has-$1"; }
refuse() { echo "ERROR: $1" >&2; exit 1; }
flag() {
  local i
  for ((i = 0; i < \${#args[@]}; i++)); do
    if [[ "\${args[i]}" == "$1" ]]; then echo "\${args[i+1]}"; return; fi
  done
  echo "ERROR: $1 is missing" >&2
  exit 2
}
if [[ -e "$here/broken" ]]; then
  { IFS= read -r call; IFS= read -r code; IFS= read -r message; IFS= read -r when; } < "$here/broken"
  if [[ "$line" == *"$call"* ]]; then
    trap 'echo "$message" >&2; exit "$code"' EXIT
    if [[ "$when" != after ]]; then exit; fi
  fi
fi
`;

/**
 * Creates the tools; each is a bash script that follows the preamble. A test creates and removes
 * them.
 */
export function makeFakeTools<Standing extends string>(
  tools: Readonly<Record<string, string>>,
): FakeTools<Standing> {
  const folder = mkdtempSync(join(tmpdir(), "lastcall-tools-"));
  for (const [name, text] of Object.entries({ sleep: "", ...tools })) {
    writeFileSync(join(folder, name), fakeToolPreamble + text);
    chmodSync(join(folder, name), 0o755);
  }
  for (const name of ["bash", "mktemp", "mv", "rm"]) symlinkSync(whichOf(name), join(folder, name));
  const calls = join(folder, "calls");
  const textOf = (what: string) => readFileSync(join(folder, `has-${what}`), "utf8").trimEnd();
  return {
    path: folder,
    folder,
    put: (what, content = "") => writeFileSync(join(folder, `has-${what}`), content),
    has: (what) => existsSync(join(folder, `has-${what}`)),
    break: (call, { exitCode, message, effective = false }) =>
      writeFileSync(
        join(folder, "broken"),
        `${call}\n${exitCode}\n${message}\n${effective ? "after" : "before"}\n`,
      ),
    mend: () => rmSync(join(folder, "broken"), { force: true }),
    standing: () => {
      const names = readdirSync(folder).flatMap((name) => /^has-(.*)$/.exec(name)?.[1] ?? []);
      return Object.fromEntries(names.sort().map((name) => [name, textOf(name)]));
    },
    calls: () => (existsSync(calls) ? readFileSync(calls, "utf8").split("\n").slice(0, -1) : []),
    forget: () => rmSync(calls, { force: true }),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

function whichOf(name: string): string {
  const found = (process.env.PATH ?? "")
    .split(delimiter)
    .map((folder) => join(folder, name))
    .find(existsSync);
  if (found === undefined) throw new Error(`Cannot find ${name} on the PATH`);
  return found;
}
