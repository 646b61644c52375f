import { seededRng } from "../../../src/core/chance/chance.ts";
import { type Instant, instant, plus, seconds } from "../../../src/core/time/time.ts";
import { eventLoopTurn } from "../../../src/runtime/real-clock.ts";
import { ModelApi } from "../../../src/sim/api/model-api.ts";
import {
  isActive,
  type NodeObject,
  type PodObject,
} from "../../../src/sim/cluster-controllers/cluster-object.ts";
import type { Kubelet } from "../../../src/sim/cluster-controllers/kubelet.ts";
import { startControllers } from "../../../src/sim/model-cluster.ts";
import { VirtualClock } from "../../../src/sim/time/virtual-clock.ts";

export const startAt: Instant = instant(Date.UTC(2026, 10, 20));

type Map = Readonly<Record<string, string>>;

/** A model cluster without a cloud, driven step by step; time advances only in `wait`. */
export class ClusterScenario {
  readonly clock = new VirtualClock({ startAt, settle: eventLoopTurn });
  readonly api = new ModelApi({ clock: this.clock, rng: seededRng(3) });
  readonly kubelet: Kubelet = startControllers(this.api.context).kubelet;

  wait(spanSeconds: number): Promise<void> {
    return this.clock.advance(seconds(spanSeconds));
  }

  /** Seconds since the start. */
  get elapsedSeconds(): number {
    return this.clock.monotonic() / 1000;
  }

  instantAfter(spanSeconds: number): Instant {
    return plus(startAt, seconds(spanSeconds));
  }

  post(path: string, body: object): void {
    const answer = this.api.handle({ method: "POST", path, body });
    if (answer.status !== 201) throw new Error(JSON.stringify(answer.body));
  }

  merge(path: string, body: object): void {
    const patchType = "application/merge-patch+json";
    const answer = this.api.handle({ method: "PATCH", path, patchType, body });
    if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
  }

  delete(path: string): void {
    this.api.handle({ method: "DELETE", path });
  }

  node(name: string, options: { zone?: string; cpu?: string; taints?: object[] } = {}): void {
    const { zone = "a", cpu = "4", taints } = options;
    const labels = { "topology.kubernetes.io/zone": zone };
    const allocatable = { cpu, memory: "16Gi", pods: "110" };
    const conditions = [{ type: "Ready", status: "True" }];
    const spec = taints === undefined ? {} : { taints };
    const status = { allocatable, conditions };
    this.post("/api/v1/nodes", { metadata: { name, labels }, spec, status });
  }

  deployment(name: string, replicas: number, pod: PodParts = {}): void {
    this.#workload("deployments", { name, spec: { replicas }, pod });
  }

  statefulSet(name: string, replicas: number, pod: PodParts = {}): void {
    this.#workload("statefulsets", { name, spec: { replicas }, pod });
  }

  daemonSet(name: string, pod: PodParts = {}): void {
    this.#workload("daemonsets", { name, spec: {}, pod });
  }

  budget(name: string, spec: object): void {
    const selector = { matchLabels: { app: name } };
    const path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    this.post(path, { metadata: { name }, spec: { selector, ...spec } });
  }

  budgetStatus(name: string): Readonly<Record<string, unknown>> {
    const budgets = this.api.context.store.collection("poddisruptionbudgets.policy");
    return budgets.get("default", name)?.status as Readonly<Record<string, unknown>>;
  }

  /** The status of the response to an eviction. */
  evict(name: string): number {
    const path = `/api/v1/namespaces/default/pods/${name}/eviction`;
    return this.api.handle({ method: "POST", path, body: { metadata: { name } } }).status;
  }

  cordon(name: string): void {
    this.merge(`/api/v1/nodes/${name}`, { spec: { unschedulable: true } });
  }

  getNode(name: string): NodeObject | undefined {
    return this.api.context.store.collection("nodes").get("", name) as NodeObject | undefined;
  }

  pods(app?: string): readonly PodObject[] {
    const all = this.api.context.store.collection("pods").list() as readonly PodObject[];
    return app === undefined ? all : all.filter((pod) => pod.metadata.labels?.app === app);
  }

  active(app: string): readonly PodObject[] {
    return this.pods(app).filter(isActive);
  }

  pod(name: string): PodObject | undefined {
    return this.pods().find((pod) => pod.metadata.name === name);
  }

  #workload(plural: string, parts: { name: string; spec: object; pod: PodParts }): void {
    const { name, spec, pod } = parts;
    const { annotations, ...podSpec } = pod;
    const labels = { app: name };
    const template = {
      metadata: { labels, ...(annotations ? { annotations } : {}) },
      spec: { containers: [{ name: "main", image: "app" }], ...podSpec },
    };
    const body = {
      metadata: { name },
      spec: { selector: { matchLabels: labels }, template, ...spec },
    };
    this.post(`/apis/apps/v1/namespaces/default/${plural}`, body);
  }
}

interface PodParts {
  readonly annotations?: Map;
  readonly containers?: readonly object[];
  readonly tolerations?: readonly object[];
  readonly nodeSelector?: Map;
  readonly priorityClassName?: string;
  readonly terminationGracePeriodSeconds?: number;
}

/** A container that requests this much CPU. */
export function asking(cpu: string): readonly object[] {
  return [{ name: "main", image: "app", resources: { requests: { cpu } } }];
}

/** The number of pods on each node. */
export function byNode(pods: readonly PodObject[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { spec } of pods) {
    const node = spec.nodeName ?? "none";
    counts[node] = (counts[node] ?? 0) + 1;
  }
  return counts;
}
