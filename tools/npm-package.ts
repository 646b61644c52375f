/** npm packages that a tool runs or packs and that are not dependencies of the project. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { cacheRoot } from "./go-build.ts";

/** The folder of a package, fetched if it is not in the cache; npm checks its integrity. */
export function fetchFromNpm(name: string, version: string): string {
  const home = join(cacheRoot(), "npm", `${name.replace("/", "-")}-${version}`);
  if (existsSync(home)) return home;
  const half = `${home}.${process.pid}`;
  mkdirSync(half, { recursive: true });
  try {
    const options = { cwd: half, encoding: "utf8" } as const;
    const file = execFileSync("npm", ["pack", "--silent", `${name}@${version}`], options).trim();
    execFileSync("tar", ["-xzf", file], options);
    renameSync(join(half, "package"), home);
  } finally {
    rmSync(half, { recursive: true, force: true });
  }
  return home;
}
