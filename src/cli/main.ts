#!/usr/bin/env node
import { seededRng } from "../core/rng.ts";
import { endQuietlyOnClosedPipe, interruptSignal, processIo } from "../runtime/process-io.ts";
import { realClock } from "../runtime/real-clock.ts";
import { runCommandLine } from "./command-line.ts";

endQuietlyOnClosedPipe();
process.exitCode = await runCommandLine(process.argv.slice(2), {
  ...processIo(),
  clock: realClock,
  rng: seededRng(realClock.now()),
  signal: interruptSignal(),
});
