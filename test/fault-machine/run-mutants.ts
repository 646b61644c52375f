/**
 * Searches, for each mutant, for a world that breaks a rule only with it. Results are kept in
 * `out/sim-mutants.jsonl`, and `--write` makes the table of docs/testing.md of them.
 */
import { spawn } from "node:child_process";
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import "../support/temporal-setup.ts";
import { checkers } from "./checker-list.ts";
import { brokenIn, type Hunted, huntedWorlds } from "./hunted-world.ts";
import type { Mutant } from "./mutants/mutant.ts";
import { mutants } from "./mutants.ts";

const { values } = parseArgs({
  options: {
    seeds: { type: "string", default: "20" },
    jobs: { type: "string", default: "1" },
    only: { type: "string", default: "" },
    write: { type: "boolean", default: false },
  },
});
const seeds = Number(values.seeds);

interface Result {
  readonly seeds: number;
  readonly caught?: Caught | undefined;
}

interface Caught {
  readonly at: string;
  readonly by: readonly string[];
}

const cleanVerdicts = new Map<string, Promise<readonly string[]>>();

/** The rules that a world breaks without any mutant. */
function brokenAnyway(at: string, kinds: readonly string[]): Promise<readonly string[]> {
  const key = at.startsWith("seed") ? `${at} ${kinds.join()}` : at;
  const known = cleanVerdicts.get(key);
  if (known !== undefined) return known;
  const found = [...huntedWorlds(seeds, kinds)].find((one) => one.at === at);
  const verdict = found === undefined ? Promise.resolve([]) : inTurn(() => brokenIn(found.world));
  cleanVerdicts.set(key, verdict);
  return verdict;
}

let last: Promise<unknown> = Promise.resolve();

/** Two runs in one process would disturb each other's time. */
function inTurn<T>(work: () => Promise<T>): Promise<T> {
  const done = last.then(work);
  last = done.catch(() => {});
  return done;
}

async function hunt({ name, kinds }: Mutant): Promise<Caught | undefined> {
  const script = join(import.meta.dirname, "hunt.ts");
  const child = spawn(process.execPath, [script, name, String(seeds)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      const { at, broken } = JSON.parse(line) as Hunted;
      if (broken.length === 0) continue;
      const anyway = await brokenAnyway(at, kinds);
      const by = broken.filter((checker) => !anyway.includes(checker));
      if (by.length > 0) return { at, by };
    }
    return undefined;
  } finally {
    child.kill();
  }
}

const log = join(import.meta.dirname, "../../out/sim-mutants.jsonl");
mkdirSync(dirname(log), { recursive: true });
const only = new RegExp(values.only);
const chosen = mutants.filter(({ name }) => only.test(name));
const todo = (values.write ? [] : chosen).values();
await Promise.all(
  Array.from({ length: Number(values.jobs) }, async () => {
    for (const mutant of todo) {
      const caught = await hunt(mutant);
      const { name, kinds } = mutant;
      appendFileSync(log, `${JSON.stringify({ name, kinds, seeds, caught })}\n`);
      console.log(rowOf(mutant, { seeds, caught }));
    }
  }),
);

/** The newest result of each mutant, of this run or of an earlier one. */
const known = new Map<string, Result>();
for (const line of readFileSync(log, "utf8")
  .split("\n")
  .filter((text) => text.endsWith("}"))) {
  const { name, ...result } = JSON.parse(line) as Result & { readonly name: string };
  known.set(name, result);
}
const caught = chosen.flatMap(({ name }) => known.get(name)?.caught ?? []);
const shown = new Set(caught.flatMap(({ by }) => by));
const idle = checkers.filter(({ name }) => !shown.has(name)).map(({ name }) => `\`${name}\``);
const missed = idle.length === 0 ? "" : ` No bug of the table shows ${idle.join(", ")}.`;
const summary = `${caught.length} of ${chosen.length} bugs are caught.${missed}`;
console.log(summary);
if (values.write) {
  writeTable([
    "| bug | faults in its worlds | caught by | in |",
    "|---|---|---|---|",
    ...chosen.map((mutant) => rowOf(mutant, known.get(mutant.name))),
    "",
    ...wrapped(summary),
  ]);
}
process.exit(caught.length === chosen.length ? 0 : 3);

function rowOf({ name, kinds }: Mutant, result: Result | undefined): string {
  const by = result?.caught?.by.map((checker) => `\`${checker}\``).join(", ") ?? "nothing";
  const at = result?.caught?.at ?? (result ? `none of ${result.seeds} seeds` : "not hunted");
  return `| ${name} | ${kinds.join(", ")} | ${by} | ${at} |`;
}

function wrapped(text: string): readonly string[] {
  return text.match(/.{1,118}(?: |$)/g)?.map((line) => line.trim()) ?? [];
}

/** Between the two marks of docs/testing.md. */
function writeTable(lines: readonly string[]): void {
  const path = join(import.meta.dirname, "../../docs/testing.md");
  const text = readFileSync(path, "utf8");
  const [begin, end] = ["<!-- mutants -->\n", "<!-- /mutants -->"];
  const [before = "", rest = ""] = text.split(begin);
  const after = rest.slice(rest.indexOf(end));
  writeFileSync(path, `${before}${begin}\n${lines.join("\n")}\n\n${after}`);
}
