import { describe, expect, it } from "vitest";
import type { KubeRequest } from "../../src/contracts/kube-api.ts";
import { minutes, seconds } from "../../src/core/time/time.ts";
import { departures, type ModelWorld, nodes } from "../support/model-world.ts";
import {
  capacityStory,
  close,
  depart,
  hasEnded,
  ledgerOf,
  open,
  ownPods,
  type Placeholder,
  placeholdersOf,
  type StoryOptions,
  stepsOf,
  told,
  workload,
} from "./capacity-story.ts";

const isEviction = ({ path }: KubeRequest) => path.endsWith("/eviction");

/** Two pods of two cores each on `n0`, and room for two more elsewhere. */
async function twoPodsOnFirst(world: ModelWorld): Promise<void> {
  close(world, ["n1", "n2"]);
  workload(world, "web", { replicas: 2, cpu: "2" });
  await world.pass(seconds(30));
  open(world, ["n1", "n2"]);
  expect(world.podsOn("n0")).toHaveLength(2);
}

describe("a departure with a replacement before the drain", () => {
  it("evicts no pod before a placeholder for each one runs on another node", async () => {
    const world = capacityStory();
    await twoPodsOnFirst(world);
    let atFirstEviction: readonly Placeholder[] | undefined;
    world.beforeWrite = (request) => {
      if (isEviction(request)) atFirstEviction ??= placeholdersOf(world);
    };
    depart(world, "n0");
    await told(world, hasEnded(world, "n0"));
    expect(atFirstEviction?.map(({ phase }) => phase)).toEqual(["Running", "Running"]);
    expect(atFirstEviction?.map(({ node }) => node)).not.toContain("n0");
    expect(ledgerOf(world, "n0").outcome).toBe("Planned");
  });

  it("deletes a pod's placeholder once its eviction is accepted, and leaves none", async () => {
    const world = capacityStory();
    await twoPodsOnFirst(world);
    const uidOf = new Map(world.podsOn("n0").map((pod) => [pod.metadata?.name, pod.metadata?.uid]));
    depart(world, "n0");
    await told(world, hasEnded(world, "n0"));
    for (const [name, uid] of uidOf) {
      const evicted = world.writes.indexOf(`POST /api/v1/namespaces/default/pods/${name}/eviction`);
      const given = world.writes.indexOf(`DELETE ${ownPods}/placeholder-${uid}`);
      expect(evicted).toBeGreaterThan(0);
      expect(given).toBeGreaterThan(evicted);
    }
    expect(placeholdersOf(world)).toEqual([]);
  });

  it("keeps the placeholder of a pod that its budget holds", async () => {
    const world = capacityStory();
    close(world, ["n1", "n2"]);
    workload(world, "web", { replicas: 2, cpu: "2", maxUnavailable: 0 });
    await world.pass(seconds(30));
    open(world, ["n1", "n2"]);
    depart(world, "n0");
    const refused = () => world.writes.filter((write) => write.endsWith("/eviction")).length > 4;
    await told(world, refused);
    expect(placeholdersOf(world).map(({ phase }) => phase)).toEqual(["Running", "Running"]);
  });

  it("runs the replacements on the capacity that was reserved for them", async () => {
    const world = capacityStory({ nodes: ["n0", "n1"] });
    close(world, ["n1"]);
    workload(world, "web", { replicas: 2, cpu: "2" });
    await world.pass(seconds(30));
    open(world, ["n1"]);
    depart(world, "n0");
    await told(world, hasEnded(world, "n0"));
    await world.pass(seconds(10));
    const phases = world.podsOn("n1").map((pod) => (pod.status as { phase: string }).phase);
    expect(phases).toEqual(["Running", "Running"]);
  });

  it("recreates a placeholder that was bound to the node before the scheduler saw the cordon", async () => {
    const world = capacityStory();
    close(world, ["n1", "n2"]);
    workload(world, "web", { replicas: 2, cpu: "1" });
    await world.pass(seconds(30));
    open(world, ["n1", "n2"]);
    const stale = firstPlaceholderOn(world, "n0");
    let atFirstEviction: readonly Placeholder[] | undefined;
    world.beforeWrite = (request) => {
      if (isEviction(request)) atFirstEviction ??= placeholdersOf(world);
    };
    depart(world, "n0");
    await told(world, hasEnded(world, "n0"));
    expect(stale()).toHaveLength(1);
    expect(atFirstEviction?.map(({ phase }) => phase)).toEqual(["Running", "Running"]);
    expect(atFirstEviction?.map(({ node }) => node)).not.toContain("n0");
  });

  it("creates no placeholder for a pod that nothing recreates", async () => {
    const world = capacityStory();
    world.create("/api/v1/namespaces/default/pods", {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "bare", namespace: "default" },
      spec: { nodeName: "n0", containers: [{ name: "c", image: "c:1" }] },
    });
    depart(world, "n0");
    await told(world, hasEnded(world, "n0"));
    expect(world.writes.filter((write) => write === `POST ${ownPods}`)).toEqual([]);
  });
});

/** Binds the first placeholder to the node, as a scheduler does that has not seen the cordon. */
function firstPlaceholderOn(world: ModelWorld, node: string): () => readonly string[] {
  const bound: string[] = [];
  const { api } = world;
  const send = api.send.bind(api);
  api.send = (request) => {
    if (request.method !== "POST" || request.path !== ownPods || bound.length > 0) {
      return send(request);
    }
    bound.push(node);
    const body = request.body as { readonly spec: object };
    return send({ ...request, body: { ...body, spec: { ...body.spec, nodeName: node } } });
  };
  return () => bound;
}

describe("capacity that is not available", () => {
  /** Both nodes are full, so no placeholder can be scheduled. */
  async function fullHouse(
    replacement: Readonly<Record<string, string>>,
    more: Omit<StoryOptions, "nodes"> = {},
  ): Promise<ModelWorld> {
    const world = capacityStory({ nodes: ["n0", "n1"], replacement, ...more });
    workload(world, "web", { replicas: 4, cpu: "2" });
    await world.pass(seconds(30));
    return world;
  }

  it("is awaited until the policy's timeout; then the drain starts, with an Event", async () => {
    const world = await fullHouse({ when: "BeforeDrain", timeout: "7m", onTimeout: "Proceed" });
    depart(world, "n0");
    await told(world, hasEnded(world, "n0"));
    expect(stepsOf(world, "n0").slice(0, 4)).toEqual([
      "0 Preparing",
      "0 NoCapacityElsewhere",
      "0 ReplacementWait",
      "420 Draining",
    ]);
    const event = world.events.find(({ reason }) => reason === "ReplacementTimeout");
    expect(event?.message).toContain("0 of 2 pods have room; default/web-");
    expect(placeholdersOf(world)).toEqual([]);
  });

  it("does not use up the drain timeout", async () => {
    const rule = { when: "BeforeDrain", timeout: "7m", onTimeout: "Proceed" };
    const world = await fullHouse(rule, { drain: { timeout: "5m", onTimeout: "RollBack" } });
    depart(world, "n0");
    await told(world, hasEnded(world, "n0"));
    expect(ledgerOf(world, "n0").outcome).toBe("Planned");
  });

  it.each<[string, (world: ModelWorld) => string]>([
    ["its node", () => `${nodes}/n0`],
    ["its Departure", (world) => `${departures}/${world.departureOf("n0")?.metadata?.name}`],
  ])("is no longer reserved when %s disappears", async (_, pathIn) => {
    const world = await fullHouse({ when: "BeforeDrain", timeout: "10m", onTimeout: "RollBack" });
    depart(world, "n0");
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    await world.passUntil(() => placeholdersOf(world).length === 2, minutes(1));
    world.api.handle({ method: "DELETE", path: pathIn(world) });
    await world.pass(seconds(5));
    expect(placeholdersOf(world)).toEqual([]);
    stop.abort();
    await running;
  });

  it("rolls the departure back if the policy says RollBack", async () => {
    const world = await fullHouse({ when: "BeforeDrain", timeout: "7m", onTimeout: "RollBack" });
    depart(world, "n0");
    await told(world, hasEnded(world, "n0"));
    expect(ledgerOf(world, "n0")).toMatchObject({ outcome: "RolledBack" });
    expect(world.marksOf("n0")).toEqual([]);
    expect(world.writes.filter((write) => write.endsWith("/eviction"))).toEqual([]);
    expect(placeholdersOf(world)).toEqual([]);
  });

  it("is reserved as soon as a new node provides it", async () => {
    const world = await fullHouse({ when: "BeforeDrain", timeout: "10m", onTimeout: "RollBack" });
    depart(world, "n0");
    const waits = () => placeholdersOf(world).length === 2;
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    await world.passUntil(waits, minutes(1));
    await world.pass(minutes(2));
    expect(ledgerOf(world, "n0").reason).toBe("ReplacementWait");
    world.addNode("n2", "a");
    await world.passUntil(hasEnded(world, "n0"), minutes(2));
    expect(ledgerOf(world, "n0").outcome).toBe("Planned");
    stop.abort();
    await running;
  });

  it("is no longer awaited when a notice arrives", async () => {
    const world = await fullHouse({ when: "BeforeDrain", timeout: "10m", onTimeout: "RollBack" });
    depart(world, "n0");
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    await world.passUntil(() => ledgerOf(world, "n0").reason === "ReplacementWait", minutes(1));
    const path = `${departures}/${world.departureOf("n0")?.metadata?.name}`;
    const now = world.clock.now();
    world.api.handle({
      method: "PATCH",
      path,
      patchType: "application/merge-patch+json",
      body: {
        spec: {
          noticedAt: new Date(now).toISOString(),
          deadlineAt: new Date(now + 120_000).toISOString(),
        },
      },
    });
    await world.pass(seconds(1));
    expect(ledgerOf(world, "n0").phase).toBe("Draining");
    await world.pass(seconds(10));
    expect(world.podsOn("n0")).toEqual([]);
    stop.abort();
    await running;
  });

  it("cannot be reserved without the PriorityClass, and the Event quotes the API server", async () => {
    const world = await fullHouse(
      { when: "BeforeDrain", timeout: "2m", onTimeout: "RollBack" },
      { withoutPriorityClass: true },
    );
    depart(world, "n0");
    await told(world, hasEnded(world, "n0"));
    expect(ledgerOf(world, "n0").outcome).toBe("RolledBack");
    const event = world.events.find(({ reason }) => reason === "ReplacementTimeout");
    expect(event?.message).toContain("no PriorityClass with name lastcall-placeholder was found");
  });

  it("is no longer reserved when a person cancels the departure", async () => {
    const world = await fullHouse({ when: "BeforeDrain", timeout: "10m", onTimeout: "RollBack" });
    depart(world, "n0");
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    await world.passUntil(() => placeholdersOf(world).length === 2, minutes(1));
    world.patchNode("n0", { spec: { unschedulable: false } });
    await world.passUntil(hasEnded(world, "n0"), minutes(1));
    expect(ledgerOf(world, "n0").outcome).toBe("Cancelled");
    expect(placeholdersOf(world)).toEqual([]);
    stop.abort();
    await running;
  });
});

describe("a controller that dies while capacity is being reserved", () => {
  const rule = { when: "BeforeDrain", timeout: "10m", onTimeout: "RollBack" };

  /** A controller waits for capacity for two minutes and dies. */
  async function orphaned(): Promise<ModelWorld> {
    const world = capacityStory({ nodes: ["n0", "n1"], replacement: rule });
    workload(world, "web", { replicas: 4, cpu: "2" });
    await world.pass(seconds(30));
    depart(world, "n0");
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    await world.passUntil(() => placeholdersOf(world).length === 2, minutes(1));
    await world.pass(minutes(2));
    stop.abort();
    await running;
    expect(placeholdersOf(world)).toHaveLength(2);
    return world;
  }

  it("is succeeded by one that continues with the same placeholders and the same timeout", async () => {
    const world = await orphaned();
    const before = placeholdersOf(world).map(({ name }) => name);
    await world.pass(minutes(1));
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    await world.pass(seconds(10));
    expect(placeholdersOf(world).map(({ name }) => name)).toEqual(before);
    await world.passUntil(hasEnded(world, "n0"), minutes(20));
    const waited = stepsOf(world, "n0").find((step) => step.endsWith("RollingBack"));
    expect(waited).toBe("600 RollingBack");
    expect(placeholdersOf(world)).toEqual([]);
    stop.abort();
    await running;
  });

  it("is succeeded by one that deletes the placeholders of a deleted Departure", async () => {
    const world = await orphaned();
    const name = world.departureOf("n0")?.metadata?.name;
    world.api.handle({ method: "DELETE", path: `${departures}/${name}` });
    await told(world, () => placeholdersOf(world).length === 0, minutes(1));
    expect(world.marksOf("n0")).toEqual([]);
    expect(world.get(`${nodes}/n0`)).toBeDefined();
  });
});
