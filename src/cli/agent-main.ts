#!/usr/bin/env node
/**
 * `lastcall agent` on its own, as the agent's image runs it on Bun: without the other commands and
 * the parser that they need.
 */
import { agentFlags, resolveOptions } from "../config/options/resolve-options.ts";
import { seededRng } from "../core/chance/chance.ts";
import { isLastcallError, messageOf } from "../errors.ts";
import { interruptSignal, leanIo } from "../runtime/process-io.ts";
import { realClock } from "../runtime/real-clock.ts";
import { runAgent } from "./commands/agent.ts";

const io = {
  ...leanIo(),
  clock: realClock,
  rng: seededRng(realClock.now()),
  signal: interruptSignal(),
};

try {
  const flags = agentFlags(process.argv.slice(2));
  process.exitCode = await runAgent({
    options: resolveOptions("agent", { flags, env: io.env }),
    io,
  });
} catch (error) {
  io.err(`lastcall agent: ${messageOf(error)}\n`);
  process.exitCode = isLastcallError(error) ? error.exitCode : 1;
}
