import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { parse } from "yaml";
import type { KubeObject, KubeRequest } from "../../src/contracts/kube-api.ts";
import {
  formatInstant,
  hours,
  type Millis,
  minutes,
  plus,
  seconds,
} from "../../src/core/time/time.ts";
import { podBehaviour } from "../../src/sim/cluster-controllers/kubelet.ts";
import { departures, ModelWorld, spotPolicy } from "../support/model-world.ts";

export const ownPods = "/api/v1/namespaces/lastcall/pods";

const manifest = join(import.meta.dirname, "../../deploy/base/placeholder-priority.yaml");
const priorityClass = parse(readFileSync(manifest, "utf8")) as KubeObject;

export interface StoryOptions {
  readonly nodes?: readonly string[];
  readonly replacement?: Readonly<Record<string, string>>;
  readonly drain?: Readonly<Record<string, string>>;
  readonly instance?: Readonly<Record<string, string>>;
  readonly withoutPriorityClass?: true;
}

/**
 * Machines with four cores, the policy `spot` that plans nothing, and the PriorityClass of
 * `deploy/base`.
 */
export function capacityStory(options: StoryOptions = {}): ModelWorld {
  const world = new ModelWorld();
  world.create("/api/v1/namespaces", {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name: "lastcall" },
  });
  if (options.withoutPriorityClass === undefined) {
    world.create("/apis/scheduling.k8s.io/v1/priorityclasses", priorityClass);
  }
  for (const name of options.nodes ?? ["n0", "n1", "n2"]) world.addNode(name, "a");
  const replacement = options.replacement ?? { when: "BeforeDrain", timeout: "10m" };
  const drain = options.drain ?? { timeout: "20m", onTimeout: "Wait" };
  spotPolicy(world, { replacement, drain, instance: options.instance ?? {} });
  return world;
}

/** Every request of the controller from now on, such as `GET /api/v1/pods?fieldSelector=…`. */
export function requestsOf(world: ModelWorld): readonly string[] {
  const seen: string[] = [];
  const { api } = world;
  const take = ({ method, path, query }: Partial<KubeRequest>): void => {
    const text = Object.entries(query ?? {}).map(([key, value]) => `${key}=${value}`);
    seen.push(`${method ?? "WATCH"} ${path}?${text.join("&")}`);
  };
  const send = api.send.bind(api);
  const watch = api.watch.bind(api);
  api.send = (request) => {
    take(request);
    return send(request);
  };
  api.watch = (request) => {
    take(request);
    return watch(request);
  };
  return seen;
}

export function close(world: ModelWorld, names: readonly string[]): void {
  for (const name of names) world.patchNode(name, { spec: { unschedulable: true } });
}

export function open(world: ModelWorld, names: readonly string[]): void {
  for (const name of names) world.patchNode(name, { spec: { unschedulable: null } });
}

export interface WorkloadShape {
  readonly replicas: number;
  readonly cpu: string;
  readonly maxUnavailable?: number;
  readonly exitAfterSeconds?: number | "never";
  readonly claim?: string;
  readonly nodeSelector?: Readonly<Record<string, string>>;
}

/** A Deployment whose pods request `cpu`, and a budget if `maxUnavailable` is given. */
export function workload(world: ModelWorld, name: string, shape: WorkloadShape): void {
  const labels = { app: name };
  const exit = String(shape.exitAfterSeconds ?? 3);
  const claimName = shape.claim;
  const volumes = [{ name: "data", persistentVolumeClaim: { claimName } }];
  world.create("/apis/apps/v1/namespaces/default/deployments", {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name, namespace: "default" },
    spec: {
      replicas: shape.replicas,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels, annotations: { [podBehaviour.exitSeconds]: exit } },
        spec: {
          terminationGracePeriodSeconds: 60,
          ...(shape.nodeSelector === undefined ? {} : { nodeSelector: shape.nodeSelector }),
          ...(claimName === undefined ? {} : { volumes }),
          containers: [{ name: "c", image: "c:1", resources: { requests: { cpu: shape.cpu } } }],
        },
      },
    },
  });
  if (shape.maxUnavailable === undefined) return;
  world.create("/apis/policy/v1/namespaces/default/poddisruptionbudgets", {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: { name, namespace: "default" },
    spec: { maxUnavailable: shape.maxUnavailable, selector: { matchLabels: labels } },
  });
}

/** A person's request: the node is to leave now, under the policy `spot`. */
export function depart(world: ModelWorld, node: string, more: object = {}): void {
  const found = world.get(`/api/v1/nodes/${node}`);
  const uid = found?.metadata?.uid ?? "";
  const spec = found?.spec as { providerID?: string } | undefined;
  world.create(departures, {
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "Departure",
    metadata: { name: `${node}-${uid.slice(0, 8)}` },
    spec: {
      node: { name: node, uid, providerID: spec?.providerID },
      cause: "Manual",
      policy: "spot",
      ...more,
    },
  });
}

/** A notice for a node that has a departure already, as an agent would write it. */
export function noticeOf(world: ModelWorld, node: string, lead: Millis): void {
  const path = `${departures}/${world.departureOf(node)?.metadata?.name}`;
  const now = world.clock.now();
  const spec = {
    cause: "SpotInterruption",
    noticedAt: formatInstant(now),
    deadlineAt: formatInstant(plus(now, lead)),
  };
  const patchType = "application/merge-patch+json";
  const { status } = world.api.handle({ method: "PATCH", path, patchType, body: { spec } });
  if (status !== 200) throw new Error(`the notice of ${node} was answered ${status}`);
}

export interface Placeholder {
  readonly name: string;
  readonly phase: string;
  readonly node: string | undefined;
}

export function placeholdersOf(world: ModelWorld): readonly Placeholder[] {
  return world.list(ownPods).map((pod) => ({
    name: pod.metadata?.name ?? "",
    phase: (pod.status as { phase: string }).phase,
    node: (pod.spec as { nodeName?: string }).nodeName,
  }));
}

export interface Ledger {
  readonly phase?: string;
  readonly outcome?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly drain?: Readonly<Record<string, unknown>>;
  readonly timeline?: readonly { at: string; step: string; result: string }[];
}

export function ledgerOf(world: ModelWorld, node: string): Ledger {
  return (world.departureOf(node)?.status as Ledger | undefined) ?? {};
}

/** The steps of the timeline, each with its seconds since the departure started. */
export function stepsOf(world: ModelWorld, node: string): readonly string[] {
  const timeline = ledgerOf(world, node).timeline ?? [];
  const [first] = timeline;
  const sinceMs = (at: string) => Date.parse(at) - Date.parse(first?.at ?? at);
  return timeline.map(({ at, step }) => `${Math.round(sinceMs(at) / 1000)} ${step}`);
}

/** Runs the controller until `ends`, or for at most `limit`. */
export async function told(
  world: ModelWorld,
  ends: () => boolean,
  limit = minutes(30),
): Promise<void> {
  const stop = new AbortController();
  const running = world.startController(stop.signal);
  try {
    await world.passUntil(ends, limit);
  } finally {
    stop.abort();
    await running;
  }
}

export function hasEnded(world: ModelWorld, node: string): () => boolean {
  return () => ledgerOf(world, node).phase === "Ended";
}

/** A pod of `web` and one of `db` on each of two nodes; one of each may be unavailable. */
export async function entangled(
  instance: NonNullable<StoryOptions["instance"]> = {},
): Promise<ModelWorld> {
  const nodes = ["n0", "n1", "n2"];
  const world = capacityStory({ nodes, replacement: { when: "None" }, instance });
  close(world, ["n2"]);
  for (const name of ["web", "db"]) {
    workload(world, name, { replicas: 2, cpu: "1", maxUnavailable: 1, exitAfterSeconds: 40 });
  }
  await world.pass(seconds(30));
  for (const name of ["n0", "n1"]) expect(world.podsOn(name)).toHaveLength(2);
  open(world, ["n2"]);
  for (const name of ["n0", "n1"]) depart(world, name);
  return world;
}

/** Makes the node's departure a planned one that the previous controller has started. */
export function beginPlanned(world: ModelWorld, node: string, leftMs = hours(12)): void {
  const now = world.clock.now();
  const path = `/apis/lastcall.dev/v1alpha1/departures/${world.departureOf(node)?.metadata?.name}`;
  const at = formatInstant(now);
  const deadlineAt = formatInstant(plus(now, leftMs));
  const timeline = [{ at, step: "Preparing", result: "Due" }];
  for (const [where, body] of [
    ["", { spec: { cause: "Planned", departAt: at, deadlineAt } }],
    ["/status", { status: { phase: "Preparing", startedAt: at, timeline } }],
  ] as const) {
    const patchType = "application/merge-patch+json";
    world.api.handle({ method: "PATCH", path: `${path}${where}`, patchType, body });
  }
}

/** Whether a node has waited for the drain of another. */
export const waits = (world: ModelWorld) => (name: string) => conflictsOf(world, name).length > 0;

/** What its timeline says of the drains that it waited for. */
export function conflictsOf(world: ModelWorld, name: string): readonly string[] {
  const results = (ledgerOf(world, name).timeline ?? []).map(({ result }) => result ?? "");
  return results.filter((result) => result.includes("could block each other"));
}
