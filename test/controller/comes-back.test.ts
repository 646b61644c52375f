import { describe, expect, it } from "vitest";
import type { KubeObject } from "../../src/contracts/kube-api.ts";
import { formatInstant, minutes, plus, seconds } from "../../src/core/time/time.ts";
import { ModelWorld, nodes, spotPolicy, webWorkload } from "../support/model-world.ts";
import { ledgerOf } from "./capacity-story.ts";

const left = { namespace: "default", name: "sticky-2", outcome: "LeftBehind" };
const isOfSticky = ({ metadata }: KubeObject) => metadata?.labels?.app === "sticky";

const byReplicaSet = [{ kind: "ReplicaSet", name: "sticky", uid: "rs-1", controller: true }];

/** A pod on n1 whose tolerations allow it on a cordoned node. */
function makePod(world: ModelWorld, name: string, ownerReferences: readonly object[]): void {
  world.create("/api/v1/namespaces/default/pods", {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      ...{ name, namespace: "default", labels: { app: "sticky" } },
      ownerReferences,
    },
    spec: {
      ...{ nodeName: "n1", terminationGracePeriodSeconds: 10 },
      tolerations: [{ operator: "Exists" }],
      containers: [{ name: "sticky", image: "sticky:1" }],
    },
  });
}

/**
 * n1 leaves, with a pod that its controller recreates there as soon as it is deleted.
 * `takenOverAfter` seconds after the second pod was created, another controller takes over.
 */
async function departure(
  spec: object,
  {
    exitAfterSeconds = 3,
    takenOverAfter = Number.POSITIVE_INFINITY,
    owners = byReplicaSet as readonly object[],
  } = {},
): Promise<{ made: number; world: ModelWorld }> {
  const world = new ModelWorld();
  for (const name of ["n0", "n1", "n2"]) world.addNode(name, name);
  webWorkload(world, { replicas: 6, maxUnavailable: 6, exitAfterSeconds });
  spotPolicy(world, { drain: { timeout: "5m" } });
  await world.pass(seconds(5));
  let made = 0;
  let backFor = 0;
  const putBack = () => {
    const alive = world.podsOn("n1").filter(isOfSticky);
    if (alive.some(({ metadata }) => metadata?.deletionTimestamp === undefined)) return;
    made += 1;
    makePod(world, `sticky-${made}`, owners);
  };
  putBack();
  let stop = new AbortController();
  let running = world.startController(stop.signal);
  const uid = world.get(`${nodes}/n1`)?.metadata?.uid ?? "";
  world.create("/apis/lastcall.dev/v1alpha1/departures", {
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "Departure",
    metadata: { name: "n1-leaves" },
    spec: { node: { name: "n1", uid }, ...spec },
  });
  for (let turns = 0; turns < 300 && !isDrained(world); turns += 1) {
    await world.pass(seconds(0.2));
    if (!isDrained(world)) putBack();
    if (made === 2) backFor += 0.2;
    if (backFor < takenOverAfter) continue;
    backFor = Number.NEGATIVE_INFINITY;
    stop.abort();
    await running;
    stop = new AbortController();
    running = world.startController(stop.signal);
  }
  stop.abort();
  await running;
  return { made, world };
}

function isDrained(world: ModelWorld): boolean {
  return ["Releasing", "Ended"].includes(world.statusOf("n1").phase ?? "");
}

describe("a pod that its controller recreates on the node it was evicted from", () => {
  it("is evicted once in a planned drain, which completes and names it", async () => {
    const { made, world } = await departure({ cause: "Manual", source: "person" });
    expect(made).toBe(2);
    expect(world.statusOf("n1")).toMatchObject({
      outcome: "Planned",
      drain: { total: 3, left: 0, evicted: 3, leftBehind: 1, notClean: [left] },
    });
    const results = ledgerOf(world, "n1").timeline?.map(({ result }) => result) ?? [];
    expect(results.find((result) => result.startsWith("Drained"))).toContain(
      "1 left behind (default/sticky-2)",
    );
    const told = world.events.filter(({ reason }) => reason === "PodLeftBehind");
    expect(told[0]?.message).toContain("default/sticky-2 was left behind on the node");
    const steps = ["cordon", "evict", "evict", "evict", "release", "remove"];
    expect(world.stepsOf("n1")).toEqual(steps);
  });

  it.each([
    ["nobody owns", []],
    ["its owner does not control", [{ kind: "Run", name: "r", uid: "r-1", controller: false }]],
  ])("is evicted once, too, if %s it", async (_, owners) => {
    const { made, world } = await departure({ cause: "Manual", source: "person" }, { owners });
    expect(made).toBe(2);
    expect(world.statusOf("n1")).toMatchObject({
      outcome: "Planned",
      drain: { left: 0, leftBehind: 1, notClean: [left] },
    });
  });

  it("is not evicted again by the next leader", async () => {
    const told = { cause: "Manual", source: "person" };
    const { made, world } = await departure(told, { exitAfterSeconds: 40, takenOverAfter: 3 });
    expect(made).toBe(2);
    expect(world.statusOf("n1")).toMatchObject({
      drain: { total: 3, left: 0, evicted: 3, notClean: [left] },
    });
  });

  it("is evicted once at a notice, too", async () => {
    const at = new ModelWorld().clock.now();
    const noticedAt = formatInstant(plus(at, seconds(5)));
    const deadlineAt = formatInstant(plus(at, minutes(2)));
    const told = { cause: "SpotInterruption", source: "agent/aws/a", noticedAt, deadlineAt };
    const { made, world } = await departure(told);
    expect(made).toBe(2);
    expect(world.statusOf("n1")).toMatchObject({
      phase: "Releasing",
      drain: { total: 3, left: 0, evicted: 3, notClean: [left] },
    });
  });
});

describe("a pod that tolerates everything, on the only node that it selects", () => {
  it("is brought back by the scheduler in spite of the cordon, and named", async () => {
    const world = new ModelWorld();
    for (const name of ["n0", "n1"]) world.addNode(name, name);
    world.create("/apis/apps/v1/namespaces/default/deployments", {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "sticky", namespace: "default" },
      spec: {
        replicas: 1,
        selector: { matchLabels: { app: "sticky" } },
        template: {
          metadata: { labels: { app: "sticky" } },
          spec: {
            terminationGracePeriodSeconds: 10,
            tolerations: [{ operator: "Exists" }],
            nodeSelector: { "topology.kubernetes.io/zone": "n1" },
            containers: [{ name: "sticky", image: "sticky:1" }],
          },
        },
      },
    });
    spotPolicy(world, { drain: { timeout: "5m" } });
    await world.pass(seconds(10));
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    const uid = world.get(`${nodes}/n1`)?.metadata?.uid ?? "";
    world.create("/apis/lastcall.dev/v1alpha1/departures", {
      apiVersion: "lastcall.dev/v1alpha1",
      kind: "Departure",
      metadata: { name: "n1-leaves" },
      spec: { node: { name: "n1", uid }, cause: "Manual", source: "person" },
    });
    await world.pass(minutes(2));
    stop.abort();
    await running;
    const { phase, outcome, drain } = ledgerOf(world, "n1");
    expect({ phase, outcome }).toEqual({ phase: "Ended", outcome: "Planned" });
    expect(drain).toMatchObject({ total: 1, evicted: 1, left: 0, leftBehind: 1 });
    expect(world.stepsOf("n1").filter((step) => step === "evict")).toHaveLength(1);
  });
});
