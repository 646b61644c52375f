/**
 * Runs the unit tests on other releases of Node, as in `node tools/test-on-node.ts 22 24`. Each is
 * fetched once from npm into the cache that also holds the control plane's binaries.
 */
import { spawnSync } from "node:child_process";
import { delimiter, join } from "node:path";
import { fetchFromNpm } from "./npm-package.ts";
import { root } from "./source-tree.ts";

/** The latest release of each maintained line when this was written. */
const releases: Readonly<Record<string, string>> = { "22": "22.23.3", "24": "24.21.0" };

for (const line of process.argv.slice(2)) {
  const version = releases[line];
  if (version === undefined) {
    const known = Object.keys(releases).join(" or ");
    console.error(`Cannot test on Node ${line}: expected ${known}`);
    process.exit(2);
  }
  const architecture = process.arch === "arm64" ? "arm64" : "x64";
  const bin = join(fetchFromNpm(`node-linux-${architecture}`, version), "bin");
  const env = { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH}` };
  console.log(`\n=== unit tests on Node ${version}`);
  const vitest = join(root, "node_modules/vitest/vitest.mjs");
  const { status } = spawnSync(join(bin, "node"), [vitest, "run"], {
    cwd: root,
    env,
    stdio: "inherit",
  });
  if (status !== 0) process.exit(1);
}
