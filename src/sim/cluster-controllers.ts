import type { ApiContext } from "./api/api-context.ts";
import { ControllerLoop, type ModelController } from "./cluster-controllers/controller-loop.ts";
import { DaemonSetController } from "./cluster-controllers/daemon-set-controller.ts";
import { DeploymentController } from "./cluster-controllers/deployment-controller.ts";
import { DisruptionController } from "./cluster-controllers/disruption-controller.ts";
import { GarbageCollector, NamespaceController } from "./cluster-controllers/garbage-collector.ts";
import { JobController } from "./cluster-controllers/job-controller.ts";
import { Kubelet } from "./cluster-controllers/kubelet.ts";
import { NodeLifecycle, PodCollector } from "./cluster-controllers/node-lifecycle.ts";
import { OwnerIndex } from "./cluster-controllers/owner-index.ts";
import { ReplicaSetController } from "./cluster-controllers/replica-set-controller.ts";
import { Scheduler } from "./cluster-controllers/scheduler.ts";
import { StatefulSetController } from "./cluster-controllers/stateful-set-controller.ts";

export interface RunningControllers {
  /** The kubelets of all machines, which a cloud starts and stops. */
  readonly kubelet: Kubelet;
  readonly stop: () => void;
}

/**
 * Starts what a control plane runs besides its API server: scheduler, kubelets, the controllers
 * of workloads, budgets, Nodes, owners and namespaces. They take no time but what the clock gives
 * to programs, and need nobody to run them.
 */
export function startControllers(context: ApiContext): RunningControllers {
  const loop = new ControllerLoop(context);
  const pods = new OwnerIndex(context.store, "pods");
  const sets = new OwnerIndex(context.store, "replicasets.apps");
  const kubelet = new Kubelet(loop);
  const controllers: readonly ModelController[] = [
    new NodeLifecycle(loop),
    new PodCollector(loop),
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
