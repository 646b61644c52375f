import { Agent } from "../agent/agent.ts";
import { AgentHealth } from "../agent/agent-status.ts";
import { NoticeReporter } from "../agent/notice-reporter.ts";
import type { Clock } from "../contracts/clock.ts";
import type { NoticeSink, NoticeSource } from "../contracts/cloud.ts";
import type { Log } from "../contracts/telemetry.ts";
import { seededRng } from "../core/chance/chance.ts";
import type { NodeIdentity } from "../core/cluster/node.ts";
import type { Notice } from "../core/notice/notice.ts";
import { type Millis, plus } from "../core/time/time.ts";
import { assert } from "../errors.ts";
import { ModelApi } from "./api/model-api.ts";
import type { ApiContext } from "./api/resource-registry.ts";
import { ModelCloud, type ModelCloudOptions } from "./cloud/model-cloud.ts";
import { hashOf, type ModelMachine } from "./cloud/model-machine.ts";
import {
  ControllerLoop,
  type ModelController,
  OwnerIndex,
} from "./cluster-controllers/controller-loop.ts";
import { DisruptionController } from "./cluster-controllers/disruption-controller.ts";
import { Kubelet } from "./cluster-controllers/kubelet.ts";
import {
  DaemonSetController,
  GarbageCollector,
  NamespaceController,
  NodeLifecycleController,
  PodGarbageCollector,
} from "./cluster-controllers/lifecycle-controllers.ts";
import { Scheduler } from "./cluster-controllers/scheduler.ts";
import {
  DeploymentController,
  JobController,
  ReplicaSetController,
  StatefulSetController,
} from "./cluster-controllers/workload-controllers.ts";

interface ModelClusterOptions extends Omit<ModelCloudOptions, "context" | "kubelet"> {
  readonly clock: Clock;
  readonly historyLimit?: number;
}

/** A whole cluster in memory: API, controllers, kubelets and the machines behind its Nodes. */
export interface ModelCluster {
  readonly api: ModelApi;
  readonly cloud: ModelCloud;
  readonly kubelet: Kubelet;
  /** Ends everything that waits on the clock. */
  readonly stop: () => void;
}

/**
 * Starts a cluster whose machines are up; with a virtual clock, the same seed gives the same run.
 */
export function startModelCluster(options: ModelClusterOptions): ModelCluster {
  const { clock, seed, historyLimit } = options;
  const history = historyLimit === undefined ? {} : { historyLimit };
  const api = new ModelApi({ clock, rng: seededRng(seed), ...history });
  const controllers = startControllers(api.context);
  const { kubelet } = controllers;
  const cloud = new ModelCloud({ ...options, context: api.context, kubelet });
  cloud.start();
  const stop = (): void => {
    cloud.stop();
    controllers.stop();
    api.dropWatches();
  };
  return { api, cloud, kubelet, stop };
}

interface RunningControllers {
  /** The kubelets of all machines, which a cloud starts and stops. */
  readonly kubelet: Kubelet;
  readonly stop: () => void;
}

/**
 * Starts what a control plane runs besides its API server: scheduler, kubelets, the controllers of
 * workloads, budgets, Nodes, owners and namespaces. They run on the clock's timers alone.
 */
export function startControllers(context: ApiContext): RunningControllers {
  const loop = new ControllerLoop(context);
  const pods = new OwnerIndex(context.store, "pods");
  const sets = new OwnerIndex(context.store, "replicasets.apps");
  const kubelet = new Kubelet(loop);
  const controllers: readonly ModelController[] = [
    new NodeLifecycleController(loop),
    new PodGarbageCollector(loop),
    new DisruptionController(loop),
    new DeploymentController(loop, sets),
    new ReplicaSetController(loop, pods),
    new StatefulSetController(loop, pods),
    new DaemonSetController(loop, pods),
    new JobController(loop, pods),
    new Scheduler(loop),
    kubelet,
    new GarbageCollector(loop),
    new NamespaceController(loop),
  ];
  for (const controller of controllers) loop.add(controller);
  return { kubelet, stop: () => loop.stop() };
}

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
