import { Agent } from "../../agent/agent.ts";
import { AgentHealth } from "../../agent/agent-health.ts";
import { NoticeReporter } from "../../agent/notice-reporter.ts";
import type { Clock } from "../../contracts/clock.ts";
import type { NoticeSink, NoticeSource } from "../../contracts/cloud/notices.ts";
import type { Log } from "../../contracts/telemetry.ts";
import { seededRng } from "../../core/chance/rng.ts";
import type { NodeIdentity } from "../../core/cluster/node.ts";
import type { Notice } from "../../core/notice/notice.ts";
import { type Millis, plus } from "../../core/time/time.ts";
import { assert } from "../../errors.ts";
import type { ModelCluster } from "../model-cluster.ts";
import type { ModelCloud } from "./model-cloud.ts";
import { hashOf, type ModelMachine } from "./model-machine.ts";

interface ModelAgentsOptions {
  readonly cluster: ModelCluster;
  readonly clock: Clock;
  readonly seed: number;
  /** The time from a preemption notice until the machine shuts down. */
  readonly noticeMs: Millis;
  readonly log: Log;
}

/**
 * Runs the real agent on every machine of a model cluster, from when its Node is registered until
 * its power is off. Resolves once the signal has aborted and all have stopped; rejects if one
 * fails.
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
    // Its own random stream, so that agents do not change each other's draws.
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

const channel = "gcp/preempted";

interface ModelNoticeOptions {
  readonly cloud: ModelCloud;
  readonly clock: Clock;
  /** The id of the watched machine; another one may get its name. */
  readonly machineId: string;
  readonly name: string;
  /** The notice period of a machine, as its owner has set it in its metadata. */
  readonly noticeMs: Millis;
}

/** The metadata server of one model machine: no notice, until the cloud preempts the machine. */
class ModelNoticeSource implements NoticeSource {
  readonly cloud = "gcp";
  readonly channels = [channel];
  readonly #options: ModelNoticeOptions;

  constructor(options: ModelNoticeOptions) {
    this.#options = options;
  }

  async run(sink: NoticeSink, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    const { cloud, machineId, name } = this.#options;
    this.#report(cloud.machine(name), sink);
    const unsubscribe = cloud.subscribe(({ kind, machine }) => {
      if (kind === "Noticed" && machine.id === machineId) this.#report(machine, sink);
    });
    await new Promise<void>((resolve) => {
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
    unsubscribe();
  }

  #report(machine: ModelMachine | undefined, sink: NoticeSink): void {
    sink.onTurn(channel);
    const notices = machine?.noticedAt === undefined ? [] : [this.#notice(machine)];
    const reading = { kind: "Read", notices, ignored: [], problems: [] } as const;
    sink.onReading({ channel, reading, at: this.#options.clock.now() });
  }

  #notice({ noticedAt = this.#options.clock.now() }: ModelMachine): Notice {
    const deadlineAt = plus(noticedAt, this.#options.noticeMs);
    const cause = "SpotInterruption";
    return { cause, noticedAt, deadlineAt, source: channel, eventId: "preempted" };
  }
}
