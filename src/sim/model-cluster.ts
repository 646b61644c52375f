import type { Clock } from "../contracts/clock.ts";
import { seededRng } from "../core/chance/rng.ts";
import type { Kubelet } from "./cluster-controllers/kubelet.ts";
import { startControllers } from "./cluster-controllers.ts";
import { ModelApi } from "./model-api.ts";
import { ModelCloud, type ModelCloudOptions } from "./model-cloud.ts";

export interface ModelClusterOptions extends Omit<ModelCloudOptions, "context" | "kubelet"> {
  readonly clock: Clock;
  readonly historyLimit?: number;
}

/** A whole cluster in memory: API, controllers, kubelets and the machines behind its Nodes. */
export interface ModelCluster {
  readonly api: ModelApi;
  readonly cloud: ModelCloud;
  readonly kubelet: Kubelet;
  /** Ends everything that waits for time. */
  readonly stop: () => void;
}

/** Starts a cluster whose machines are up; the same seed on a virtual clock is the same run. */
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
