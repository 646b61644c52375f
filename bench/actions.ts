/**
 * A burst of interruptions behind a large account's load balancers: 1,000 target groups of 50
 * targets, and 50 machines that get a notice within a second, each in some of the groups. Measures
 * when the last deregistrations are sent, and how many requests they take.
 */
import { createAwsRunner } from "../src/cloud/aws/actions/aws-runners.ts";
import type { Clock } from "../src/contracts/clock.ts";
import { seededRng } from "../src/core/chance/chance.ts";
import { millis, minus, minutes, plus, seconds } from "../src/core/time/time.ts";
import { realClock } from "../src/runtime/real-clock.ts";
import { idOf, machinesOf, nowMs, startAwsServers } from "./aws-servers.ts";
import { type Figure, rounded, writeResult } from "./result-file.ts";

const groups = 1000;
const targetsPerGroup = 50;
const notices = 50;
const goalMs = 500;
const never = new AbortController().signal;

interface Burst {
  readonly p99Ms: number;
  readonly calls: number;
  /** The number of requests without batching: one per machine and group. */
  readonly apart: number;
  /** Of this process, from the first notice to the last response. */
  readonly cpuMs: number;
  /** Requests of the check that follows the burst. */
  readonly lookCalls: number;
}

/**
 * Each machine is in `groupsPerMachine` groups. With `Stale`, the groups were read so long ago that
 * they are read again after the burst.
 */
async function burst(groupsPerMachine: number, index: "Fresh" | "Stale"): Promise<Burst> {
  const fleet = { groups, targetsPerGroup, groupsPerMachine };
  const servers = await startAwsServers(fleet);
  Object.assign(process.env, servers.env);
  const machines = machinesOf(fleet);
  const over = new AbortController();
  let aheadMs = millis(0);
  const clock: Clock = {
    ...realClock,
    now: () => plus(realClock.now(), aheadMs),
    sleepUntil: (at, signal) => realClock.sleepUntil(minus(at, aheadMs), signal),
  };
  const runner = await createAwsRunner("deregisterTargets", {
    ...{ clock, rng: seededRng(1), region: "eu-west-1", machines: () => [] },
    follow: over.signal,
    onError: (error) => {
      throw error;
    },
  });
  const how = { kind: "deregisterTargets", wait: false } as const;
  await runner.check(how, never);
  if (index === "Stale") aheadMs = minutes(2);
  await servers.calls();
  const cpuBefore = process.cpuUsage();
  const noticedMs = new Map<string, number>();
  await Promise.all(
    Array.from({ length: notices }, async (_, place) => {
      await realClock.sleep(millis((place * 1000) / notices));
      const instanceId = idOf(Math.floor((place * machines) / notices));
      noticedMs.set(instanceId, nowMs());
      const task = {
        ...{ name: "targets", how, departure: instanceId, key: instanceId, earlier: [] },
        endsAt: plus(clock.now(), seconds(30)),
        target: {
          ...{ node: instanceId, nodeUid: instanceId, instanceId },
          providerID: `aws:///eu-west-1a/${instanceId}`,
          addresses: async () => ({ node: [], pods: [] }),
        },
      };
      const undo = await runner.prepare(task, never);
      await runner.apply({ ...task, undo, keep: async () => {} }, never);
    }),
  );
  const { user, system } = process.cpuUsage(cpuBefore);
  over.abort();
  const calls = await servers.calls();
  await servers.stop();
  const deregistered = calls.filter(({ action }) => action === "DeregisterTargets");
  const delays = deregistered
    .flatMap(({ targets, atMs }) => targets.map((id) => atMs - (noticedMs.get(id) ?? atMs)))
    .toSorted((a, b) => a - b);
  const lastMs = Math.max(...deregistered.map(({ atMs }) => atMs));
  const early = calls.filter(({ action, atMs }) => action.startsWith("Desc") && atMs < lastMs);
  if (early.length > 0) throw new Error(`${early.length} looks at a notice, expected none`);
  return {
    p99Ms: delays[Math.floor(delays.length * 0.99)] ?? Number.NaN,
    calls: deregistered.length,
    apart: notices * groupsPerMachine,
    cpuMs: (user + system) / 1000,
    lookCalls: calls.length - deregistered.length,
  };
}

const figures: Figure[] = [];
// The first run warms up the compiler.
await burst(1, "Fresh");
for (const groupsPerMachine of [1, 20, 50]) {
  const { p99Ms, calls, apart, cpuMs } = await burst(groupsPerMachine, "Fresh");
  const where = `a machine in ${groupsPerMachine} groups`;
  const goal = 1;
  figures.push(
    {
      name: `notice to deregistration sent, p99, ${where}`,
      value: rounded(p99Ms),
      unit: "ms",
      goal: goalMs,
    },
    {
      name: `deregistrations beside each machine's groups, ${where}`,
      ...{ value: calls, unit: "x", rawLimit: apart, ratio: rounded(calls / apart), goal },
    },
    { name: `processor time in all, ${where}`, value: rounded(cpuMs), unit: "ms" },
  );
}
const { lookCalls } = await burst(20, "Stale");
figures.push({
  name: "requests of the one look after the burst, beside one a group",
  ...{ value: lookCalls, unit: "x", rawLimit: groups, ratio: rounded(lookCalls / groups) },
  goal: 1.1,
});
writeResult({ bench: "actions", setting: { groups, targetsPerGroup, notices }, figures });
