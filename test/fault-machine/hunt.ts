/**
 * Runs worlds with one mutant in the place of the code, one after another, and writes a line of
 * JSON for each: which rules it breaks. `run-mutants.ts` starts it, and ends it once it knows
 * enough.
 */
import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Hunted } from "./hunted-world.ts";
import type { Mutant } from "./mutants/mutant.ts";
import { mutants } from "./mutants.ts";

const root = join(import.meta.dirname, "../..");
const [name = "", seeds = "0"] = process.argv.slice(2);
const mutant = mutants.find((one) => one.name === name);
if (mutant === undefined) throw new Error(`no mutant is named ${name}`);

function sourceOf(path: string, { edits }: Mutant): string | undefined {
  const own = edits.filter(({ file }) => join(root, file) === path);
  if (own.length === 0) return undefined;
  return own.reduce(
    (text, { file, from, to }) => {
      if (text.split(from).length !== 2) throw new Error(`${file} does not contain "${from}" once`);
      return text.replace(from, () => to);
    },
    readFileSync(path, "utf8"),
  );
}

registerHooks({
  load: (url, context, next) => {
    const found = url.startsWith("file:") ? sourceOf(fileURLToPath(url), mutant) : undefined;
    const loaded = next(url, context);
    return found === undefined ? loaded : { ...loaded, source: found };
  },
});

await import("../support/temporal-setup.ts");
const { huntedWorlds, brokenIn } = await import("./hunted-world.ts");
for (const { at, world } of huntedWorlds(Number(seeds), mutant.kinds)) {
  const hunted: Hunted = { at, broken: await brokenIn(world) };
  process.stdout.write(`${JSON.stringify(hunted)}\n`);
}
process.exit(0);
