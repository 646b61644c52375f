import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CommandIo } from "../../src/cli/command-line/command.ts";
import { runCommandLine } from "../../src/cli/command-line/command-line.ts";
import { seededRng } from "../../src/core/chance/chance.ts";
import { processIo } from "../../src/runtime/process-io.ts";
import { realClock } from "../../src/runtime/real-clock.ts";
import { serveModel } from "../../src/sim/http/serve-model.ts";
import type { ModelWorld } from "./model-world.ts";

export interface ModelCli {
  /** Runs a command in this process with a kubeconfig of the model's API server. */
  readonly run: (args: readonly string[], more?: RunOptions) => Promise<CliResult>;
  close(): Promise<void>;
}

export interface RunOptions {
  readonly signal?: AbortSignal;
  /** Called for each line on stderr. */
  readonly onErr?: (text: string) => void;
}

export interface CliResult {
  readonly exit: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** The command line against a model cluster that has its own time. */
export async function modelCli(world: ModelWorld): Promise<ModelCli> {
  const server = await serveModel({ api: world.api, rate: () => 1 });
  const folder = await mkdtemp(join(tmpdir(), "lastcall-cli-"));
  const KUBECONFIG = join(folder, "kubeconfig");
  await writeFile(KUBECONFIG, server.kubeconfig);
  return {
    run: async (args, { signal = new AbortController().signal, onErr } = {}) => {
      let [stdout, stderr] = ["", ""];
      const io: Partial<CommandIo> = {
        out: (text) => {
          stdout += text;
        },
        err: (text) => {
          stderr += text;
          onErr?.(text);
        },
        env: { KUBECONFIG },
        files: processIo().files,
        ...{ isTerminal: false, colour: false, columns: 80, timeZone: "Europe/Berlin" },
        ...{ clock: realClock, rng: seededRng(1), signal },
      };
      return { exit: await runCommandLine(args, io as CommandIo), stdout, stderr };
    },
    close: async () => {
      await server.close();
      await rm(folder, { recursive: true });
    },
  };
}
