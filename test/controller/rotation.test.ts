import { describe, expect, it } from "vitest";
import type { KubeObject } from "../../src/contracts/kube-api.ts";
import { hours, minutes, seconds } from "../../src/core/time/time.ts";
import {
  departures,
  ModelWorld,
  nodes,
  policies,
  spotPolicy,
  webWorkload,
} from "../support/model-world.ts";

/** Runs the controller for four hours; each of the first nodes has left by then. */
async function rotated(world: ModelWorld): Promise<readonly KubeObject[]> {
  const stop = new AbortController();
  const running = world.startController(stop.signal);
  await world.pass(hours(4));
  stop.abort();
  await running;
  return world.list(departures).filter(({ status }) => isEnded(status));
}

function isEnded(status: unknown): boolean {
  return (status as { phase: string } | undefined)?.phase === "Ended";
}

function fleet(names: readonly string[] = ["n0", "n1", "n2", "n3"]): ModelWorld {
  const world = new ModelWorld();
  for (const [index, name] of names.entries()) world.addNode(name, "abc"[index % 3] as string);
  webWorkload(world, { replicas: 6, maxUnavailable: 2 });
  spotPolicy(world, { lifetime: { max: "4h", reserve: "30m" } });
  return world;
}

describe("a fleet under a policy", () => {
  it("leaves node by node at the planned times, drained and released", async () => {
    const world = fleet();
    const ended = await rotated(world);
    expect(ended.map((one) => (one.status as { outcome: string }).outcome)).toEqual(
      Array.from({ length: 4 }, () => "Planned"),
    );
    const started = ended.map((one) => (one.status as { startedAt: string }).startedAt).toSorted();
    expect(started).toEqual([
      "2026-11-20T02:45:00.000Z",
      "2026-11-20T03:00:00.000Z",
      "2026-11-20T03:15:00.000Z",
      "2026-11-20T03:30:00.000Z",
    ]);
    expect(world.released).toHaveLength(4);
  });

  it("leaves node by node at once if a shorter lifetime makes it overdue", async () => {
    const world = fleet();
    world.patchPolicy({ spec: { lifetime: { max: "24h" } } });
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    await world.pass(hours(13));
    world.patchPolicy({ spec: { lifetime: { max: "12h" } } });
    await world.pass(hours(1));
    stop.abort();
    await running;
    const ended = world.list(departures).filter(({ status }) => isEnded(status));
    const started = ended.map((one) => (one.status as { startedAt: string }).startedAt).toSorted();
    expect(started.map((one) => one.slice(11, 16))).toEqual(["13:00", "13:15", "13:30", "13:45"]);
  });

  it("keeps a departure for 72 hours after its end", async () => {
    const world = fleet(["n0"]);
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    const first = () => world.list(departures).some((one) => one.metadata?.uid === firstUid);
    await world.pass(hours(4));
    const [ended] = world.list(departures).filter(({ status }) => isEnded(status));
    const firstUid = ended?.metadata?.uid;
    world.patchPolicy({ spec: { paused: true } });
    // It ended within a quarter of an hour after 03:30.
    await world.pass(hours(71));
    expect(first()).toBe(true);
    await world.pass(hours(1));
    expect(first()).toBe(false);
    stop.abort();
    await running;
  });

  it("cordons each node before it evicts, and releases its machine before it removes the Node", async () => {
    const world = fleet();
    await rotated(world);
    for (const name of ["n0", "n1", "n2", "n3"]) {
      const steps = world.stepsOf(name);
      expect(steps.indexOf("cordon")).toBeGreaterThanOrEqual(0);
      expect(steps.indexOf("cordon")).toBeLessThan(steps.indexOf("evict"));
      expect(steps.lastIndexOf("evict")).toBeLessThan(steps.indexOf("release"));
      expect(steps.indexOf("release")).toBeLessThan(steps.indexOf("remove"));
    }
  });

  it("reports in Events when each departure is scheduled, starts and ends", async () => {
    const world = fleet();
    const uid = world.get(`${nodes}/n0`)?.metadata?.uid;
    await rotated(world);
    const departure = world.events.find(
      ({ about }) => about.kind === "Departure" && about.name.startsWith("n0-"),
    );
    // The Departure tells the same story as the node, and outlasts it.
    for (const about of [uid, departure?.about.uid]) {
      const said = world.events.filter((event) => event.about.uid === about);
      const reasons = said.map(({ reason }) => reason);
      expect(reasons).toEqual(["DepartureScheduled", "DepartureStarted", "DepartureEnded"]);
    }
  });
});

describe("a person", () => {
  const names = ["n0", "n1", "n2"];
  const draining = (world: ModelWorld) =>
    names.find((name) => world.statusOf(name).phase === "Draining");

  /** Runs a departure until its drain, acts on its node, and waits five seconds. */
  async function afterActing(
    act: (world: ModelWorld, node: string) => void,
  ): Promise<{ world: ModelWorld; node: string }> {
    const world = new ModelWorld();
    for (const name of names) world.addNode(name, "a");
    webWorkload(world, { replicas: 3, maxUnavailable: 1, exitAfterSeconds: 120 });
    spotPolicy(world, { lifetime: { max: "1h", reserve: "30m" }, drain: { timeout: "20m" } });
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    await world.passUntil(() => draining(world) !== undefined, minutes(60));
    const node = draining(world) ?? "";
    act(world, node);
    await world.pass(seconds(5));
    stop.abort();
    await running;
    return { world, node };
  }

  it("cancels a departure by uncordoning the node", async () => {
    const { world, node } = await afterActing((it, name) =>
      it.patchNode(name, { spec: { unschedulable: null } }),
    );
    expect(world.statusOf(node).outcome).toBe("Cancelled");
    expect(world.marksOf(node)).toEqual([]);
  });

  it("cancels a departure by putting a hold on the node", async () => {
    const { world, node } = await afterActing((it, name) =>
      it.patchNode(name, { metadata: { annotations: { "lastcall.dev/hold": "true" } } }),
    );
    expect(world.statusOf(node).outcome).toBe("Cancelled");
    expect(world.marksOf(node)).toEqual([]);
  });

  const uncordon = (world: ModelWorld, node: string) =>
    world.patchNode(node, { spec: { unschedulable: null } });
  const hold = (world: ModelWorld, node: string) =>
    world.patchNode(node, { metadata: { annotations: { "lastcall.dev/hold": "true" } } });

  it.each([
    { way: "uncordoning the node", phase: "Preparing", act: uncordon },
    { way: "uncordoning the node", phase: "Draining", act: uncordon },
    { way: "putting a hold on the node", phase: "Preparing", act: hold },
    { way: "putting a hold on the node", phase: "Draining", act: hold },
  ])("cancels a departure by $way while no controller runs, in $phase", async ({ phase, act }) => {
    const world = new ModelWorld();
    for (const name of names) world.addNode(name, "a");
    webWorkload(world, { replicas: 6, maxUnavailable: 0 });
    await world.pass(seconds(30));
    spotPolicy(world, {
      lifetime: { max: "1h", reserve: "30m" },
      // While the capacity is not there, the departure remains in Preparing.
      replacement: { when: phase === "Preparing" ? "BeforeDrain" : "None", timeout: "55m" },
      // With RollBack, it would not start, as the budget can never allow an eviction.
      drain: { timeout: "20m", onTimeout: "Wait" },
    });
    const first = new AbortController();
    const running = world.startController(first.signal);
    const leaving = () =>
      names.find((name) => world.statusOf(name).phase === phase && world.marksOf(name).length > 0);
    await world.passUntil(() => leaving() !== undefined, minutes(60));
    const node = leaving() ?? "";
    first.abort();
    await running;
    act(world, node);
    world.patchBudget("web", { spec: { maxUnavailable: 6 } });
    await world.pass(seconds(5));
    const uids = () => world.podsOn(node).map(({ metadata }) => metadata?.uid);
    const before = uids();
    const second = new AbortController();
    const resumed = world.startController(second.signal);
    const outcome = () => world.statusOf(node).outcome;
    await world.passUntil(() => outcome() !== undefined, minutes(2));
    expect(outcome()).toBe("Cancelled");
    // An evicted pod is gone by then.
    await world.pass(seconds(10));
    second.abort();
    await resumed;
    expect(world.marksOf(node)).toEqual([]);
    expect(before).not.toEqual([]);
    expect(uids()).toEqual(before);
  });

  it("cancels departures by pausing the policy and deleting them", async () => {
    const { world, node } = await afterActing((it, name) => {
      it.patchPolicy({ spec: { paused: true } });
      const departure = it.departureOf(name)?.metadata?.name;
      it.api.handle({ method: "DELETE", path: `${departures}/${departure}` });
    });
    expect(world.marksOf(node)).toEqual([]);
  });
});

describe("a policy that is deleted", () => {
  it("has its running departure completed, and the others cancelled", async () => {
    const world = fleet();
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    const phases = () =>
      ["n0", "n1", "n2", "n3"].map((name) => world.statusOf(name).phase).toSorted();
    await world.passUntil(() => phases().includes("Draining"), hours(3));
    expect(phases()).toEqual(["Draining", "Scheduled", "Scheduled", "Scheduled"]);
    world.api.handle({ method: "DELETE", path: `${policies}/spot` });
    await world.pass(minutes(30));
    stop.abort();
    await running;
    const ended = world.list(departures).map((one) => one.status as { outcome?: string });
    expect(ended.map(({ outcome }) => outcome).toSorted()).toEqual([
      "Cancelled",
      "Cancelled",
      "Cancelled",
      "Planned",
    ]);
    expect(world.released).toHaveLength(1);
  });
});

describe("the status of a policy", () => {
  it("says how many nodes match, how far apart they leave, and when the next one does", async () => {
    const world = fleet();
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    await world.pass(minutes(5));
    stop.abort();
    await running;
    expect(world.get(`${policies}/spot`)?.status).toMatchObject({
      matchedNodes: 4,
      departures: { scheduled: 4, underWay: 0, done24h: 0 },
      // Four nodes with one launch time and 3 h 30 min to leave in: at best three gaps of 70
      // minutes.
      spacing: { wantedSeconds: 900, reachedSeconds: 900, bestSeconds: expect.closeTo(4200, -1) },
      forecast: { feasible: true, late: [], widenBySeconds: 0 },
      nextDepartureAt: "2026-11-20T02:45:00.000Z",
      conditions: [
        { type: "Ready", status: "True" },
        { type: "Feasible", status: "True" },
      ],
    });
  });
});

describe("a quiet fleet", () => {
  it("causes no writes between two departures", async () => {
    const world = fleet();
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    await world.pass(minutes(5));
    const before = world.writes.length;
    await world.pass(hours(2));
    expect(world.writes.slice(before)).toEqual([]);
    stop.abort();
    await running;
  });
});

describe("a notice", () => {
  async function noticed(
    onNotice: Readonly<Record<string, string>>,
    then: (world: ModelWorld) => Promise<void>,
  ): Promise<ModelWorld> {
    const world = new ModelWorld();
    for (const name of ["n0", "n1", "n2"]) world.addNode(name, "a");
    webWorkload(world, { replicas: 6, maxUnavailable: 2 });
    spotPolicy(world, { lifetime: { max: "24h" }, onNotice });
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    await world.pass(minutes(10));
    world.notice("n1", seconds(120));
    await then(world);
    stop.abort();
    await running;
    return world;
  }

  it("starts at once, marks the node and drains it before the deadline", async () => {
    const world = await noticed({}, async (it) => {
      await it.pass(seconds(1));
      expect(it.marksOf("n1")).toContain("unschedulable");
      await it.pass(seconds(60));
      expect(it.podsOn("n1")).toEqual([]);
      it.api.handle({ method: "DELETE", path: `${nodes}/n1` });
      await it.pass(seconds(10));
    });
    expect(world.statusOf("n1").outcome).toBe("Preempted");
  });

  it("that never comes true ends with the node uncordoned", async () => {
    const world = await noticed({}, (it) => it.pass(minutes(15)));
    expect(world.statusOf("n1").outcome).toBe("Cancelled");
    expect(world.marksOf("n1")).toEqual([]);
  });

  it.each([
    ["Ignore", []],
    [
      "Notify",
      [
        "Warning Node n1: The cloud has given notice (SpotInterruption): n1 stays, because policy spot ignores such notices.",
      ],
    ],
  ])("is ignored if the policy says %s, with the matching Events", async (reaction, wanted) => {
    const world = await noticed({ spotInterruption: reaction }, (it) => it.pass(seconds(5)));
    expect(world.statusOf("n1").outcome).toBe("Cancelled");
    expect(world.stepsOf("n1")).toEqual([]);
    const told = world.events.filter(({ reason }) => reason === "NoticeReceived");
    expect(
      told.map(({ type, about, message }) => `${type} ${about.kind} ${about.name}: ${message}`),
    ).toEqual(wanted);
  });

  it("cordons and evicts no pods if the policy says Cordon", async () => {
    const world = await noticed({ spotInterruption: "Cordon" }, (it) => it.pass(seconds(30)));
    expect(world.stepsOf("n1")).toEqual(["cordon"]);
    expect(world.statusOf("n1").phase).toBe("Draining");
  });
});

describe("a dry run", () => {
  it("writes nothing, and logs what it would do", async () => {
    const world = fleet();
    await world.pass(seconds(30));
    const stop = new AbortController();
    const running = world.startController(stop.signal, { dryRun: true });
    await world.pass(hours(2));
    stop.abort();
    await running;
    expect(world.writes).toEqual([]);
    expect(world.logged.filter((line) => line.includes("would-schedule"))).toHaveLength(4);
  });
});
