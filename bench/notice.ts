/**
 * Bursts of notices, made as Departures: how long until every node is cordoned and until the last
 * eviction is accepted, counted from the first Departure's sending, beside nothing but PATCH and
 * eviction requests for as many nodes in the same round.
 */
import { fillFleet, rest, startBenchWorld, untilPodsRun } from "./bench-world.ts";
import { type BurstTimes, departureBurst, endNodes, median, rawBurst } from "./burst.ts";
import { startController } from "./controller-process.ts";
import { beside, type Figure, writeResult } from "./result-file.ts";

const podsPerNode = 5;
const bursts = [
  { nodes: 1, connections: 32, rounds: 5 },
  { nodes: 50, connections: 32, rounds: 3 },
  { nodes: 300, connections: 64, rounds: 1 },
].filter(({ nodes }) => process.argv.length < 3 || process.argv.includes(String(nodes)));

interface Round {
  readonly raw: BurstTimes;
  readonly ours: BurstTimes;
}

function figuresOf(nodes: number, rounds: readonly Round[]): Figure[] {
  const of = (field: keyof BurstTimes, name: string, goal: number): Figure => {
    const { raw, ours } = median(rounds, (one) => one.ours[field] / one.raw[field]);
    return beside({ name: `${nodes} notices, ${name}`, ms: ours[field], rawMs: raw[field], goal });
  };
  return [of("cordonedMs", "all cordoned", 3), of("evictedMs", "last eviction", 1.5)];
}

async function main(): Promise<void> {
  const world = await startBenchWorld();
  try {
    const total = bursts.reduce((sum, { nodes, rounds }) => sum + 2 * nodes * rounds, 0);
    const fleet = [...(await fillFleet(world, { prefix: "notice", nodes: total, podsPerNode }))];
    const take = (count: number) => fleet.splice(0, count);
    const start = { ...world, token: world.controllerToken };
    const controller = await startController(start);
    await untilPodsRun(world);
    await rest(15);
    const figures: Figure[] = [];
    for (const { nodes, connections, rounds } of bursts) {
      const measured: Round[] = [];
      for (let round = 0; round < rounds; round += 1) {
        const fate = [take(nodes), take(nodes)] as const;
        const raw = await rawBurst(world, fate[0], connections);
        await endNodes(world, fate[0]);
        await rest(nodes > 1 ? 10 : 2);
        const ours = await departureBurst(world, fate[1], "SpotInterruption");
        await endNodes(world, fate[1]);
        await rest(nodes > 1 ? 10 : 2);
        measured.push({ raw: raw.times, ours: ours.times });
        console.log(JSON.stringify({ nodes, round, raw: raw.times, ours }));
      }
      figures.push(...figuresOf(nodes, measured));
    }
    const { nowMiB, peakMiB } = controller.memory();
    await controller.stop();
    const figure = { name: "peak resident over all bursts", value: peakMiB, unit: "MiB" } as const;
    writeResult({
      bench: "notice",
      setting: { fleet: total, podsPerNode, access: controller.access, residentAfterMiB: nowMiB },
      figures: [...figures, figure],
    });
  } finally {
    await world.stop();
  }
}

await main();
