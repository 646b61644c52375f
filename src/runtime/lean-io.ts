import { LastcallError } from "../errors.ts";

/**
 * The process's streams for a program that only writes lines, through the console: on Bun,
 * `process.stdout` and `process.stderr` bring 7 MiB of stream machinery with them. No files, no
 * terminal, no colour.
 */
export function leanIo() {
  return {
    out: (text: string) => console.log(text.replace(/\n$/, "")),
    err: (text: string) => console.error(text.replace(/\n$/, "")),
    isTerminal: false,
    colour: false,
    columns: 100,
    env: process.env,
    fetch: globalThis.fetch,
    files: {
      readText: refuse,
      list: refuse,
      stdin: refuse,
      stdinBytes: () => {
        throw noFiles();
      },
      writeTemporary: refuse,
    },
  };
}

async function refuse(): Promise<never> {
  throw noFiles();
}

function noFiles(): LastcallError {
  return new LastcallError(
    "INPUT_UNREADABLE",
    "Cannot read a file: the agent takes none, flags are wanted",
  );
}
