/**
 * One node with 110 pods: the time until the last eviction is accepted, compared with the bare
 * PATCH and 110 evictions over 32 connections. Raw and controller rounds alternate, each on its own
 * node; the figure is that of the round with the median ratio.
 */
import { applyPolicy, fillFleet, rest, startBenchWorld, untilPodsRun } from "./bench-world.ts";
import { type BurstTimes, departureBurst, endNodes, median, rawBurst } from "./burst.ts";
import { startController } from "./controller-process.ts";
import { beside, type Figure, writeResult } from "./result-file.ts";

const rounds = 5;
const pods = 110;
const connections = 32;

interface Round {
  readonly raw: BurstTimes;
  readonly ours: BurstTimes;
}

function figureOf(name: string, measured: readonly Round[]): Figure {
  const { raw, ours } = median(measured, (one) => one.ours.evictedMs / one.raw.evictedMs);
  return beside({ name, ms: ours.evictedMs, rawMs: raw.evictedMs, goal: 1.5 });
}

async function main(): Promise<void> {
  const world = await startBenchWorld();
  try {
    const size = { nodes: rounds * 3, podsPerNode: pods };
    const fleet = [...(await fillFleet(world, { prefix: "drain", ...size }))];
    const next = () => fleet.splice(0, 1);
    // No machine can be released here; otherwise a requested drain would not start.
    await applyPolicy(world, { lifetime: {}, instance: { release: "None" } });
    const start = { ...world, token: world.controllerToken };
    const controller = await startController(start);
    await untilPodsRun(world);
    await rest(10);
    const noticed: Round[] = [];
    const manual: Round[] = [];
    let requests: unknown;
    for (let round = 0; round < rounds; round += 1) {
      const raw = await rawBurst(world, next(), connections);
      for (const [cause, list] of [
        ["SpotInterruption", noticed],
        ["Manual", manual],
      ] as const) {
        const leaving = next();
        const ours = await departureBurst(world, leaving, { cause });
        list.push({ raw: raw.times, ours: ours.times });
        requests = ours.requests;
        await endNodes(world, leaving);
        await rest(3);
      }
      console.log(JSON.stringify({ round, raw, noticed: noticed.at(-1), manual: manual.at(-1) }));
    }
    await controller.stop();
    writeResult({
      bench: "drain",
      setting: { pods, connections, rounds, access: controller.access },
      figures: [
        figureOf(`last of ${pods} evictions after a notice`, noticed),
        figureOf(`last of ${pods} evictions after a Departure by hand`, manual),
      ],
    });
    console.log(JSON.stringify(requests));
  } finally {
    await world.stop();
  }
}

await main();
