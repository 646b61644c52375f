/**
 * Where the controller's processor time goes in bursts of 300 notices: the total, compared with the
 * raw limit of the same round, and at the end the functions that used most of it. `npm run
 * bench:profile -- --rounds 3`.
 */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { rolldown } from "rolldown";
import { type BenchWorld, fillFleet, rest, startBenchWorld, untilPodsRun } from "./bench-world.ts";
import { type BurstTimes, departureBurst, endNodes, rawBurst } from "./burst.ts";
import { type ControllerProcess, startController } from "./controller-process.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const nodes = 300;
const podsPerNode = 5;
const connections = 64;
/** How many functions of the profile are listed. */
const namedFunctions = 40;

/** The format that `--cpu-prof` writes; times are in microseconds of the monotonic clock. */
interface Profile {
  readonly startTime: number;
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string };
  }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

interface Span {
  readonly fromUs: number;
  readonly toUs: number;
}

/**
 * The bundle as it ships, but with readable names. `bin/lastcall.js` starts it from there, because
 * on Node's own command line V8 would take the first flag for an argument of the second.
 */
async function plainBundle(dir: string): Promise<string> {
  const input = { lastcall: join(root, "src/cli/main.ts") };
  const treeshake = { moduleSideEffects: false };
  const build = await rolldown({ input, platform: "node", treeshake });
  await build.write({ dir: join(dir, "dist"), format: "esm", entryFileNames: "[name].js" });
  await build.close();
  cpSync(join(root, "bin"), join(dir, "bin"), { recursive: true });
  return join(dir, "bin/lastcall.js");
}

async function profiledBurst(
  world: BenchWorld,
  controller: ControllerProcess,
  round: number,
): Promise<Span> {
  const size = { prefix: `profile-${round}`, nodes: 2 * nodes, podsPerNode };
  const fleet = [...(await fillFleet(world, size))];
  await untilPodsRun(world);
  await rest(20);
  const bare = fleet.splice(0, nodes);
  const raw = await rawBurst(world, bare, connections);
  await endNodes(world, bare);
  const idleMiB = controller.memory().nowMiB;
  const [fromUs, before] = [monotonicUs(), controller.cpuSeconds()];
  const ours = await departureBurst(world, fleet, { cause: "SpotInterruption" });
  const toUs = monotonicUs();
  const cpuSeconds = rounded(controller.cpuSeconds() - before);
  const ratio = (of: keyof BurstTimes) => rounded(ours.times[of] / raw.times[of]);
  const ratios = { cordoned: ratio("cordonedMs"), evicted: ratio("evictedMs") };
  const memory = { idleMiB, ...controller.memory() };
  console.log(JSON.stringify({ round, cpuSeconds, ...ratios, memory, raw: raw.times, ours }));
  await endNodes(world, fleet);
  return { fromUs, toUs };
}

/** Milliseconds within the spans, by the function on top of the stack; the largest first. */
function selfTimes(profile: Profile, spans: readonly Span[]): readonly [string, number][] {
  const names = new Map(
    profile.nodes.map(({ id, callFrame: { functionName, url } }) => {
      const file = url.split("/").at(-1) ?? "";
      return [id, `${functionName || "(anonymous)"} ${file}`.trim()];
    }),
  );
  const times = new Map<string, number>();
  let atUs = profile.startTime;
  for (const [at, sample] of profile.samples.entries()) {
    const tookUs = profile.timeDeltas[at] ?? 0;
    atUs += tookUs;
    if (!spans.some(({ fromUs, toUs }) => atUs >= fromUs && atUs <= toUs)) continue;
    const name = names.get(sample) ?? "";
    times.set(name, (times.get(name) ?? 0) + tookUs / 1000);
  }
  return [...times].sort((a, b) => b[1] - a[1]);
}

function monotonicUs(): number {
  return Number(process.hrtime.bigint() / 1000n);
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100;
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { rounds: { type: "string", default: "3" } } });
  // Inside the checkout, so that the bundle finds the packages that it loads lazily.
  const scratch = mkdtempSync(join(root, "node_modules/.burst-profile-"));
  const profiles = join(scratch, "profiles");
  mkdirSync(profiles);
  const world = await startBenchWorld();
  try {
    const program = await plainBundle(join(scratch, "bundle"));
    const nodeArgs = ["--cpu-prof", "--cpu-prof-dir", profiles];
    const token = world.controllerToken;
    const controller = await startController({ ...world, token, program, nodeArgs });
    const spans: Span[] = [];
    for (let round = 0; round < Number(values.rounds); round += 1) {
      spans.push(await profiledBurst(world, controller, round));
    }
    await controller.stop();
    const [file = ""] = readdirSync(profiles);
    const profile = JSON.parse(readFileSync(join(profiles, file), "utf8")) as Profile;
    for (const [name, ms] of selfTimes(profile, spans).slice(0, namedFunctions)) {
      console.log(`${String(Math.round(ms)).padStart(8)} ms  ${name}`);
    }
  } finally {
    await world.stop();
    rmSync(scratch, { recursive: true, force: true });
  }
}

await main();
