/** Applies each mutant to a copy, and searches for a seed that breaks a rule only with it. */
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Mutant, mutants } from "./mutants.ts";
import { readResults } from "./soak.ts";

const root = join(import.meta.dirname, "../..");
const work = join(root, "out/mutants");
const { values } = parseArgs({
  options: { seeds: { type: "string", default: "20" }, only: { type: "string", default: "" } },
});
const seeds = Number(values.seeds);

/** Whose rules each seed breaks; a seed at a time, so that a mutant is left once it is caught. */
function brokenBy(
  folder: string,
  seed: number,
  kinds: readonly string[] | undefined,
): ReadonlySet<string> {
  const out = join(folder, `soak-${kinds?.join("-") ?? "all"}.jsonl`);
  const args = [join(folder, "test/fault-machine/main.ts"), "soak"];
  const options = ["--from", String(seed), "--seeds", "1", "--out", out];
  if (kinds !== undefined) options.push("--kinds", kinds.join());
  spawnSync(process.execPath, [...args, ...options], { stdio: ["ignore", "ignore", "inherit"] });
  const found = readResults(out).find((one) => one.seed === seed);
  return new Set(found?.violations.map(({ checker }) => checker));
}

function copyTo(folder: string): void {
  mkdirSync(folder, { recursive: true });
  for (const part of [
    "src",
    "test/fault-machine",
    "test/regression",
    "test/support",
    "package.json",
  ]) {
    cpSync(join(root, part), join(folder, part), { recursive: true });
  }
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
}

function applyTo(folder: string, { file, from, to }: Mutant): void {
  const path = join(folder, file);
  const text = readFileSync(path, "utf8");
  if (text.split(from).length !== 2) throw new Error(`${file} does not contain "${from}" once`);
  writeFileSync(
    path,
    text.replace(from, () => to),
  );
}

rmSync(work, { recursive: true, force: true });
const clean = join(work, "clean");
copyTo(clean);
let caughtCount = 0;
const chosen = mutants.filter(({ name }) => name.includes(values.only));
for (const [index, mutant] of chosen.entries()) {
  const folder = join(work, String(index));
  copyTo(folder);
  applyTo(folder, mutant);
  let caught = `not caught by ${seeds} seeds`;
  for (let seed = 1; seed <= seeds; seed += 1) {
    const mutated = [...brokenBy(folder, seed, mutant.kinds)];
    if (mutated.length === 0) continue;
    const known = brokenBy(clean, seed, mutant.kinds);
    const broken = mutated.filter((checker) => !known.has(checker));
    if (broken.length === 0) continue;
    caught = `${broken.join(", ")} | seed ${seed}`;
    caughtCount += 1;
    break;
  }
  console.log(`| ${mutant.name} | ${caught} |`);
}
console.log(`${caughtCount} of ${chosen.length} caught`);
