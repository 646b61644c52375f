import { spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { Socket } from "node:net";
import { join } from "node:path";

export interface PartOptions {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /**
   * Contains the log; it is also the part's working directory and home, so that the part reads
   * nobody's settings.
   */
  readonly folder: string;
  /** Called if the process ends without having been stopped. */
  readonly onDeath: (error: Error) => void;
}

export interface ChildPart {
  readonly name: string;
  readonly logFile: string;
  /** Kills it immediately, like a power failure, and resolves when the process is gone. */
  kill(): Promise<void>;
}

const tailLines = 25;

/** Starts one server of the control plane, with its output in a file. */
export function startPart(options: PartOptions): ChildPart {
  const { name, command, args, env, folder, onDeath } = options;
  const logFile = join(folder, `${name}.log`);
  const log = openSync(logFile, "a");
  const child = spawn(command, args, {
    cwd: folder,
    env: { PATH: process.env.PATH, HOME: folder, LASTCALL_E2E_EXIT_WITH_PARENT: "1", ...env },
    // The part ends on its own when the pipe to its standard input breaks: even a run that was
    // killed without a chance to clean up leaves no orphan.
    stdio: ["pipe", log, log],
  });
  closeSync(log);
  // A run that forgot to stop its parts can still end, and takes them with it.
  child.unref();
  if (child.stdin instanceof Socket) child.stdin.unref();
  let stopped = false;
  const gone = Promise.withResolvers<void>();
  const end = (how: string) => {
    gone.resolve();
    if (!stopped) onDeath(new Error(`Cannot go on without ${name}: ${how}\n${tailOf(logFile)}`));
  };
  child.once("error", (error) => end(`it did not start, ${error.message}`));
  child.once("exit", (code, signal) => end(`it ended with ${signal ?? `exit code ${code}`}`));
  return {
    name,
    logFile,
    kill: () => {
      stopped = true;
      child.ref();
      child.kill("SIGKILL");
      return gone.promise;
    },
  };
}

function tailOf(logFile: string): string {
  const lines = readFileSync(logFile, "utf8").trimEnd().split("\n");
  return [`The last lines of ${logFile}:`, ...lines.slice(-tailLines)].join("\n");
}
