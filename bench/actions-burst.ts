/**
 * What actions cost the controller: the same burst of interruptions under a policy without actions
 * and under one with every AWS action, with 1,000 target groups. Measures when all nodes are
 * cordoned, when the last eviction is accepted, when the deregistrations are served, and how much
 * memory is resident. Each round uses a new controller, and the two policies alternate; the figures
 * are those of the median round. `npm run bench:actions -- --rounds 9`.
 */
import { parseArgs } from "node:util";
import { waitUntil } from "../test/support/wait-until.ts";
import {
  type AwsServers,
  functionName,
  idOf,
  machinesOf,
  quarantine,
  startAwsServers,
  topicArn,
} from "./aws-servers.ts";
import {
  applyPolicy,
  type BenchWorld,
  fillFleet,
  rest,
  startBenchWorld,
  untilPodsRun,
} from "./bench-world.ts";
import { type BurstTimes, departureBurst, endNodes, median } from "./burst.ts";
import { startController } from "./controller-process.ts";
import { leaveCoreToControlPlane } from "./own-core.ts";
import { beside, type Figure, rounded, writeResult } from "./result-file.ts";

const nodes = 50;
const podsPerNode = 5;
/** The notices are spread over this time. */
const withinMs = 1000;
const { rounds: wanted } = parseArgs({
  options: { rounds: { type: "string", default: "7" } },
  strict: false,
}).values;
const rounds = Number(wanted);
const served = { groups: 1000, targetsPerGroup: 50, groupsPerMachine: 20 };

const ways = {
  without: [],
  with: [
    { name: "targets", at: "AtNotice", deregisterTargets: { wait: true } },
    { name: "quarantine", at: "AtNotice", replaceSecurityGroups: { groupIds: [quarantine] } },
    { name: "detach", at: "AtNotice", detach: {} },
    { name: "respond", at: "AtNotice", lambda: { functionName } },
    { name: "tell", at: "AtNotice", sns: { topicArn, subject: "{{node}} {{cause}}" } },
  ],
} as const;
type Way = keyof typeof ways;

interface Measured {
  readonly times: BurstTimes;
  readonly nowMiB: number;
  readonly peakMiB: number;
  /** To the API server, by kind. */
  readonly requests: Readonly<Record<string, number>>;
  /** To AWS, by action. */
  readonly calls: Readonly<Record<string, number>>;
  /** How long after its machine's notice each deregistration was served: the median, and p99. */
  readonly delaysMs: { readonly median: number; readonly p99: number };
}

async function measure(
  world: BenchWorld,
  servers: AwsServers,
  { way, round }: { readonly way: Way; readonly round: number },
): Promise<Measured> {
  const firstPlace = 2 * round + (way === "with" ? 1 : 0);
  // Far apart, because neighbours would be in the same groups.
  const step = Math.floor(machinesOf(served) / nodes);
  const fleet = await fillFleet(world, {
    ...{ prefix: `actions-${way}-${round}`, nodes, podsPerNode },
    providerIdOf: (place) => `aws:///eu-west-1a/${idOf(firstPlace + place * step)}`,
  });
  await untilPodsRun(world);
  await applyPolicy(world, { lifetime: {}, actions: ways[way] });
  await servers.calls();
  const controller = await startController({
    ...{ ...world, token: world.controllerToken, env: servers.env },
  });
  if (way === "with") await untilRead(servers);
  await rest(10);
  const { times, requests, noticedAt } = await departureBurst(world, fleet, {
    ...{ cause: "SpotInterruption", withinMs },
  });
  await rest(10);
  const { nowMiB, peakMiB } = controller.memory();
  const calls = Map.groupBy(await servers.calls(), ({ action }) => action);
  const noticed = new Map(noticedAt.map((at, place) => [idOf(firstPlace + place * step), at]));
  const delays = (calls.get("DeregisterTargets") ?? [])
    .flatMap(({ targets, atMs }) => targets.map((id) => atMs - (noticed.get(id) ?? Number.NaN)))
    .toSorted((a, b) => a - b);
  const delayOf = (share: number) => rounded(delays[Math.floor(delays.length * share)] ?? 0);
  const delaysMs = { median: delayOf(0.5), p99: delayOf(0.99) };
  await endNodes(world, fleet);
  await controller.stop();
  const counts = Object.fromEntries([...calls].map(([action, of]) => [action, of.length]));
  const measured = { times, delaysMs, requests, nowMiB, peakMiB, calls: counts };
  console.log(JSON.stringify({ way, round, ...measured }));
  return measured;
}

/** Waits until the controller has requested the targets of every group. */
async function untilRead(servers: AwsServers): Promise<void> {
  let read = 0;
  await waitUntil(
    async () => {
      const calls = await servers.calls();
      read += calls.filter(({ action }) => action === "DescribeTargetHealth").length;
      return read >= served.groups;
    },
    { what: "the controller has read the groups", timeoutMs: 60_000, intervalMs: 500 },
  );
}

function figuresOf(measured: Readonly<Record<Way, readonly Measured[]>>): readonly Figure[] {
  const middle = (way: Way, of: (one: Measured) => number) => of(median(measured[way], of));
  const burst = (name: string, of: (one: Measured) => number) =>
    beside({ name, ms: middle("with", of), rawMs: middle("without", of), goal: 1.1 });
  const resident = (name: string, of: (one: Measured) => number): Figure => ({
    ...{ name, value: rounded(middle("with", of) - middle("without", of)), unit: "MiB" },
    rawLimit: middle("without", of),
    goal: 70,
  });
  return [
    burst(`${nodes} notices with actions, all cordoned`, ({ times }) => times.cordonedMs),
    burst(`${nodes} notices with actions, last eviction`, ({ times }) => times.evictedMs),
    {
      name: `${nodes} notices with actions, notice to deregistration served, p99`,
      value: middle("with", ({ delaysMs }) => delaysMs.p99),
      unit: "ms",
    },
    resident("more resident with actions, after the burst", ({ nowMiB }) => nowMiB),
    resident("more resident with actions, peak", ({ peakMiB }) => peakMiB),
  ];
}

const world = await startBenchWorld();
leaveCoreToControlPlane();
const servers = await startAwsServers(served);
try {
  const measured: Record<Way, Measured[]> = { without: [], with: [] };
  for (let round = 0; round < rounds; round += 1) {
    // Alternates which one goes first.
    const order = round % 2 === 0 ? (["without", "with"] as const) : (["with", "without"] as const);
    for (const way of order) measured[way].push(await measure(world, servers, { way, round }));
  }
  const setting = { nodes, podsPerNode, withinMs, rounds, ...served };
  writeResult({ bench: "actions-burst", setting, figures: figuresOf(measured) });
} finally {
  await servers.stop();
  await world.stop();
}
