/**
 * Runs unit tests on other releases of Node, as in `node tools/test-on-node.ts 22 24`: those of
 * what a release of Node can change, or every one with `--all`. Each release is fetched once from
 * npm into the cache that also holds the control plane's binaries.
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { parseArgs } from "node:util";
import { fetchFromNpm } from "./npm-package.ts";
import { root } from "./source-tree.ts";

/** The latest release of each maintained line when this was written. */
const releases: Readonly<Record<string, string>> = { "22": "22.23.3", "24": "24.21.0" };

/**
 * Where the release of Node matters: processes and signals, HTTP, TLS and watches, parsing, time
 * zones, and a whole command. The rest is arithmetic on plain values, which runs on one release.
 */
const dependent = [
  ...["test/runtime", "test/kube", "test/config", "test/server", "test/contract"],
  ...["test/core/time", "test/core/policy", "test/cli/command-line", "test/cli/plan.test.ts"],
];

const { values, positionals } = parseArgs({
  options: { all: { type: "boolean", default: false } },
  allowPositionals: true,
});
// A name that matches nothing would be passed over in silence.
const missing = dependent.find((path) => !existsSync(join(root, path)));
if (missing !== undefined) throw new Error(`${missing} does not exist; name what took its place`);
for (const line of positionals) {
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
  const args = [vitest, "run", ...(values.all ? [] : dependent)];
  const { status } = spawnSync(join(bin, "node"), args, { cwd: root, env, stdio: "inherit" });
  if (status !== 0) process.exit(1);
}
