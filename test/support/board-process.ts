import { type LastcallProcess, startLastcall } from "./lastcall-process.ts";
import { waitUntil } from "./wait-until.ts";

export interface BoardProcess {
  readonly url: string;
  readonly process: LastcallProcess;
}

/** Starts `lastcall board` or the demo, and returns the address that it prints. */
export async function startBoardProcess(
  args: readonly string[],
  options: { readonly folder: string },
): Promise<BoardProcess> {
  const process = startLastcall([...args, "--address", "127.0.0.1:18087"], options);
  const url = await waitUntil(async () => /http:\/\/\S+\?token=\S+/.exec(process.out())?.[0], {
    what: "the board has printed its address",
    timeoutMs: 30_000,
    signal: process.death,
  });
  return { url, process };
}
