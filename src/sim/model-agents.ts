import { Agent } from "../agent/agent.ts";
import { AgentHealth } from "../agent/agent-health.ts";
import { NoticeReporter } from "../agent/notice-reporter.ts";
import type { Clock } from "../contracts/clock.ts";
import type { Log } from "../contracts/telemetry.ts";
import { seededRng } from "../core/chance/rng.ts";
import type { NodeIdentity } from "../core/cluster/identity.ts";
import type { Millis } from "../core/time/time.ts";
import { assert } from "../errors.ts";
import { hashOf } from "./fate.ts";
import type { ModelCluster } from "./model-cluster.ts";
import type { ModelMachine } from "./model-machine.ts";
import { ModelNoticeSource } from "./model-notice-source.ts";

export interface ModelAgentsOptions {
  readonly cluster: ModelCluster;
  readonly clock: Clock;
  readonly seed: number;
  /** How long a preemption leaves a machine until it is shut down. */
  readonly noticeMs: Millis;
  readonly log: Log;
}

/**
 * The real agent on every machine of a model cluster, from when its Node is registered until its power
 * is off. Resolves when the signal aborts and all have let go; rejects if one fails.
 */
export async function runAgents(options: ModelAgentsOptions, signal: AbortSignal): Promise<void> {
  const { cloud } = options.cluster;
  const powers = new Map<string, AbortController>();
  const running = new Set<Promise<void>>();
  const failed = Promise.withResolvers<never>();
  const boot = (machine: ModelMachine): void => {
    const power = new AbortController();
    powers.set(machine.id, power);
    const agent = runAgent(options, machine, AbortSignal.any([signal, power.signal]));
    running.add(agent);
    void agent.then(() => running.delete(agent), failed.reject);
  };
  const unsubscribe = cloud.subscribe(({ kind, machine }) => {
    if (kind === "Registered") boot(machine);
    if (kind !== "Gone") return;
    powers.get(machine.id)?.abort();
    powers.delete(machine.id);
  });
  for (const machine of cloud.machines()) if (machine.state === "Running") boot(machine);
  try {
    await Promise.race([aborted(signal), failed.promise]);
  } finally {
    unsubscribe();
    for (const power of powers.values()) power.abort();
    await Promise.allSettled(running);
  }
}

async function runAgent(
  { cluster, clock, seed, noticeMs, log }: ModelAgentsOptions,
  { id, name, bootID }: ModelMachine,
  signal: AbortSignal,
): Promise<void> {
  const { api, cloud } = cluster;
  const identify = async (): Promise<NodeIdentity> => {
    const node = api.context.store.collection("nodes").get("", name);
    assert(node !== undefined, `the agent of ${name} runs while its Node is there`);
    return { name, uid: node.metadata.uid, bootID };
  };
  const source = new ModelNoticeSource({ cloud, clock, machineId: id, name, noticeMs });
  const agent = new Agent({
    findSource: () => Promise.resolve(source),
    reporter: new NoticeReporter({ api, identify, log }),
    health: new AgentHealth(clock),
    // A chance of its own, so that no agent changes what another one draws.
    rng: seededRng(hashOf(`${seed}|${id}|agent`)),
    metrics: { count: () => {} },
    ...{ clock, log, dryRun: false },
  });
  try {
    await agent.run(signal);
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
