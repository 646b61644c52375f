#!/usr/bin/env node
// The bundle of `npm run prepare`; in a checkout without one, the sources on Node 26.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const bundle = fileURLToPath(new URL("../dist/lastcall.js", import.meta.url));
const sources = fileURLToPath(new URL("../src/cli/main.ts", import.meta.url));
const ownNode = fileURLToPath(new URL("../node_modules/.bin/node", import.meta.url));

const major = Number(process.versions.node.split(".")[0]);
const program = existsSync(bundle) ? bundle : sources;
if (major >= 26) {
  await import(program);
} else {
  // Temporal and type stripping came with Node 26, which the package brings along.
  if (!existsSync(ownNode)) {
    console.error(`lastcall: Cannot run on Node ${process.versions.node}: Node 26 is wanted`);
    process.exit(1);
  }
  const { status, signal } = spawnSync(ownNode, [program, ...process.argv.slice(2)], {
    stdio: "inherit",
  });
  process.exitCode = signal === null ? (status ?? 1) : 130;
}
