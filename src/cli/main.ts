#!/usr/bin/env node
import { seededRng } from "../core/chance/chance.ts";
import {
  endQuietlyOnClosedPipe,
  interruptSignal,
  processIo,
  silenceWarnings,
} from "../runtime/process-io.ts";
import { realClock } from "../runtime/real-clock.ts";
import { runCommandLine } from "./command-line/command-line.ts";
import { onTerminalLine } from "./command-line/terminal.ts";

endQuietlyOnClosedPipe();
silenceWarnings("MetadataLookupWarning");
const io = processIo();
const signal = interruptSignal();
process.exitCode = await runCommandLine(process.argv.slice(2), {
  ...io,
  onLine: io.isTerminal ? onTerminalLine : undefined,
  clock: realClock,
  rng: seededRng(realClock.now()),
  signal,
});
// A library that requests a cloud's token takes no signal, and would keep the process waiting.
if (signal.aborted) process.stdout.write("", () => process.exit());
