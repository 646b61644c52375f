/**
 * The fault machine's commands: `replay`, `shrink` and `soak`; docs/testing.md describes them. A
 * world is named by its seed or by a file of test/regression.
 */
import { parseArgs } from "node:util";
import "../support/temporal-setup.ts";
import { readCorpus, writeCase } from "./corpus.ts";
import { drawWorld } from "./draw-world.ts";
import { runWorld } from "./run-world.ts";
import { shrinkWorld } from "./shrink.ts";
import { soak } from "./soak.ts";
import { describeViolation, describeWorld, storyOf } from "./story.ts";
import type { World } from "./world.ts";

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    trace: { type: "boolean", default: false },
    checker: { type: "string" },
    write: { type: "string" },
    finding: { type: "string" },
    seeds: { type: "string", default: "100" },
    from: { type: "string", default: "1" },
    jobs: { type: "string", default: "1" },
    out: { type: "string" },
    kinds: { type: "string" },
    minutes: { type: "string", default: "5" },
    help: { type: "boolean", short: "h", default: false },
  },
});

const usage = `usage: node test/fault-machine/main.ts COMMAND
  replay SEED|FILE [--trace]                        tell the story of a world, and the rules it breaks
  shrink SEED|FILE [--checker NAME] [--minutes N] [--write NAME] [--finding TEXT]
                                                    make it smaller while it breaks the same rule
  soak [--from SEED] [--seeds N] [--jobs N] [--kinds KIND,…] [--out FILE]
                                                    run many worlds; FILE resumes where it stopped
FILE is the name of a file in test/regression.`;

const kinds = values.kinds?.split(",");
const [command = "", name = ""] = positionals;

function worldNamed(text: string): World {
  if (/^\d+$/.test(text)) return drawWorld(Number(text), kinds);
  const found = readCorpus().get(text.replace(/^.*\//, "").replace(/\.json$/, ""));
  if (found === undefined)
    throw new Error(`${text} is neither a seed nor a file of test/regression`);
  return found.world;
}

async function replay(world: World): Promise<number> {
  const lines: string[] = [];
  const run = await runWorld(world, { withDigest: true, onLine: (line) => lines.push(line) });
  for (const line of [...describeWorld(world), ""]) console.log(line);
  for (const line of values.trace ? lines : storyOf(lines)) console.log(line);
  console.log(`\n${run.events} events, ${run.departures} departures, digest ${run.digest}`);
  for (const one of run.violations) console.log(describeViolation(one));
  return run.violations.length === 0 ? 0 : 3;
}

async function shrink(world: World): Promise<number> {
  const first = await runWorld(world);
  const checker = values.checker ?? first.violations[0]?.checker;
  const isBroken = async (one: World): Promise<boolean> =>
    (await runWorld(one, checker === undefined ? {} : { stopAt: checker })).violations.some(
      (violation) => violation.checker === checker,
    );
  if (checker === undefined || !(await isBroken(world))) {
    console.log(`nothing to shrink: the world does not break ${checker ?? "any rule"}`);
    return 1;
  }
  const endMs = performance.now() + Number(values.minutes) * 60_000;
  const small = await shrinkWorld(world, {
    isBroken,
    isOver: () => performance.now() > endMs,
    onStep: ({ faults, nodes, workloads, hours }) =>
      console.error(
        `${faults.length} faults, ${nodes.length} nodes, ${workloads.length} workloads, ${hours} h`,
      ),
  });
  await replay(small);
  const { violations } = await runWorld(small);
  const finding = values.finding ?? violations.find((one) => one.checker === checker)?.what ?? "";
  if (values.write !== undefined) {
    console.log(writeCase(values.write, { finding, checker, state: "Open", world: small }));
  }
  return 0;
}

async function main(): Promise<number> {
  if (values.help) {
    console.log(usage);
    return 0;
  }
  if (command === "replay") return await replay(worldNamed(name));
  if (command === "shrink") return await shrink(worldNamed(name));
  if (command === "soak") {
    const { seeds, from, jobs, out } = values;
    return await soak({ seeds: Number(seeds), from: Number(from), jobs: Number(jobs), out, kinds });
  }
  console.error(usage);
  return 2;
}

const code = await main();
// A pipe is written in the background.
await new Promise((resolve) => process.stdout.write("", resolve));
// What a stopped model still waits for must not keep the process.
process.exit(code);
