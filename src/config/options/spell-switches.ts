import type { Command } from "./option.ts";
import { optionsFor } from "./options.ts";

/**
 * Rewrites `--x=true` to `--x` and `--x=false` to `--no-x` for the switches of a command, which is
 * all that commander understands of them; anything else after the equals sign is left for it to
 * refuse. Nothing after `--` is touched.
 */
export function spellSwitches(command: Command, args: readonly string[]): readonly string[] {
  const switches = new Set(
    optionsFor(command)
      .filter(({ type }) => type === "switch")
      .map(({ name }) => name),
  );
  const end = args.indexOf("--");
  return args.map((arg, index) => {
    const [, name, value] = /^--([a-z0-9-]+)=(true|false|1|0)$/i.exec(arg) ?? [];
    if (name === undefined || !switches.has(name) || (end >= 0 && index > end)) return arg;
    return value === "1" || value?.toLowerCase() === "true" ? `--${name}` : `--no-${name}`;
  });
}
