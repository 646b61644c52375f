/**
 * Bursts of notices by a queue (moto's SQS, on the same machine): how long until every node is cordoned
 * and until the last eviction is accepted, counted from the sending of the first message, beside nothing
 * but PATCH and eviction requests for as many nodes in the same round, and beside what the queue takes
 * by itself: moto is written in Python, and shares the machine. And what AWS' client costs.
 */
import { Moto } from "../test/support/moto.ts";
import { spotWarning } from "../test/support/queue-body.ts";
import {
  type BenchNode,
  type BenchWorld,
  controllerUser,
  fillFleet,
  rest,
  startBenchWorld,
  untilPodsRun,
} from "./bench-world.ts";
import { type Burst, type BurstTimes, burstSince, endNodes, median, rawBurst } from "./burst.ts";
import { startController } from "./controller-process.ts";
import { beside, type Figure, writeResult } from "./result-file.ts";

const podsPerNode = 5;
/** The controller's default. */
const receivers = 2;
const bursts = [
  { nodes: 1, connections: 32, rounds: 5 },
  { nodes: 50, connections: 32, rounds: 3 },
  { nodes: 300, connections: 64, rounds: 1 },
].filter(({ nodes }) => process.argv.length < 3 || process.argv.includes(String(nodes)));

interface Round {
  readonly raw: Burst;
  readonly ours: Burst;
  /** As many messages sent, received and deleted with nothing done about them. */
  readonly queueMs: number;
}

interface Machine extends BenchNode {
  readonly instanceId: string;
}

function instanceIdOf(place: number): string {
  return `i-${String(place).padStart(17, "0")}`;
}

async function queueBurst(
  world: BenchWorld,
  moto: Moto,
  fleet: readonly Machine[],
): Promise<Burst> {
  const startAt = Date.now();
  const time = new Date(startAt).toISOString();
  await moto.send(
    ...fleet.map(({ instanceId }) => spotWarning({ instanceId, time, id: instanceId })),
  );
  return burstSince({ world, fleet, startAt, user: controllerUser });
}

/** What the queue itself takes, on one that the controller does not read. */
async function queueAlone(moto: Moto, count: number): Promise<number> {
  const startAt = Date.now();
  const time = new Date(startAt).toISOString();
  const places = Array.from({ length: count }, (_, place) => instanceIdOf(place));
  await moto.send(...places.map((instanceId) => spotWarning({ instanceId, time, id: instanceId })));
  await moto.drain(count, receivers);
  return Date.now() - startAt;
}

function figuresOf(nodes: number, rounds: readonly Round[]): Figure[] {
  const of = (field: keyof BurstTimes, name: string): Figure => {
    const timesOf = ({ raw, ours }: Round) => ({ ms: ours.times[field], rawMs: raw.times[field] });
    const times = timesOf(median(rounds, (one) => timesOf(one).ms / timesOf(one).rawMs));
    const title = `${nodes} notice${nodes === 1 ? "" : "s"} by a queue, ${name}`;
    return beside({ name: title, ...times });
  };
  const alone = median(rounds, (one) => one.queueMs).queueMs;
  return [
    of("cordonedMs", "all cordoned"),
    of("evictedMs", "last eviction"),
    {
      name: `${nodes} message${nodes === 1 ? "" : "s"} through moto alone`,
      value: alone,
      unit: "ms",
    },
  ];
}

async function applyPolicy({ plane }: BenchWorld): Promise<void> {
  const { status, body } = await plane.request({
    method: "POST",
    path: "/apis/lastcall.dev/v1alpha1/departurepolicies",
    body: {
      apiVersion: "lastcall.dev/v1alpha1",
      kind: "DeparturePolicy",
      metadata: { name: "spot" },
      spec: { lifetime: {} },
    },
  });
  if (status !== 201) throw new Error(`Cannot make the policy: ${status} ${body.message}`);
}

async function measure(world: BenchWorld, moto: Moto, idle: Moto): Promise<void> {
  const total = bursts.reduce((sum, { nodes, rounds }) => sum + 2 * nodes * rounds, 0);
  const providerIdOf = (place: number) => `aws:///eu-west-1a/${instanceIdOf(place)}`;
  const size = { prefix: "queue", nodes: total, podsPerNode, providerIdOf };
  const fleet = (await fillFleet(world, size)).map((node, place): Machine => {
    return { ...node, instanceId: instanceIdOf(place) };
  });
  const take = (count: number) => fleet.splice(0, count);
  await applyPolicy(world);
  const controller = await startController({
    ...{ ...world, token: world.controllerToken, env: moto.environment },
    args: ["--sqs-queue-url", moto.queueUrl],
  });
  await untilPodsRun(world);
  await rest(15);
  const idleMiB = controller.memory().nowMiB;
  const figures: Figure[] = [];
  for (const { nodes, connections, rounds } of bursts) {
    const measured: Round[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const bare = take(nodes);
      const raw = await rawBurst(world, bare, connections);
      await endNodes(world, bare);
      await rest(nodes > 1 ? 10 : 2);
      const own = take(nodes);
      const ours = await queueBurst(world, moto, own);
      await endNodes(world, own);
      await rest(nodes > 1 ? 10 : 2);
      const queueMs = await queueAlone(idle, nodes);
      measured.push({ raw, ours, queueMs });
      console.log(JSON.stringify({ nodes, round, raw: raw.times, ours, queueMs }));
    }
    figures.push(...figuresOf(nodes, measured));
  }
  const { peakMiB } = controller.memory();
  await controller.stop();
  writeResult({
    bench: "queue",
    setting: { fleet: total, podsPerNode, access: controller.access, queue: "moto" },
    figures: [
      ...figures,
      { name: "resident before the bursts, reading a queue", value: idleMiB, unit: "MiB" },
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
