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
   * Holds the log and is the part's working folder and home, so that it reads nobody's settings.
   */
  readonly folder: string;
  /** Called when the process ends though nobody stopped it. */
  readonly onDeath: (error: Error) => void;
}

export interface ChildPart {
  readonly name: string;
  readonly logFile: string;
  /** Kills at once, as a machine that loses power would, and resolves when the process is gone. */
  kill(): Promise<void>;
}

const tailLines = 25;

/** Starts one server of the control plane with its output in a file. */
export function startPart(options: PartOptions): ChildPart {
  const { name, command, args, env, folder, onDeath } = options;
  const logFile = join(folder, `${name}.log`);
  const log = openSync(logFile, "a");
  const child = spawn(command, args, {
    cwd: folder,
    env: { PATH: process.env.PATH, HOME: folder, LASTCALL_E2E_EXIT_WITH_PARENT: "1", ...env },
    // The part ends by itself when the pipe to its standard input breaks: even a run that was
    // killed with no chance to clean up leaves no orphan.
    stdio: ["pipe", log, log],
  });
  closeSync(log);
  // A run that forgot to stop its parts ends all the same, and takes them with it.
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
