import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

/** The same version as in deploy/images/agent.Dockerfile. */
const release = "1.4.5";

/**
 * Makes the end-to-end tests run the agent on Bun, as its image does; the unit tests run it on
 * Node. Bun is fetched once from npm into the cache that also holds the control plane's binaries.
 * E2E_AGENT_RUNTIME, if set, takes precedence.
 */
export function setup(): void {
  process.env.E2E_AGENT_RUNTIME ??= installBun();
}

function installBun(): string {
  const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "lastcall");
  const home = join(cache, `bun-${release}`);
  if (!existsSync(home)) fetchInto(home);
  const vendor = join(home, "node_modules", "@oven");
  const found = readdirSync(vendor)[0];
  if (found === undefined) throw new Error(`Cannot find Bun in ${vendor}: it is empty`);
  return join(vendor, found, "bin", "bun");
}

/** Fetched under another name until it is complete. */
function fetchInto(home: string): void {
  const half = `${home}.${process.pid}`;
  mkdirSync(half, { recursive: true });
  const wanted = ["--no-save", "--ignore-scripts", "--no-audit", "--no-fund", `bun@${release}`];
  try {
    execFileSync("npm", ["install", "--prefix", half, ...wanted], { stdio: "pipe" });
    renameSync(half, home);
  } catch (error) {
    rmSync(half, { recursive: true, force: true });
    throw new Error(`Cannot install Bun ${release}: ${String(error)}; check the registry of npm`);
  }
}
