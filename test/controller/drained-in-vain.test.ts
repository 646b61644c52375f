/** Nodes with a pod that will not leave: draining the others would be for nothing. */
import { describe, expect, it } from "vitest";
import type { KubeAnswer, KubeRequest } from "../../src/contracts/kube-api.ts";
import { hours, minutes, seconds } from "../../src/core/time/time.ts";
import {
  departures,
  ModelWorld,
  policies,
  spotPolicy,
  webWorkload,
} from "../support/model-world.ts";

interface Obstacle {
  readonly maxUnavailable?: number;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly release?: "Recreate" | "None";
}

const labels = { app: "db" };

/** Four nodes, and a database on one of them. */
async function fleet({ maxUnavailable, annotations = {}, release = "Recreate" }: Obstacle) {
  const world = new ModelWorld();
  for (const name of ["n0", "n1", "n2", "n3"]) world.addNode(name, "a");
  webWorkload(world, { replicas: 8, maxUnavailable: 8, graceSeconds: 30 });
  const containers = [{ name: "db", image: "db:1" }];
  world.create("/apis/apps/v1/namespaces/default/statefulsets", {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: { name: "db", namespace: "default" },
    spec: {
      ...{ replicas: 1, serviceName: "db", selector: { matchLabels: labels } },
      template: { metadata: { labels, annotations }, spec: { containers } },
    },
  });
  if (maxUnavailable !== undefined) {
    world.create("/apis/policy/v1/namespaces/default/poddisruptionbudgets", {
      ...{ apiVersion: "policy/v1", kind: "PodDisruptionBudget" },
      metadata: { name: "db", namespace: "default" },
      spec: { maxUnavailable, selector: { matchLabels: labels } },
    });
  }
  spotPolicy(world, {
    ...{ lifetime: { max: "4h", reserve: "30m" }, spacing: { min: "15m" } },
    instance: { release, awaitMachine: "10m" },
  });
  await world.pass(minutes(1));
  const db = world.list("/api/v1/pods").find(({ metadata }) => metadata?.name === "db-0");
  const { nodeName: home = "" } = (db?.spec ?? {}) as { nodeName?: string };
  const stop = new AbortController();
  const running = world.startController(stop.signal);
  const end = async () => {
    stop.abort();
    await running;
  };
  return { world, home, end };
}

function statusOf(world: ModelWorld, node: string): Partial<Record<string, string>> {
  return (world.departureOf(node)?.status ?? {}) as Partial<Record<string, string>>;
}

/** With `None`, drains of other nodes are rolled back, too: nobody takes their machines. */
function evictedInVain(world: ModelWorld): number {
  const ended = world.list(departures).map(({ status }) => status as Ended | undefined);
  const undone = ended.filter(
    (one) => one?.outcome === "RolledBack" && one.reason !== "MachineNotTaken",
  );
  return undone.reduce((sum, one) => sum + (one?.drain?.evicted ?? 0), 0);
}

interface Ended {
  readonly outcome?: string;
  readonly reason?: string;
  readonly drain?: { readonly evicted: number };
}

describe.each([
  [
    "a budget that can never allow its eviction",
    { maxUnavailable: 0 },
    "its budget allows no disruption",
  ],
  [
    "an annotation",
    { annotations: { "karpenter.sh/do-not-disrupt": "true" } },
    'it has karpenter.sh/do-not-disrupt: "true"',
  ],
  [
    "an annotation, and whose machine others take",
    { annotations: { "karpenter.sh/do-not-disrupt": "true" }, release: "None" },
    'it has karpenter.sh/do-not-disrupt: "true"',
  ],
] as const)("a node with a pod that is kept by %s", (_, obstacle, why) => {
  it("is held with that reason, and no other pod is evicted, past its deadline as well", async () => {
    const { world, home, end } = await fleet(obstacle);
    await world.pass(hours(12));
    const { phase, reason, message } = statusOf(world, home);
    expect({ phase, reason }).toEqual({ phase: "Held", reason: "DrainImpossible" });
    expect(message).toContain("default/db-0");
    expect(message).toContain(why);
    expect(world.stepsOf(home)).toEqual([]);
    expect(evictedInVain(world)).toBe(0);
    const told = world.events.filter(({ reason }) => reason === "DrainImpossible");
    expect(new Set(told.map(({ about }) => about.name))).toEqual(new Set([home]));
    const status = world.get(`${policies}/spot`)?.status as { conditions?: Condition[] };
    const feasible = status.conditions?.find(({ type }) => type === "Feasible");
    expect(feasible).toMatchObject({ status: "False", reason: "DrainImpossible" });
    await end();
  });
});

interface Condition {
  readonly type: string;
}

it("nothing is said of the cloud if a pod is what keeps a node, or if pods are listed slowly", async () => {
  const { world, home, end } = await fleet({ maxUnavailable: 0 });
  await world.passUntil(() => statusOf(world, home).reason === "DrainImpossible", hours(4));
  const send = world.watched.send.bind(world.watched);
  world.watched.send = async (request: KubeRequest): Promise<KubeAnswer> => {
    const isOfNode = request.path === "/api/v1/pods" && request.query?.fieldSelector !== undefined;
    if (isOfNode) await world.clock.sleep(seconds(20));
    return send(request);
  };
  await world.pass(hours(1));
  const reasons = world.events.map(({ reason }) => reason);
  expect(reasons).not.toContain("CloudUnreachable");
  expect(world.logged.join("\n")).not.toContain("machines-not-releasable");
  await end();
});

it("a node that was drained in vain is not drained by a new leader that cannot list its pods", async () => {
  const { world, home, end } = await fleet({ maxUnavailable: 0 });
  const { metadata } = world.get(`/api/v1/nodes/${home}`) ?? {};
  world.create(departures, {
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "Departure",
    metadata: { name: "by-hand" },
    spec: { node: { name: home, uid: metadata?.uid }, cause: "Manual" },
  });
  const isOver = () => statusOf(world, home).outcome === "RolledBack";
  await world.passUntil(isOver, hours(1));
  await end();
  const send = world.watched.send.bind(world.watched);
  world.watched.send = async (request: KubeRequest): Promise<KubeAnswer> => {
    const isOfNode = request.path === "/api/v1/pods" && request.query?.fieldSelector !== undefined;
    const refused = { kind: "Status", code: 500, message: "etcdserver: request timed out" };
    return isOfNode ? { status: 500, body: refused } : send(request);
  };
  const over = new AbortController();
  const next = world.startController(over.signal);
  await world.pass(hours(5));
  const planned = world.list(departures).filter(({ spec }) => {
    const { node, cause } = spec as { readonly node: { name: string }; readonly cause: string };
    return node.name === home && cause === "Planned";
  });
  expect(planned.map(({ status }) => status)).toEqual([
    expect.objectContaining({
      ...{ phase: "Held", reason: "DrainImpossible" },
      message: expect.stringContaining("default/db-0 was left by the last drain"),
    }),
  ]);
  over.abort();
  await next;
});

it("a node leaves soon after the pod that kept it may be evicted", async () => {
  const { world, home, end } = await fleet({ maxUnavailable: 0 });
  await world.passUntil(() => statusOf(world, home).reason === "DrainImpossible", hours(4));
  const [uid] = world
    .list("/api/v1/nodes")
    .flatMap(({ metadata }) => (metadata?.name === home ? [metadata.uid] : []));
  world.patchBudget("db", { spec: { maxUnavailable: 1 } });
  const isSame = () => world.get(`/api/v1/nodes/${home}`)?.metadata?.uid === uid;
  await world.passUntil(() => !isSame(), minutes(30));
  expect(evictedInVain(world)).toBe(0);
  await end();
});
