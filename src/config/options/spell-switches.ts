import { LastcallError } from "../../errors.ts";
import type { Command } from "./option.ts";
import { optionsFor } from "./options.ts";

/**
 * Rewrites `--x=true` to `--x` and `--x=false` to `--no-x` for the switches of a command, which is
 * all that commander understands of them. Nothing after `--` is touched. Throws USAGE for any other
 * value of one: commander would call the option unknown.
 */
export function spellSwitches(command: Command, args: readonly string[]): readonly string[] {
  const switches = new Set(
    optionsFor(command)
      .filter(({ type }) => type === "switch")
      .map(({ name }) => name),
  );
  const end = args.indexOf("--");
  return args.map((arg, index) => {
    const [, name, value = ""] = /^--([a-z0-9-]+)=(.*)$/is.exec(arg) ?? [];
    if (name === undefined || !switches.has(name) || (end >= 0 && index > end)) return arg;
    if (/^(true|1)$/i.test(value)) return `--${name}`;
    if (/^(false|0)$/i.test(value)) return `--no-${name}`;
    const found = `found ${JSON.stringify(value)}, expected true or false`;
    throw new LastcallError("USAGE", `Cannot read --${name}: ${found}`);
  });
}
