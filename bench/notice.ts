/**
 * Bursts of notices: the time until every node is cordoned and until the last eviction is accepted,
 * compared with nothing but PATCH and eviction requests for as many nodes in the same round. The
 * notices are created as Departures, counted from when the first is sent, and by agents, counted
 * from the instant at which their metadata announces it. `npm run bench:notice -- --rounds 3`.
 */
import { parseArgs } from "node:util";
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
import { leaveCoreToControlPlane } from "./own-core.ts";
import { beside, type Figure, writeResult } from "./result-file.ts";

const podsPerNode = 5;
/** After this time the controller has given back the memory that a burst took. */
const restSeconds = 120;

const { values, positionals } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    // The control plane on a core of its own, as in a cluster, instead of all on both.
    "own-core": { type: "boolean", default: false },
  },
  allowPositionals: true,
});
/** An odd number, because the median round is reported. */
const rounds = Number(values.rounds);

/** The largest first; all sizes, or those named on the command line. */
const bursts = [
  { nodes: 300, connections: 64 },
  { nodes: 50, connections: 32 },
  { nodes: 1, connections: 32 },
].filter(({ nodes }) => positionals.length === 0 || positionals.includes(String(nodes)));
type BurstSize = (typeof bursts)[number];

const ways = {
  raw: (world: BenchWorld, fleet: readonly BenchNode[], { connections }: BurstSize) =>
    rawBurst(world, fleet, connections),
  "by Departures": (world: BenchWorld, fleet: readonly BenchNode[]) =>
    departureBurst(world, fleet, { cause: "SpotInterruption" }),
  "by agents": agentBurst,
} as const;
type Way = keyof typeof ways;
const wayNames = Object.keys(ways) as readonly Way[];
type Round = Readonly<Record<Way, Burst>>;

/**
 * Nodes are created for one round and deleted with it. The ways take turns to go first: deleted
 * nodes leave the control plane less to do for the ways that follow.
 */
async function measureRound(world: BenchWorld, size: BurstSize, round: number): Promise<Round> {
  const { nodes } = size;
  const prefix = `notice-${nodes}-${round}`;
  const count = wayNames.length * nodes;
  const fleet = [...(await fillFleet(world, { prefix, nodes: count, podsPerNode }))];
  await untilPodsRun(world);
  await rest(30);
  const told = {} as Record<Way, Burst>;
  const first = round % wayNames.length;
  for (const way of [...wayNames.slice(first), ...wayNames.slice(0, first)]) {
    const own = fleet.splice(0, nodes);
    told[way] = await ways[way](world, own, size);
    await endNodes(world, own);
  }
  console.log(JSON.stringify({ nodes, round, ...told, raw: told.raw.times }));
  return told;
}

/** A single notice is compared as well, but has no goal: its Departure is written first. */
function figuresOf(nodes: number, rounds: readonly Round[]): Figure[] {
  const of = (way: Way, field: keyof BurstTimes, name: string, goal: number): Figure => {
    const timesOf = (round: Round) => ({
      ms: round[way].times[field],
      rawMs: round.raw.times[field],
    });
    const times = timesOf(median(rounds, (one) => timesOf(one).ms / timesOf(one).rawMs));
    const title = `${nodes} notice${nodes === 1 ? "" : "s"} ${way}, ${name}`;
    return beside({ name: title, ...times, ...(nodes === 1 ? {} : { goal }) });
  };
  return wayNames
    .filter((way) => way !== "raw")
    .flatMap((way) => [
      of(way, "cordonedMs", "all cordoned", nodes > 50 ? 2.5 : 2),
      of(way, "evictedMs", "last eviction", nodes > 50 ? 1.2 : 1.1),
    ]);
}

async function main(): Promise<void> {
  const world = await startBenchWorld();
  if (values["own-core"]) leaveCoreToControlPlane();
  try {
    const controller = await startController({ ...world, token: world.controllerToken });
    const figures: Figure[] = [];
    for (const size of bursts) {
      const measured: Round[] = [];
      for (let round = 0; round < rounds; round += 1) {
        measured.push(await measureRound(world, size, round));
      }
      figures.unshift(...figuresOf(size.nodes, measured));
    }
    const { nowMiB, peakMiB } = controller.memory();
    await rest(restSeconds);
    const restMiB = controller.memory().nowMiB;
    await controller.stop();
    const memory: readonly Figure[] = [
      { name: "peak resident over all bursts", value: peakMiB, unit: "MiB", goal: 200 },
      {
        name: `resident ${restSeconds} s after the last burst`,
        value: restMiB,
        unit: "MiB",
        goal: 100,
      },
    ];
    const fleet = wayNames.length * Math.max(...bursts.map(({ nodes }) => nodes));
    writeResult({
      bench: "notice",
      setting: { fleet, podsPerNode, rounds, access: controller.access, residentAfterMiB: nowMiB },
      figures: [...figures, ...memory],
    });
  } finally {
    await world.stop();
  }
}

await main();
