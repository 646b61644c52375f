/**
 * `npm run bench [name…]`: runs the named benches, or all of them, each in its own process, adds
 * the machine and the command to each result file, and prints one table of all figures.
 * `npm run bench -- --help` lists them and runs none.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { availableParallelism, cpus, totalmem } from "node:os";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { type Figure, isMet, readResult, resultFile } from "./result-file.ts";

const folder = fileURLToPath(new URL(".", import.meta.url));

/** Everything from the first flag on is passed to the bench: `agent --minutes 1`. */
const args = process.argv.slice(2);
const firstFlag = args.findIndex((arg) => arg.startsWith("--"));
const words = firstFlag < 0 ? args : args.slice(0, firstFlag);
const flags = firstFlag < 0 ? [] : args.slice(firstFlag);

/** The files of this folder that are benches; each writes its result under its own name. */
const known = [
  "controller",
  "large-controller",
  "drain",
  "notice",
  "notice-bare",
  "latency",
  "queue",
  "marks",
  "agent",
  "plan",
  "budget",
  "audit",
  "board",
  "actions",
  "actions-burst",
  "traffic",
  "sim",
];

function benchesToRun(words: readonly string[]): readonly string[] {
  const there = new Set(readdirSync(folder).map((file) => basename(file, ".ts")));
  const benches = known.filter((name) => there.has(name));
  const unknown = words.filter((word) => !benches.includes(word));
  if (unknown.length > 0) {
    console.error(`Cannot run ${unknown.join(", ")}: no such bench, of ${benches.join(", ")}`);
    process.exit(2);
  }
  return words.length > 0 ? words : benches;
}

function runBench(name: string): boolean {
  console.log(`\n=== ${name}`);
  const args = [...process.execArgv, `${folder}${name}.ts`, ...flags];
  const { status } = spawnSync(process.execPath, args, { stdio: "inherit" });
  if (status !== 0 || !existsSync(resultFile(name))) return false;
  const stamped = { ...readResult(name), command: `npm run bench ${name}`, ...surroundings() };
  writeFileSync(resultFile(name), `${JSON.stringify(stamped, null, 2)}\n`);
  return true;
}

function surroundings() {
  return {
    machine: {
      cores: availableParallelism(),
      processor: cpus()[0]?.model ?? "unknown",
      memoryGiB: Math.round(totalmem() / 2 ** 30),
      node: process.version,
    },
    date: new Date().toISOString().slice(0, 10),
  };
}

function table(name: string): string[] {
  const { figures } = readResult(name);
  if (figures === undefined) return [`${name}: see bench/results/${name}.json`];
  return figures.map((figure) => {
    const met = isMet(figure);
    const verdict = met === undefined ? "" : met ? "met" : "MISSED";
    const goal = figure.goal === undefined ? "" : `${figure.goal}${goalUnit(figure)}`;
    const ratio = figure.ratio === undefined ? "" : `${figure.ratio} x`;
    return [
      `${name}: ${figure.name}`.padEnd(66),
      `${figure.value} ${figure.unit}`.padStart(16),
      (figure.rawLimit === undefined ? "" : `raw ${figure.rawLimit}`).padStart(12),
      ratio.padStart(9),
      goal === "" ? "" : `  goal ${goal} ${verdict}`,
    ].join(" ");
  });
}

function goalUnit({ ratio, unit }: Figure): string {
  return ratio === undefined ? ` ${unit}` : " x";
}

const usage = `npm run bench [NAME…] [-- FLAG…]

Runs the named benches, without a name all of them. Flags go to the benches.

${known.map((name) => `  ${name}`).join("\n")}

bench/README.md says what each measures.`;

if (args.some((arg) => arg === "--help" || arg === "-h")) {
  console.log(usage);
  process.exit(0);
}
const names = benchesToRun(words);
const failed = names.filter((name) => !runBench(name));
console.log("");
for (const name of names.filter((one) => !failed.includes(one))) {
  for (const line of table(name)) console.log(line.trimEnd());
}
if (failed.length > 0) {
  console.error(`${failed.join(", ")} failed`);
  process.exitCode = 1;
}
