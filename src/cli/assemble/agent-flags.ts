import { fieldNameOf } from "../../config/options/option.ts";
import { optionsFor } from "../../config/options/options.ts";
import { spellSwitches } from "../../config/options/resolve-options.ts";
import { LastcallError } from "../../errors.ts";

/**
 * The flags of `lastcall agent`, by field name: `--name value`, `--name=value`, `--switch`,
 * `--no-switch`. The command's own name may come first. Kept small, because the parser of the other
 * commands, and Bun's own, take 4 MiB and more. Throws USAGE.
 */
export function agentFlags(words: readonly string[]): Readonly<Record<string, string | boolean>> {
  const args = [...spellSwitches("agent", words[0] === "agent" ? words.slice(1) : words)];
  const flags: Record<string, string | boolean> = {};
  const types = new Map(optionsFor("agent").map(({ name, type }) => [name, type as string]));
  for (let arg = args.shift(); arg !== undefined; arg = args.shift()) {
    const [, name = "", , value] = /^--([a-z0-9-]+)(=(.*))?$/s.exec(arg) ?? [];
    const positive = name.replace(/^no-/, "");
    if (types.get(positive) === "switch" && value === undefined) {
      flags[fieldNameOf(positive)] = name === positive;
    } else if (types.has(name) && types.get(name) !== "switch") {
      flags[fieldNameOf(name)] = value ?? valueAfter(name, args.shift());
    } else throw unusable(`found ${arg}`);
  }
  return flags;
}

function valueAfter(name: string, next: string | undefined): string {
  if (next === undefined || next.startsWith("--")) throw unusable(`--${name} has no value`);
  return next;
}

function unusable(found: string): LastcallError {
  return new LastcallError(
    "USAGE",
    `Cannot run lastcall agent: ${found}, expected flags that lastcall help agent lists`,
  );
}
