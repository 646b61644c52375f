/**
 * One notice at a time: the time from the instant at which the metadata service has it until the
 * controller has cordoned the node. A hundred notices on EC2, which is polled every second, and a
 * hundred on Compute Engine, which responds when the value changes; compared with as many bare
 * PATCH requests, one at a time, in the same run.
 */
import { seededRng } from "../src/core/chance/chance.ts";
import type { MetadataServer } from "../test/support/metadata-server.ts";
import { type BenchCloud, computeEngine, ec2, withAgents } from "./agent-fleet.ts";
import {
  type BenchNode,
  type BenchWorld,
  benchUser,
  controllerUser,
  fillFleet,
  rest,
  startBenchWorld,
  untilPodsRun,
} from "./bench-world.ts";
import { cordonsSince, endNodes } from "./burst.ts";
import { startController } from "./controller-process.ts";
import { RawClient } from "./raw-client.ts";
import { type Figure, rounded, writeResult } from "./result-file.ts";

const notices = 100;
const rng = seededRng(1);

/** A random pause, so that every instant of a poll's period is equally likely. */
function moment(): Promise<void> {
  return rest(0.2 + 0.2 * rng());
}

async function latencies<Server extends MetadataServer>(
  world: BenchWorld,
  fleet: readonly BenchNode[],
  cloud: BenchCloud<Server>,
): Promise<readonly number[]> {
  return withAgents({ world, fleet, cloud }, async (servers) => {
    const startAt = Date.now();
    const said = new Map<string, number>();
    for (const [place, server] of servers.entries()) {
      await moment();
      said.set(fleet[place]?.name ?? "", Date.now());
      cloud.take(server);
    }
    const cordons = await cordonsSince({ world, fleet, startAt, user: controllerUser });
    return sinceEach(said, cordons);
  });
}

async function rawLatencies(
  world: BenchWorld,
  fleet: readonly BenchNode[],
): Promise<readonly number[]> {
  const client = new RawClient(world.plane, { token: world.benchToken, connections: 1 });
  const startAt = Date.now();
  const sent = new Map<string, number>();
  for (const { name } of fleet) {
    await moment();
    sent.set(name, Date.now());
    const contentType = "application/merge-patch+json";
    const body = { spec: { unschedulable: true } };
    await client.sendAll([{ method: "PATCH", path: `/api/v1/nodes/${name}`, contentType, body }]);
  }
  client.close();
  return sinceEach(sent, await cordonsSince({ world, fleet, startAt, user: benchUser }));
}

function sinceEach(
  from: ReadonlyMap<string, number>,
  to: ReadonlyMap<string, number>,
): readonly number[] {
  return [...from].map(([name, at]) => (to.get(name) ?? Number.NaN) - at).sort((a, b) => a - b);
}

function figuresOf(
  what: string,
  sorted: readonly number[],
  goals: { readonly p50?: number; readonly p99?: number } = {},
): Figure[] {
  const at = (share: number) => rounded(sorted[Math.ceil(share * sorted.length) - 1] ?? Number.NaN);
  return [
    { name: `${what}, p50`, value: at(0.5), unit: "ms", goal: goals.p50 },
    { name: `${what}, p99`, value: at(0.99), unit: "ms", goal: goals.p99 },
  ];
}

const world = await startBenchWorld();
try {
  const size = { prefix: "latency", nodes: 3 * notices, podsPerNode: 1 };
  const fleet = [...(await fillFleet(world, size))];
  const take = (): readonly BenchNode[] => fleet.splice(0, notices);
  const controller = await startController({ ...world, token: world.controllerToken });
  await untilPodsRun(world);
  await rest(10);
  const [bare, polled, hung] = [take(), take(), take()];
  const raw = await rawLatencies(world, bare);
  await endNodes(world, bare);
  const onEc2 = await latencies(world, polled, ec2);
  await endNodes(world, polled);
  const onGce = await latencies(world, hung, computeEngine);
  await controller.stop();
  writeResult({
    bench: "latency",
    setting: { notices, fleet: size.nodes, access: controller.access },
    figures: [
      ...figuresOf("a bare PATCH", raw),
      ...figuresOf("EC2: notice to cordon", onEc2, { p50: 550, p99: 1200 }),
      ...figuresOf("Compute Engine: notice to cordon", onGce, { p99: 150 }),
    ],
  });
} finally {
  await world.stop();
}
