import type { CommandIo } from "../../src/cli/command-line/command.ts";
import { runSetup } from "../../src/cli/commands/setup.ts";
import { LastcallError } from "../../src/errors.ts";
import type { FakeTools } from "./fake-tools.ts";

type Input = Parameters<typeof runSetup>[0];

export interface SetupRun {
  readonly code: number | LastcallError;
  readonly out: string;
  readonly err: string;
}

/** Runs `lastcall setup CLOUD` with these options in bash, with only the fake tools on the PATH. */
export async function runSetupOn(
  tools: FakeTools,
  { cloud, ...options }: { readonly cloud: string } & Readonly<Record<string, unknown>>,
  environment: Readonly<Record<string, string>> = {},
): Promise<SetupRun> {
  let [out, err] = ["", ""];
  const io = {
    out: (text: string) => {
      out += text;
    },
    err: (text: string) => {
      err += text;
    },
    env: { ...environment, PATH: tools.path },
    signal: new AbortController().signal,
  } as unknown as CommandIo;
  const input = { words: [cloud], options: { apply: true, ...options }, io };
  const code = await runSetup(input as unknown as Input).catch((fault: unknown) => {
    if (fault instanceof LastcallError) return fault;
    throw fault;
  });
  return { code, out, err };
}
