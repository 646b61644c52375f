import { describe, expect, it } from "vitest";
import {
  formatInstant,
  hours,
  instant,
  type Millis,
  minutes,
  seconds,
} from "../../src/core/time/time.ts";
import {
  departures,
  ModelWorld,
  nodes,
  policies,
  spotPolicy,
  webWorkload,
} from "../support/model-world.ts";
import { depart } from "./capacity-story.ts";

const names = Array.from({ length: 12 }, (_, place) => `n${String(place).padStart(2, "0")}`);
const lifetime = { max: "6h", reserve: "30m" };
const spacing = { mode: "Late", min: "15m" };

interface Story {
  readonly world: ModelWorld;
  readonly end: () => Promise<void>;
}

/** Twelve nodes in three zones; the first departure is due after nearly three hours. */
async function start(spec: object, bornAfterMs: Millis): Promise<Story> {
  const world = new ModelWorld();
  for (const [place, name] of names.entries()) world.addNode(name, "abc"[place % 3] ?? "a");
  webWorkload(world, { replicas: 24, maxUnavailable: 24 });
  spotPolicy(world, { lifetime, spacing, ...spec });
  world.bornAfterMs = bornAfterMs;
  const stop = new AbortController();
  const running = world.startController(stop.signal);
  const end = async () => {
    stop.abort();
    await running;
  };
  return { world, end };
}

function setReady(world: ModelWorld, name: string, status: "True" | "Unknown"): void {
  const path = `${nodes}/${name}/status`;
  const patchType = "application/strategic-merge-patch+json";
  const body = { status: { conditions: [{ type: "Ready", status, message: "" }] } };
  expect(world.api.handle({ method: "PATCH", path, patchType, body }).status).toBe(200);
}

function usable(world: ModelWorld): number {
  return world
    .list(nodes)
    .filter(({ spec }) => (spec as { unschedulable?: true }).unschedulable !== true).length;
}

/** Lets time pass, and returns the fewest usable nodes at the end of any step. */
async function fewestUsable(world: ModelWorld, span: Millis, step: Millis): Promise<number> {
  let fewest = Number.POSITIVE_INFINITY;
  for (let passed = 0; passed < span; passed += step) {
    await world.pass(step);
    fewest = Math.min(fewest, usable(world));
  }
  return fewest;
}

function startsOf(world: ModelWorld): readonly number[] {
  return world
    .list(departures)
    .flatMap(({ status }) => (status as { startedAt?: string }).startedAt ?? [])
    .map((text) => Date.parse(text))
    .sort((a, b) => a - b);
}

function conditionOf(world: ModelWorld): unknown {
  const status = world.get(`${policies}/spot`)?.status as { conditions: { type: string }[] };
  return status.conditions.find(({ type }) => type === "Feasible");
}

const eventsOf = ({ events }: ModelWorld, reason: string) =>
  events.filter((event) => event.reason === reason);

describe("a fleet whose kubelets fall silent for hours, while its pods run on", () => {
  it.each([
    ["no budget", []],
    ["a budget of one node", [{ nodes: 1 }]],
  ])("loses no machine, and is rotated one by one after that: %s", async (_, budgets) => {
    const { world, end } = await start({ budgets }, seconds(30));
    await world.pass(minutes(150));
    for (const name of names) setReady(world, name, "Unknown");
    // Past the lifetime of every node.
    await world.pass(hours(4));
    expect(world.released).toEqual([]);
    expect(usable(world)).toBe(12);
    expect(eventsOf(world, "FleetUnhealthy")).toMatchObject([
      {
        ...{ type: "Warning", about: { kind: "DeparturePolicy", name: "spot" } },
        message:
          "No voluntary departure of the policy starts: 12 of 12 nodes of the policy spot are not Ready. Notices are still handled.",
      },
    ]);
    expect(world.gauges.get("lastcall_fleet_unhealthy")).toEqual([
      { labels: { policy: "spot" }, value: 1 },
    ]);
    expect(conditionOf(world)).toMatchObject({ status: "False", reason: "FleetUnhealthy" });

    for (const name of names) setReady(world, name, "True");
    await world.pass(hours(2));
    expect(eventsOf(world, "FleetHealthy")).toHaveLength(1);
    const starts = startsOf(world);
    expect(starts.length).toBeGreaterThan(5);
    const gaps = starts.slice(1).map((at, place) => at - (starts[place] ?? 0));
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(minutes(15) - seconds(1));
    await end();
  });

  it("still acts on a notice, and holds a person's request until the deadline they set", async () => {
    const { world, end } = await start({ lifetime: {} }, seconds(30));
    await world.pass(minutes(1));
    for (const name of names.slice(2)) setReady(world, name, "Unknown");
    await world.pass(seconds(10));
    depart(world, "n01");
    await world.pass(minutes(1));
    expect(world.marksOf("n01")).toEqual([]);
    expect(world.statusOf("n01")).toMatchObject({ phase: "Held", reason: "FleetUnhealthy" });
    world.notice("n00", minutes(2));
    await world.pass(seconds(5));
    expect(world.marksOf("n00")).toContain("unschedulable");

    const path = `${departures}/${world.departureOf("n01")?.metadata?.name}`;
    const body = { spec: { deadlineAt: formatInstant(instant(world.clock.now() + minutes(5))) } };
    const patchType = "application/merge-patch+json";
    world.api.handle({ method: "PATCH", path, patchType, body });
    await world.pass(minutes(7));
    expect(world.departureOf("n01")?.status).toHaveProperty("startedAt");
    await end();
  });
});

describe("a group that cannot replace its machines", () => {
  it.each([
    ["a budget of one node", [{ nodes: 1 }]],
    ["no budget", []],
  ])("loses one, for as long as machines are expected back: %s", async (_, budgets) => {
    const { world, end } = await start({ budgets }, hours(12));
    // Past the lifetimes of all nodes.
    expect(await fewestUsable(world, hours(8), minutes(10))).toBe(11);
    expect(eventsOf(world, "FleetUnhealthy")).toMatchObject([
      { message: expect.stringContaining("nothing has replaced n") },
    ]);
    expect(world.gauges.get("lastcall_nodes_missing")).toEqual([
      { labels: { policy: "spot" }, value: 1 },
    ]);
    await end();
  });

  it("counts as smaller after replacement.expectFor, which is said", async () => {
    const spec = { budgets: [{ nodes: 1 }], replacement: { expectFor: "2h" } };
    const { world, end } = await start(spec, hours(100));
    await world.pass(minutes(160));
    await world.passUntil(() => world.released.length === 1, hours(1));
    await world.pass(minutes(119));
    expect(world.list(nodes)).toHaveLength(11);
    await world.pass(minutes(20));
    expect(world.list(nodes)).toHaveLength(10);
    expect(eventsOf(world, "FleetShrunk")).toMatchObject([
      { message: expect.stringMatching(/^Nothing has replaced n\d\d: from now on .* 11 nodes\.$/) },
    ]);
    await end();
  });

  it("does not stop a policy whose machines leave with their place in the group", async () => {
    const { world, end } = await start({ instance: { release: "Delete" } }, hours(100));
    await world.pass(hours(6));
    expect(eventsOf(world, "FleetUnhealthy")).toEqual([]);
    expect(world.list(nodes)).toEqual([]);
    await end();
  });
});

describe("machines that take minutes to come back", () => {
  it("leave one after another by request, with a budget of one node", async () => {
    const { world, end } = await start({ lifetime: {}, budgets: [{ nodes: 1 }] }, minutes(3));
    await world.pass(minutes(1));
    for (const name of names.slice(0, 6)) depart(world, name);
    expect(await fewestUsable(world, minutes(40), seconds(1))).toBe(11);
    expect(world.released).toHaveLength(6);
    await end();
  });
});

describe("a node that no longer belongs to its policy in mid-departure", () => {
  const select = (values: readonly string[]) => ({
    nodeSelectorTerms: [{ matchExpressions: [{ key: "pool", operator: "In", values }] }],
  });

  it.each([
    [
      "it is relabelled",
      (world: ModelWorld, name: string) => {
        world.patchNode(name, { metadata: { labels: { pool: "quarantine" } } });
      },
    ],
    [
      "the policy selects fewer nodes",
      (world: ModelWorld, name: string) => {
        const others = names.slice(0, 6).filter((one) => one !== name);
        world.patchPolicy({ spec: { nodeSelector: select(others) } });
      },
    ],
  ] as const)("counts in its budgets until its departure ends: %s", async (_, change) => {
    const world = new ModelWorld();
    for (const name of names.slice(0, 6)) world.addNode(name, "a", { pool: name });
    webWorkload(world, { replicas: 12, maxUnavailable: 12, exitAfterSeconds: 300 });
    spotPolicy(world, {
      ...{ nodeSelector: select(names.slice(0, 6)), lifetime: { max: "3h", reserve: "10m" } },
      ...{ spacing: { mode: "Late", min: "1m" }, budgets: [{ nodes: 1 }] },
      drain: { timeout: "10m", onTimeout: "Wait" },
    });
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    const out = () =>
      names.filter((name) => world.marksOf(name).includes("lastcall.dev/departure"));
    await world.passUntil(() => out().length === 1, hours(4));
    change(world, out()[0] ?? "");
    let most = 0;
    for (let passed = 0; passed < 600; passed += 1) {
      await world.pass(seconds(1));
      most = Math.max(most, out().length);
    }
    expect(most).toBe(1);
    // The next one has followed.
    expect(startsOf(world).length).toBeGreaterThan(1);
    stop.abort();
    await running;
  });
});
