import { spawn } from "node:child_process";
import { appendFileSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { openCheckers } from "./corpus.ts";
import { drawWorld } from "./draw-world.ts";
import { faultTable } from "./fault-table.ts";
import { runWorld } from "./run-world.ts";

export interface SoakOptions {
  readonly from: number;
  readonly seeds: number;
  readonly jobs: number;
  /** The log, one line for each seed; seeds that are in it are not run again. */
  readonly out: string | undefined;
  /** Draw only from these kinds of faults; default: all. */
  readonly kinds?: readonly string[] | undefined;
}

/** What is kept of one seed. */
interface SeedResult {
  readonly seed: number;
  /** CPU time: that of the wall says little on a shared machine. */
  readonly ms: number;
  readonly departures: number;
  readonly nodeHours: number;
  readonly violations: readonly { readonly checker: string; readonly what: string }[];
  readonly counts: Readonly<Record<string, number>>;
}

/** Runs many seeds; a run that was interrupted goes on where it was. Returns the exit code. */
export async function soak({ from, seeds, jobs, out, kinds }: SoakOptions): Promise<number> {
  const folder = join(import.meta.dirname, "../../out");
  mkdirSync(folder, { recursive: true });
  const path = out ?? join(folder, "sim-soak.jsonl");
  const known = new Set(readResults(path).map(({ seed }) => seed));
  const todo = Array.from({ length: seeds }, (_, index) => from + index).filter(
    (seed) => !known.has(seed),
  );
  if (jobs > 1) await inParts(todo, { jobs, path, kinds });
  else
    for (const seed of todo)
      appendFileSync(path, `${JSON.stringify(await runSeed(seed, kinds))}\n`);
  const results = readResults(path).filter(({ seed }) => seed >= from && seed < from + seeds);
  for (const line of reportOf(results)) console.log(line);
  const open = openCheckers();
  const isNew = results.some(({ violations }) => violations.some((one) => !open.has(one.checker)));
  return isNew ? 3 : 0;
}

async function runSeed(seed: number, kinds?: readonly string[]): Promise<SeedResult> {
  const before = process.cpuUsage();
  const run = await runWorld(drawWorld(seed, kinds));
  const { departures, nodeHours, violations, coverage } = run;
  const { user, system } = process.cpuUsage(before);
  const ms = Math.round((user + system) / 1000);
  return {
    ...{ seed, ms, departures, nodeHours, violations },
    counts: Object.fromEntries(coverage.counts),
  };
}

/** One process for each core: a run uses one, and a hanging run hangs only its own. */
async function inParts(
  todo: readonly number[],
  { jobs, path, kinds }: { jobs: number; path: string; kinds: readonly string[] | undefined },
): Promise<void> {
  const main = join(import.meta.dirname, "main.ts");
  const [first = 0, last = -1] = [todo[0], todo.at(-1)];
  const size = Math.ceil((last - first + 1) / jobs);
  const parts = Array.from({ length: jobs }, (_, index) => first + index * size);
  await Promise.all(
    parts.map(async (from) => {
      const args = [main, "soak", "--from", String(from), "--seeds", String(size), "--out", path];
      if (kinds !== undefined) args.push("--kinds", kinds.join());
      const child = spawn(process.execPath, args, { stdio: ["ignore", "ignore", "inherit"] });
      await new Promise((resolve) => child.on("exit", resolve));
    }),
  );
}

export function readResults(path: string): readonly SeedResult[] {
  if (!existsSync(path)) return [];
  const lines = readFileSync(path, "utf8").split("\n");
  return lines.filter((line) => line.endsWith("}")).map((line) => JSON.parse(line) as SeedResult);
}

const columns = [
  ...["none", "Scheduled", "Held", "Preparing", "Draining", "Releasing", "RollingBack"],
  ...["Planned", "Preempted", "Forced", "Expired", "RolledBack", "Cancelled", "Failed"],
];

/** What was covered, with its empty cells, and what was found. */
export function reportOf(results: readonly SeedResult[]): readonly string[] {
  const sum = (of: (one: SeedResult) => number) => results.reduce((all, one) => all + of(one), 0);
  const counts = new Map<string, number>();
  for (const one of results) {
    for (const [key, count] of Object.entries(one.counts)) {
      counts.set(key, (counts.get(key) ?? 0) + count);
    }
  }
  const found = new Map<string, number[]>();
  for (const { seed, violations } of results) {
    for (const checker of new Set(violations.map((one) => one.checker))) {
      found.set(checker, [...(found.get(checker) ?? []), seed]);
    }
  }
  const width = Math.max(...Object.keys(faultTable).map((name) => name.length));
  const cell = (text: string) => text.slice(0, 9).padStart(10);
  return [
    "Faults, by the phases in which they began, and by the outcomes of departures that they met:",
    [" ".repeat(width), ...columns.map(cell)].join(""),
    ...Object.keys(faultTable).map((name) =>
      [
        name.padEnd(width),
        ...columns.map((column) => cell(String(counts.get(`${name}/${column}`) ?? "."))),
      ].join(""),
    ),
    "",
    `${results.length} seeds, ${sum((one) => one.departures)} departures, ${Math.round(sum((one) => one.nodeHours))} node-hours, ${Math.round(sum((one) => one.ms) / 1000)} s of CPU`,
    ...[...found].map(
      ([checker, seeds]) =>
        `${checker}: ${seeds.length} seeds, such as ${seeds.slice(0, 8).join(", ")}`,
    ),
    ...(found.size === 0 ? ["no rule was broken"] : []),
  ];
}
