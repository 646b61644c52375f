#!/usr/bin/env node
/**
 * `lastcall agent` by itself, as the agent's image runs it on Bun: without the other commands and the
 * parser that they need. It knows the same flags, `--name value` or `--name=value`, and variables.
 */
import { parseArgs } from "node:util";
import { fieldNameOf } from "../config/option.ts";
import { optionsFor } from "../config/options.ts";
import { resolveOptions } from "../config/resolve-options.ts";
import { spellSwitches } from "../config/spell-switches.ts";
import { seededRng } from "../core/rng.ts";
import { isLastcallError, LastcallError, messageOf } from "../errors.ts";
import { interruptSignal } from "../runtime/interrupt-signal.ts";
import { leanIo } from "../runtime/lean-io.ts";
import { realClock } from "../runtime/real-clock.ts";
import { runAgent } from "./agent.ts";

const io = {
  ...leanIo(),
  clock: realClock,
  rng: seededRng(realClock.now()),
  signal: interruptSignal(),
};

try {
  const options = resolveOptions("agent", { flags: flagsOf(process.argv.slice(2)), env: io.env });
  process.exitCode = await runAgent({ options, io });
} catch (error) {
  io.err(`lastcall agent: ${messageOf(error)}\n`);
  process.exitCode = isLastcallError(error) ? error.exitCode : 1;
}

/** The command's own name may come first, so that both images take the same arguments. */
function flagsOf(words: readonly string[]): Record<string, string | boolean> {
  const known = Object.fromEntries(
    optionsFor("agent").map(({ name, type }) => [
      name,
      { type: type === "switch" ? ("boolean" as const) : ("string" as const) },
    ]),
  );
  const args = spellSwitches("agent", words[0] === "agent" ? words.slice(1) : words);
  try {
    const { values } = parseArgs({ args: [...args], options: known, allowNegative: true });
    return Object.fromEntries(
      Object.entries(values).flatMap(([name, value]) =>
        value === undefined ? [] : [[fieldNameOf(name), value as string | boolean]],
      ),
    );
  } catch (error) {
    throw new LastcallError(
      "USAGE",
      `Cannot run lastcall agent: ${messageOf(error)}, a known flag is wanted`,
    );
  }
}
