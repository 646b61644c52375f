import { spawn } from "node:child_process";

const openers: Readonly<Partial<Record<NodeJS.Platform, readonly string[]>>> = {
  darwin: ["open"],
  win32: ["cmd", "/c", "start", ""],
};

/** Opens an address in the user's browser; gives what kept it from that, if anything did. */
export function openBrowser(url: string): Promise<string | undefined> {
  const [program = "xdg-open", ...args] = openers[process.platform] ?? [];
  return new Promise((resolve) => {
    const child = spawn(program, [...args, url], { stdio: "ignore", detached: true });
    child.once("error", ({ message }) => resolve(message));
    child.once("spawn", () => {
      child.unref();
      resolve(undefined);
    });
  });
}
