#!/usr/bin/env node
// Runs the bundle of `npm run prepare` on any maintained Node version. A checkout without a bundle
// runs the sources, on the Node 26 that `npm ci` installs.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { setFlagsFromString } from "node:v8";

const oldestMajor = 22;
const bundle = new URL("../dist/lastcall.js", import.meta.url);
const sources = new URL("../src/cli/main.ts", import.meta.url);
const ownNode = fileURLToPath(new URL("../node_modules/.bin/node", import.meta.url));

const major = Number(process.versions.node.split(".")[0]);
const isBundled = existsSync(bundle);
// Controller and board idle for hours. The first flag cuts their memory by a quarter
// (bench/idle-controller.ts) and costs only time that does not matter then; NODE_OPTIONS does not
// accept it. In a burst the controller runs without it (src/runtime/heap-pace.ts). The second flag
// lets a burst's garbage die young, and costs nothing at rest. It works only from the start of a
// process, so deploy/ sets it there.
const staysUp = ["run", "board"].includes(process.argv[2]);
const flags = staysUp ? ["--optimize-for-size", "--max-semi-space-size=8"] : [];
if (major >= (isBundled ? oldestMajor : 26)) {
  for (const flag of flags) setFlagsFromString(flag);
  if (!("Temporal" in globalThis)) await import("../dist/temporal.js");
  await import(isBundled ? bundle : sources);
} else if (existsSync(ownNode)) {
  runOnOwnNode();
} else {
  const found = `this is Node ${process.versions.node}, expected ${oldestMajor} or later`;
  console.error(`lastcall: Cannot start: ${found}; install a maintained Node from nodejs.org`);
  process.exitCode = 1;
}

function runOnOwnNode() {
  const program = fileURLToPath(isBundled ? bundle : sources);
  const child = spawn(ownNode, [...flags, program, ...process.argv.slice(2)], { stdio: "inherit" });
  // A signal sent to this process is meant for the one that does the work. A terminal sends Ctrl-C
  // to both, and a second one would end the work at once.
  const onTerminal = [process.stdin, process.stdout, process.stderr].some(({ isTTY }) => isTTY);
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    process.on(signal, () => (signal === "SIGINT" && onTerminal) || child.kill(signal));
  }
  child.on("exit", (code, signal) => {
    process.exitCode = signal === null ? (code ?? 1) : 130;
  });
}
