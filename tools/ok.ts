/**
 * Every gate in one command, cheapest first; stops at the first that fails. With `--no-tests`, for
 * whoever runs `npm test` itself, all but the unit tests.
 */
import { spawnSync } from "node:child_process";
import { parseArgs } from "node:util";
import { root } from "./source-tree.ts";

const { values } = parseArgs({
  options: { tests: { type: "boolean", default: true } },
  allowNegative: true,
});

const gates: readonly (readonly [name: string, command: string, ...args: string[]])[] = [
  ["types", "tsc", "--noEmit"],
  ["lint", "biome", "check", "--error-on-warnings", "."],
  ["imports", "node", "tools/check-imports.ts"],
  ["modules", "node", "tools/check-modules.ts"],
  ["style", "node", "tools/check-style.ts"],
  ["docs", "node", "tools/check-docs.ts"],
  ["generated files", "node", "tools/generate.ts", "--check"],
  ["bundle", "node", "tools/bundle.ts"],
  ...(values.tests ? ([["tests", "vitest", "run"]] as const) : []),
];

for (const [name, command, ...args] of gates) {
  console.log(`\n=== ${name}: ${[command, ...args].join(" ")}`);
  const { status } = spawnSync(command, args, { cwd: root, stdio: "inherit" });
  if (status !== 0) {
    console.error(`\n${name} failed; later gates were not run`);
    process.exit(1);
  }
}
console.log("\nAll gates are green.");
