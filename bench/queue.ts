/**
 * Bursts of notices through a queue (moto's SQS, on the same machine): the time until every node is
 * cordoned and until the last eviction is accepted, counted from when the first message is sent.
 * The limit of the same round reads the same queue with as many readers, and sends nothing but
 * PATCH and eviction requests, cordons first. For comparison, two more figures: the same requests
 * without a queue, and the queue without the requests, since moto is written in Python and shares
 * the machine.
 */
import { Moto } from "../test/support/moto.ts";
import { spotWarning } from "../test/support/queue-body.ts";
import {
  applyPolicy,
  type BenchNode,
  type BenchWorld,
  controllerUser,
  fillFleet,
  rest,
  startBenchWorld,
  untilPodsRun,
} from "./bench-world.ts";
import {
  type Burst,
  type BurstTimes,
  burstSince,
  endNodes,
  median,
  rawBurst,
  rawBurstByWord,
} from "./burst.ts";
import { startController } from "./controller-process.ts";
import { beside, type Figure, writeResult } from "./result-file.ts";

const podsPerNode = 5;
/** The controller's default. */
const receivers = 2;
/** The largest first: the controller's memory is measured on its fleet. */
const bursts: readonly BurstSize[] = [
  { nodes: 300, connections: 64, rounds: 3 },
  { nodes: 50, connections: 32, rounds: 3 },
  { nodes: 1, connections: 32, rounds: 5 },
].filter(({ nodes }) => process.argv.length < 3 || process.argv.includes(String(nodes)));
/** Without a queue, through a queue, and by the controller. */
const burstsOfRound = 3;

interface BurstSize {
  readonly nodes: number;
  readonly connections: number;
  readonly rounds: number;
}

interface Round {
  readonly raw: Burst;
  /** The same requests for nodes that are known in advance. */
  readonly bare: Burst;
  readonly ours: Burst;
  /** As many messages sent, received and deleted without acting on them. */
  readonly queueMs: number;
}

interface Machine extends BenchNode {
  readonly instanceId: string;
}

function instanceIdOf(place: number): string {
  return `i-${String(place).padStart(17, "0")}`;
}

function warningsOf(fleet: readonly Machine[], startAt: number): readonly object[] {
  const time = new Date(startAt).toISOString();
  return fleet.map(({ instanceId }) => spotWarning({ instanceId, time, id: instanceId }));
}

async function queueBurst(
  world: BenchWorld,
  moto: Moto,
  fleet: readonly Machine[],
): Promise<Burst> {
  const startAt = Date.now();
  await moto.send(...warningsOf(fleet, startAt));
  return burstSince({ world, fleet, startAt, user: controllerUser });
}

/** Uses a queue that the controller does not read. */
async function rawQueueBurst(
  world: BenchWorld,
  moto: Moto,
  about: { readonly fleet: readonly Machine[]; readonly connections: number },
): Promise<Burst> {
  const { fleet, connections } = about;
  const byId = new Map(fleet.map((one) => [one.instanceId, one]));
  const startAt = Date.now();
  await moto.send(...warningsOf(fleet, startAt));
  return rawBurstByWord(world, fleet, {
    ...{ connections, startAt },
    read: (onNotice) =>
      moto.read(fleet.length, receivers, (text) => {
        const node = byId.get(JSON.parse(text).detail["instance-id"]);
        if (node !== undefined) onNotice(node);
      }),
  });
}

/** The time that the queue itself takes. */
async function queueAlone(moto: Moto, fleet: readonly Machine[]): Promise<number> {
  const startAt = Date.now();
  await moto.send(...warningsOf(fleet, startAt));
  await moto.read(fleet.length, receivers);
  return Date.now() - startAt;
}

function figuresOf(nodes: number, rounds: readonly Round[]): Figure[] {
  const title = `${nodes} notice${nodes === 1 ? "" : "s"} by a queue`;
  const of = (
    field: keyof BurstTimes,
    name: string,
    limit: { readonly by: "raw" | "bare"; readonly goal?: number },
  ): Figure => {
    const timesOf = (round: Round) => ({
      ms: round.ours.times[field],
      rawMs: round[limit.by].times[field],
    });
    const times = timesOf(median(rounds, (one) => timesOf(one).ms / timesOf(one).rawMs));
    return beside({ name: `${title}, ${name}`, ...times, goal: limit.goal });
  };
  const isBurst = nodes > 1;
  return [
    of("cordonedMs", "all cordoned", { by: "raw", ...(isBurst && { goal: 3 }) }),
    of("evictedMs", "last eviction", { by: "raw", ...(isBurst && { goal: 1.5 }) }),
    of("cordonedMs", "all cordoned, beside requests without a queue", { by: "bare" }),
    of("evictedMs", "last eviction, beside requests without a queue", { by: "bare" }),
    {
      name: `${title}, the queue alone`,
      value: median(rounds, (one) => one.queueMs).queueMs,
      unit: "ms",
    },
  ];
}

let machines = 0;

/** Creates the machines of one round, which end with it. */
async function fillRound(world: BenchWorld, nodes: number): Promise<Machine[]> {
  const first = machines;
  const count = burstsOfRound * nodes;
  machines += count;
  const providerIdOf = (place: number) => `aws:///eu-west-1a/${instanceIdOf(first + place)}`;
  const size = { prefix: `queue-${first}`, nodes: count, podsPerNode, providerIdOf };
  const fleet = await fillFleet(world, size);
  await untilPodsRun(world);
  await rest(15);
  return fleet.map((node, place) => ({ ...node, instanceId: instanceIdOf(first + place) }));
}

async function measureRound(
  world: BenchWorld,
  queues: { readonly read: Moto; readonly idle: Moto },
  about: { readonly size: BurstSize; readonly fleet: readonly Machine[] },
): Promise<Round> {
  const { nodes, connections } = about.size;
  const left = [...about.fleet];
  const burst = async (run: (fleet: readonly Machine[]) => Promise<Burst>): Promise<Burst> => {
    const part = left.splice(0, nodes);
    const told = await run(part);
    await endNodes(world, part);
    return told;
  };
  return {
    bare: await burst((fleet) => rawBurst(world, fleet, connections)),
    raw: await burst((fleet) => rawQueueBurst(world, queues.idle, { fleet, connections })),
    ours: await burst((fleet) => queueBurst(world, queues.read, fleet)),
    queueMs: await queueAlone(queues.idle, about.fleet.slice(0, nodes)),
  };
}

async function measure(world: BenchWorld, read: Moto, idle: Moto): Promise<void> {
  await applyPolicy(world, { lifetime: {} });
  const controller = await startController({
    ...{ ...world, token: world.controllerToken, env: read.environment },
    args: ["--sqs-queue-url", read.queueUrl],
  });
  const figures: Figure[] = [];
  let idleMiB: number | undefined;
  for (const size of bursts) {
    const rounds: Round[] = [];
    for (let round = 0; round < size.rounds; round += 1) {
      const fleet = await fillRound(world, size.nodes);
      idleMiB ??= controller.memory().nowMiB;
      const measured = await measureRound(world, { read, idle }, { size, fleet });
      rounds.push(measured);
      const { raw, bare } = measured;
      const told = { ...measured, raw: raw.times, bare: bare.times };
      console.log(JSON.stringify({ nodes: size.nodes, round, ...told }));
    }
    figures.unshift(...figuresOf(size.nodes, rounds));
  }
  const { peakMiB } = controller.memory();
  await controller.stop();
  const fleet = burstsOfRound * (bursts[0]?.nodes ?? 0);
  writeResult({
    bench: "queue",
    setting: { fleet, podsPerNode, access: controller.access, queue: "moto" },
    figures: [
      ...figures,
      { name: "resident before the bursts, reading a queue", value: idleMiB ?? 0, unit: "MiB" },
      { name: "peak resident over all bursts", value: peakMiB, unit: "MiB" },
    ],
  });
}

const world = await startBenchWorld();
try {
  const motos = [await Moto.start(), await Moto.start()] as const;
  try {
    await measure(world, ...motos);
  } finally {
    for (const moto of motos) await moto.stop();
  }
} finally {
  await world.stop();
}
