/**
 * A burst of interruptions before a large account's load balancers: 1,000 target groups of 50
 * targets, 50 machines noticed within a second, each in some of the groups. What counts is when the
 * last deregistrations go out, and how many requests they are. The server shares the process.
 */
import { createAwsRunner } from "../src/cloud/aws/actions/aws-runners.ts";
import { seededRng } from "../src/core/chance/rng.ts";
import { millis, plus, seconds } from "../src/core/time/time.ts";
import { realClock } from "../src/runtime/real-clock.ts";
import { LoadBalancerServer } from "../test/support/load-balancer-server.ts";
import { type Figure, rounded, writeResult } from "./result-file.ts";

const groups = 1000;
const targetsPerGroup = 50;
const notices = 50;
const goalMs = 500;
const never = new AbortController().signal;

function idOf(place: number): string {
  return `i-${place.toString(16).padStart(17, "0")}`;
}

interface Burst {
  readonly p99Ms: number;
  readonly calls: number;
  readonly otherCalls: number;
  /** The groups that hold one of the machines. */
  readonly holding: number;
}

/** Each machine is in so many groups. */
async function burst(groupsPerMachine: number): Promise<Burst> {
  const server = await new LoadBalancerServer(() => performance.now()).start();
  Object.assign(process.env, {
    ...{ AWS_ACCESS_KEY_ID: "bench", AWS_SECRET_ACCESS_KEY: "bench", AWS_ENDPOINT_URL: server.url },
  });
  const machines = (groups * targetsPerGroup) / groupsPerMachine;
  for (let group = 0; group < groups; group += 1) {
    const targets = Array.from({ length: targetsPerGroup }, (_, place) => ({
      ...{ id: idOf((group * targetsPerGroup + place) % machines), port: 80 },
    }));
    server.addGroup(`group-${group}`, { targets });
  }
  const runner = await createAwsRunner("deregisterTargets", {
    ...{ clock: realClock, rng: seededRng(1), region: "eu-west-1", machines: () => [] },
    onTrouble: (error) => {
      throw error;
    },
  });
  const how = { kind: "deregisterTargets", wait: false } as const;
  await runner.check(how, never);
  const before = server.calls.length;
  const noticedMs = new Map<string, number>();
  await Promise.all(
    Array.from({ length: notices }, async (_, place) => {
      await realClock.sleep(millis((place * 1000) / notices));
      const instanceId = idOf(Math.floor((place * machines) / notices));
      noticedMs.set(instanceId, performance.now());
      const task = {
        ...{ name: "targets", how, departure: instanceId, key: instanceId, earlier: [] },
        endsAt: plus(realClock.now(), seconds(30)),
        target: {
          ...{ node: instanceId, nodeUid: instanceId, instanceId },
          providerID: `aws:///eu-west-1a/${instanceId}`,
          addresses: async () => ({ node: [], pods: [] }),
        },
      };
      const undo = await runner.prepare(task, never);
      await runner.apply({ ...task, undo }, never);
    }),
  );
  const calls = server.calls.slice(before);
  await server.stop();
  const delays = calls
    .flatMap(({ targets, atMs }) => targets.map((id) => atMs - (noticedMs.get(id) ?? atMs)))
    .toSorted((a, b) => a - b);
  const deregistered = calls.filter(({ action }) => action === "DeregisterTargets");
  return {
    p99Ms: delays[Math.floor(delays.length * 0.99)] ?? Number.NaN,
    calls: deregistered.length,
    otherCalls: calls.length - deregistered.length,
    holding: new Set(deregistered.map(({ on }) => on)).size,
  };
}

const figures: Figure[] = [];
// The first run warms the compiler up.
await burst(1);
for (const groupsPerMachine of [1, 20, 50]) {
  const { p99Ms, calls, otherCalls, holding } = await burst(groupsPerMachine);
  if (otherCalls > 0) throw new Error(`${otherCalls} requests at a notice beside deregistrations`);
  const where = `a machine in ${groupsPerMachine} groups`;
  figures.push(
    {
      name: `notice to deregistration sent, p99, ${where}`,
      value: rounded(p99Ms),
      unit: "ms",
      goal: goalMs,
    },
    {
      name: `requests beside the groups and machines concerned, ${where}`,
      ...{
        value: calls,
        unit: "x",
        rawLimit: holding,
        ratio: rounded(calls / (notices * groupsPerMachine)),
      },
      goal: 1,
    },
  );
}
writeResult({ bench: "actions", setting: { groups, targetsPerGroup, notices }, figures });
