import type { Clock } from "../contracts/clock.ts";
import { seededRng } from "../core/chance/rng.ts";
import type { ApiContext } from "./api/api-context.ts";
import { ModelApi } from "./api/model-api.ts";
import { ModelCloud, type ModelCloudOptions } from "./cloud/model-cloud.ts";
import {
  ControllerLoop,
  type ModelController,
  OwnerIndex,
} from "./cluster-controllers/controller-loop.ts";
import { DaemonSetController } from "./cluster-controllers/daemon-set-controller.ts";
import { DisruptionController } from "./cluster-controllers/disruption-controller.ts";
import { Kubelet } from "./cluster-controllers/kubelet.ts";
import {
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
