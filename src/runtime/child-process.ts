import { spawn } from "node:child_process";

const openers: Readonly<Partial<Record<NodeJS.Platform, readonly string[]>>> = {
  darwin: ["open"],
  win32: ["cmd", "/c", "start", ""],
};

/**
 * A program that cannot open anything fails at once; one that can may run as long as the browser.
 */
const soonMs = 2000;

/** Opens an address in the user's browser; resolves with the problem, if there is one. */
export function openBrowser(url: string): Promise<string | undefined> {
  const [program = "xdg-open", ...args] = openers[process.platform] ?? [];
  return new Promise((resolve) => {
    const child = spawn(program, [...args, url], { stdio: "ignore", detached: true });
    child.unref();
    const timer = setTimeout(() => resolve(undefined), soonMs).unref();
    const end = (problem: string | undefined): void => {
      clearTimeout(timer);
      resolve(problem);
    };
    child.once("error", (error: NodeJS.ErrnoException) =>
      end(error.code === "ENOENT" ? `${program} was not found` : error.message),
    );
    child.once("exit", (code, signal) =>
      end(code === 0 ? undefined : `${program} ended with ${signal ?? `exit code ${code}`}`),
    );
  });
}

export interface ScriptIo {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
}

/** How a script ended; `notRun` if bash itself could not be started. */
type ScriptEnd = "Ended" | { readonly endedBy: string } | { readonly notRun: string };

/**
 * Runs a script with bash, without input, and passes on its output as it arrives. Resolves with
 * "Ended" on success. If the signal aborts, terminates the script and rejects with the signal's
 * reason.
 */
export function runScript(script: string, io: ScriptIo): Promise<ScriptEnd> {
  return new Promise((resolve, reject) => {
    const { env, signal } = io;
    if (signal.aborted) return reject(signal.reason);
    // A process group of its own, so that everything the script has started is terminated with it.
    const child = spawn("bash", ["-c", script], {
      env,
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    child.stdout.setEncoding("utf8").on("data", io.out);
    child.stderr.setEncoding("utf8").on("data", io.err);
    const stop = () => {
      if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, "SIGTERM");
    };
    signal.addEventListener("abort", stop, { once: true });
    child.once("error", ({ message }) => resolve({ notRun: message }));
    child.once("close", (code, killedBy) => {
      signal.removeEventListener("abort", stop);
      if (signal.aborted) reject(signal.reason);
      else resolve(code === 0 ? "Ended" : { endedBy: killedBy ?? `exit code ${code}` });
    });
  });
}
