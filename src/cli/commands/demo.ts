import { LastcallError } from "../../errors.ts";
import { simulationReport } from "../../sim/demo/simulation-report.ts";
import {
  type CommandInput,
  type CommandIo,
  type CommandRun,
  printData,
} from "../command-line/command.ts";
import type { SimulationOptions } from "../demo/demo-run.ts";

/** The demo: on a board, as plain lines, or headless with a report. */
export const runDemo: CommandRun<"demo"> = async (input) => {
  const { seed } = input.options;
  refuseUselessOpen(input);
  if (input.options.headless) return reportDemo({ ...input, seed });
  const { showDemo } = await import("../demo/show-demo.ts");
  return showDemo({ ...input, seed });
};

/** Throws USAGE. */
function refuseUselessOpen({ options }: CommandInput<"demo">): void {
  if (!options.headless || !options.open) return;
  throw new LastcallError(
    "USAGE",
    "Cannot use --open with --headless: a headless run has no board, remove one of the two",
  );
}

/** Runs as fast as possible. The exit code is 3 if an invariant was broken. */
async function reportDemo(
  input: CommandInput<"demo"> & { readonly seed: number },
): Promise<number> {
  const { nodes, hours, output, quiet } = input.options;
  const course = { nodes, hours, runs: 1, sides: [{ name: "lastcall" }] };
  return reportSimulation({ ...course, seed: input.seed, output, quiet, io: input.io });
}

/**
 * Runs a simulation as fast as possible, and prints its report. The exit code is 3 if an invariant
 * was broken.
 */
export async function reportSimulation(
  how: Omit<SimulationOptions, "log" | "signal" | "onProgress"> & {
    readonly output: "table" | "json" | "yaml";
    readonly quiet: boolean;
    readonly io: CommandIo;
  },
): Promise<number> {
  const { output, quiet, io, ...options } = how;
  const { headlessTable, runSimulation, silentLog } = await import("../demo/demo-run.ts");
  const startedMs = io.clock.monotonic();
  const progress = progressLine({ io, quiet, what: `${options.hours} h` });
  const facts = await runSimulation({
    ...options,
    log: silentLog,
    signal: io.signal,
    onProgress: progress.show,
  }).finally(progress.clear);
  const wallSeconds = Math.round(io.clock.monotonic() - startedMs) / 1000;
  if (output === "table") io.out(headlessTable({ ...facts, wallSeconds }));
  else await printData(simulationReport({ ...facts, wallSeconds }), output, io);
  return facts.violations.length > 0 ? 3 : 0;
}

/** Work shorter than this shows no progress. */
const silentMs = 2000;

interface ProgressLine {
  /** `share` from 0 to 1. */
  readonly show: (share: number) => void;
  readonly clear: () => void;
}

/** Progress as one line on a terminal; nothing in a pipe. */
function progressLine(options: {
  readonly io: Pick<CommandIo, "clock" | "err" | "isTerminal">;
  readonly quiet: boolean;
  readonly what: string;
}): ProgressLine {
  const { io, quiet, what } = options;
  const startedMs = io.clock.monotonic();
  let isShown = false;
  return {
    show: (share) => {
      if (quiet || !io.isTerminal || io.clock.monotonic() - startedMs < silentMs) return;
      isShown = true;
      io.err(`\r${what}: ${Math.floor(share * 100)} %`);
    },
    clear: () => {
      if (isShown) io.err(`\r${" ".repeat(what.length + 8)}\r`);
    },
  };
}
