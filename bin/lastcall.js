#!/usr/bin/env node
// The bundle of `npm run prepare`; in a checkout without one, the sources on Node 26.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { setFlagsFromString } from "node:v8";

const bundle = fileURLToPath(new URL("../dist/lastcall.js", import.meta.url));
const sources = fileURLToPath(new URL("../src/cli/main.ts", import.meta.url));
const ownNode = fileURLToPath(new URL("../node_modules/.bin/node", import.meta.url));

const major = Number(process.versions.node.split(".")[0]);
const program = existsSync(bundle) ? bundle : sources;
// The controller idles for hours: the first flag costs it no time that counts and is a quarter of its memory
// (bench/idle-controller.ts); NODE_OPTIONS does not take it. The second lets a burst's garbage die young,
// which costs nothing at rest; it counts only from the start of a process, so that deploy/ sets it there.
const flags =
  process.argv[2] === "run" ? ["--optimize-for-size", "--max-semi-space-size=16"] : [];
if (major >= 26) {
  for (const flag of flags) setFlagsFromString(flag);
  await import(program);
} else if (existsSync(ownNode)) {
  runOnOwnNode();
} else {
  console.error(`lastcall: Cannot run on Node ${process.versions.node}: Node 26 is wanted`);
  process.exitCode = 1;
}

/** Temporal and type stripping came with Node 26, which a checkout brings along. */
function runOnOwnNode() {
  const child = spawn(ownNode, [...flags, program, ...process.argv.slice(2)], { stdio: "inherit" });
  // Whoever stops this process means the one that does the work.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    process.on(signal, () => child.kill(signal));
  }
  child.on("exit", (code, signal) => {
    process.exitCode = signal === null ? (code ?? 1) : 130;
  });
}
