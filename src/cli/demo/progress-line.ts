import type { CommandIo } from "../command-line/command-io.ts";

/** Work that takes less than this says nothing. */
const silentMs = 2000;

export interface ProgressLine {
  /** `share` from 0 to 1. */
  readonly show: (share: number) => void;
  readonly clear: () => void;
}

/** One line on a terminal that says how far something is; nothing in a pipe. */
export function progressLine(options: {
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
