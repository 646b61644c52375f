/**
 * Bursts of notices: how long until every node is cordoned and until the last eviction is accepted,
 * beside nothing but PATCH and eviction requests for as many nodes in the same round. Made as
 * Departures, counted from the first one's sending, and by agents, counted from the instant at which
 * their metadata says it.
 */
import { agentBurst } from "./agent-burst.ts";
import {
  type BenchNode,
  type BenchWorld,
  fillFleet,
  rest,
  startBenchWorld,
  untilPodsRun,
} from "./bench-world.ts";
import {
  type Burst,
  type BurstTimes,
  departureBurst,
  endNodes,
  median,
  rawBurst,
} from "./burst.ts";
import { startController } from "./controller-process.ts";
import { beside, type Figure, writeResult } from "./result-file.ts";

const podsPerNode = 5;
const bursts = [
  { nodes: 1, connections: 32, rounds: 5 },
  { nodes: 50, connections: 32, rounds: 3 },
  { nodes: 300, connections: 64, rounds: 1 },
].filter(({ nodes }) => process.argv.length < 3 || process.argv.includes(String(nodes)));

const ways = {
  "by Departures": (world: BenchWorld, fleet: readonly BenchNode[]) =>
    departureBurst(world, fleet, "SpotInterruption"),
  "by agents": agentBurst,
} as const;
type Way = keyof typeof ways;
const wayNames = Object.keys(ways) as readonly Way[];

interface Round {
  readonly raw: Burst;
  readonly ours: Readonly<Record<Way, Burst>>;
}

/** One notice alone is compared too, but the goals are for bursts: its Departure is written first. */
function figuresOf(nodes: number, rounds: readonly Round[]): Figure[] {
  const of = (way: Way, field: keyof BurstTimes, name: string, goal: number): Figure => {
    const timesOf = ({ raw, ours }: Round) => ({
      ms: ours[way].times[field],
      rawMs: raw.times[field],
    });
    const times = timesOf(median(rounds, (one) => timesOf(one).ms / timesOf(one).rawMs));
    const title = `${nodes} notice${nodes === 1 ? "" : "s"} ${way}, ${name}`;
    return beside({ name: title, ...times, ...(nodes === 1 ? {} : { goal }) });
  };
  return wayNames.flatMap((way) => [
    of(way, "cordonedMs", "all cordoned", 3),
    of(way, "evictedMs", "last eviction", 1.5),
  ]);
}

async function main(): Promise<void> {
  const world = await startBenchWorld();
  try {
    const total = bursts.reduce(
      (sum, { nodes, rounds }) => sum + (1 + wayNames.length) * nodes * rounds,
      0,
    );
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
        const fate = take(nodes);
        const raw = await rawBurst(world, fate, connections);
        await endNodes(world, fate);
        await rest(nodes > 1 ? 10 : 2);
        const ours = {} as Record<Way, Burst>;
        for (const way of wayNames) {
          const own = take(nodes);
          ours[way] = await ways[way](world, own);
          await endNodes(world, own);
          await rest(nodes > 1 ? 10 : 2);
        }
        measured.push({ raw, ours });
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
