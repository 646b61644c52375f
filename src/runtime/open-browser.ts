import { spawn } from "node:child_process";

const openers: Readonly<Partial<Record<NodeJS.Platform, readonly string[]>>> = {
  darwin: ["open"],
  win32: ["cmd", "/c", "start", ""],
};

/** One that cannot open anything says so at once; one that can may run as long as the browser. */
const soonMs = 2000;

/** Opens an address in the user's browser; gives what kept it from that, if anything did. */
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
