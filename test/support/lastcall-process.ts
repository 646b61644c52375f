import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { compileCache } from "./compile-cache.ts";

export interface ProcessEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface LastcallProcess {
  readonly pid: number;
  /** Aborted if the process ends without having been stopped. */
  readonly death: AbortSignal;
  readonly ended: Promise<ProcessEnd>;
  /** Everything that it has written to stdout and stderr so far. */
  out(): string;
  log(): string;
  /** SIGKILL: no chance to clean up. Resolves when the process is gone. */
  kill(): Promise<ProcessEnd>;
  /** SIGTERM, as the kubelet sends it. */
  stop(): Promise<ProcessEnd>;
}

export interface ProcessOptions {
  /** Its home and working directory, so that it reads nobody's settings. */
  readonly folder: string;
  readonly env?: Readonly<Record<string, string>>;
}

const program = join(import.meta.dirname, "..", "..", "src", "cli", "main.ts");

/** Starts the program as a user would, in a separate process. */
export function startLastcall(args: readonly string[], options: ProcessOptions): LastcallProcess {
  const child = spawn(process.execPath, [program, ...args], {
    cwd: options.folder,
    env: { PATH: process.env.PATH, HOME: options.folder, ...compileCache, ...options.env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const death = new AbortController();
  const output = { stdout: "", stderr: "" };
  collect(child, output);
  let wanted = false;
  const ended = new Promise<ProcessEnd>((resolve) => {
    child.once("close", (code, signal) => {
      if (!wanted) {
        const how = signal ?? `exit code ${code}`;
        death.abort(
          new Error(`Cannot go on without lastcall: ended with ${how}\n${output.stderr}`),
        );
      }
      resolve({ code, signal, ...output });
    });
  });
  const send = (signal: "SIGKILL" | "SIGTERM"): Promise<ProcessEnd> => {
    wanted = true;
    child.kill(signal);
    return ended;
  };
  // If the test run ends early, the program ends with it.
  const orphaned = () => void child.kill("SIGKILL");
  process.once("exit", orphaned);
  void ended.then(() => process.off("exit", orphaned));
  return {
    pid: child.pid ?? 0,
    death: death.signal,
    ended,
    out: () => output.stdout,
    log: () => output.stderr,
    kill: () => send("SIGKILL"),
    stop: () => send("SIGTERM"),
  };
}

/** Starts the controller as its pod does: with the account's own namespace known to it. */
export function startAsPod(args: readonly string[], options: ProcessOptions): LastcallProcess {
  return startLastcall(args, { ...options, env: { POD_NAMESPACE: "lastcall", ...options.env } });
}

/** Runs a command until it ends. */
export function runLastcall(args: readonly string[], options: ProcessOptions): Promise<ProcessEnd> {
  return startLastcall(args, options).ended;
}

function collect(child: ChildProcess, output: { stdout: string; stderr: string }): void {
  for (const name of ["stdout", "stderr"] as const) {
    child[name]?.setEncoding("utf8");
    child[name]?.on("data", (chunk: string) => {
      output[name] += chunk;
    });
  }
}
