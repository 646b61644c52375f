#!/usr/bin/env node
/**
 * `lastcall agent` on its own, as the agent's image runs it on Bun: without the other commands and
 * the parser that they need.
 */
import { agentFlags, resolveOptions, unknownVariables } from "../config/options/resolve-options.ts";
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
  process.exitCode = await runAgent({ options: readOptions(), io });
} catch (error) {
  io.err(`lastcall agent: ${messageOf(error)}\n`);
  process.exitCode = isLastcallError(error) ? error.exitCode : 1;
}

/** A variable that does nothing may be why the options are wrong; a running agent logs it. */
function readOptions() {
  try {
    return resolveOptions("agent", { flags: agentFlags(process.argv.slice(2)), env: io.env });
  } catch (error) {
    for (const sentence of unknownVariables("agent", io.env)) {
      io.err(`lastcall agent: ${sentence}\n`);
    }
    throw error;
  }
}
