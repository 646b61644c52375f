import { describe, expect, it } from "vitest";
import type { Fleet, FleetChange } from "../../src/contracts/cluster.ts";
import type { Telemetry } from "../../src/contracts/telemetry.ts";
import type { ActiveDepartures } from "../../src/controller/departure/active-departures.ts";
import type { DepartureWriter } from "../../src/controller/departure-writer.ts";
import { followInterruptions } from "../../src/controller/notice/interruptions.ts";
import { NoticeReconciler } from "../../src/controller/notice/notice-reconciler.ts";
import type { Departure } from "../../src/core/departure/departure.ts";
import { instant, plus, seconds } from "../../src/core/time/time.ts";
import { eventLoopTurn } from "../../src/runtime/real-clock.ts";
import { VirtualClock } from "../../src/sim/time/virtual-clock.ts";
import { aDeparture, aNode } from "../core/fleet-builder.ts";
import { departures, ModelWorld, nodes, policies, spotPolicy } from "../support/model-world.ts";

/** A fleet of one node and its departures, which counts how often the whole view is built. */
function follow(known: readonly Departure[] = []) {
  const node = aNode("n0");
  const listeners = new Set<(change: FleetChange) => void>();
  const seen = { views: 0, opened: [] as string[] };
  const fleet: Pick<Fleet, "view" | "node" | "departure" | "policies" | "onChange"> = {
    view: () => {
      seen.views += 1;
      return { nodes: [node], departures: known, policies: [], badPolicies: [] };
    },
    node: () => node,
    departure: (uid) => known.find((one) => one.uid === uid),
    policies: () => [],
    onChange: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
  const activeDepartures = {
    onRecheck: () => () => {},
    observe: () => {},
    observeChanged: () => {},
    has: () => false,
    open: ({ name }: Departure) => seen.opened.push(name),
  } as unknown as ActiveDepartures;
  const clock = new VirtualClock({ startAt: instant(0), settle: eventLoopTurn });
  const whole = fleet as Fleet;
  const act = { writer: {} as DepartureWriter, telemetry: {} as Telemetry };
  const noticeReconciler = new NoticeReconciler({ fleet: whole, ...act, clock });
  const tools = {
    fleet: whole,
    activeDepartures,
    ...act,
    noticeReconciler,
    clock,
  };
  const stop = followInterruptions(tools, new AbortController().signal);
  const change = (part: Partial<FleetChange>): void => {
    const none = { nodes: new Set<string>(), departures: new Set<string>(), policies: false };
    for (const listener of listeners) listener({ ...none, ...part });
  };
  const pass = (span: number) => clock.runUntil(plus(clock.now(), seconds(span)));
  return { seen, change, pass, stop };
}

describe("following interruptions in a large fleet that changes all the time", () => {
  it("builds no view for a change of an unmarked node, and at most one a second", async () => {
    const { seen, change, pass, stop } = follow();
    const first = seen.views;
    for (let count = 0; count < 10; count += 1) change({ nodes: new Set(["n0"]) });
    expect(seen.views).toBe(first);
    await pass(1.1);
    const looked = seen.views;
    expect(looked).toBeGreaterThan(first);
    await pass(20);
    expect(seen.views).toBe(looked);
    stop();
  });

  it("starts a departure at its notice in the same turn of the event loop", () => {
    const noticed = aDeparture(aNode("n0"), {
      ...{ cause: "SpotInterruption", noticedAt: instant(0), deadlineAt: instant(120_000) },
    });
    const known: Departure[] = [];
    const { seen, change, stop } = follow(known);
    known.push(noticed);
    change({ departures: new Set([noticed.uid]) });
    expect(seen.opened).toEqual([noticed.name]);
    stop();
  });

  it("builds a view without a change, too, and retries what has failed", async () => {
    const { seen, pass, stop } = follow();
    const first = seen.views;
    await pass(61);
    expect(seen.views).toBeGreaterThanOrEqual(first + 2);
    stop();
  });
});

describe("a node whose departure could not be created at first", () => {
  it("is cordoned a second or two later, although nothing else changes", async () => {
    const world = new ModelWorld();
    world.addNode("n0", "a");
    spotPolicy(world, { lifetime: {} });
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    await world.pass(seconds(60));
    const { send } = world.api;
    let refused = 0;
    world.api.send = (request) => {
      if (request.method !== "POST" || request.path !== departures || refused > 0) {
        return send.call(world.api, request);
      }
      refused += 1;
      const body = { kind: "Status", message: "etcdserver: request timed out" };
      return Promise.resolve({ status: 500, body });
    };
    const condition = { type: "Ready", status: "False", message: "node is shutting down" };
    world.api.handle({
      ...{
        method: "PATCH",
        path: `${nodes}/n0/status`,
        body: { status: { conditions: [condition] } },
      },
      patchType: "application/strategic-merge-patch+json",
    });
    await world.pass(seconds(3));
    expect(refused).toBe(1);
    expect(world.marksOf("n0")).toContain("unschedulable");
    stop.abort();
    await running;
  });
});

function feasibleOf(world: ModelWorld): readonly { readonly type: string }[] {
  const { conditions = [] } = (world.get(`${policies}/spot`)?.status ?? {}) as {
    conditions?: readonly { type: string }[];
  };
  return conditions.filter(({ type }) => type === "Feasible");
}

describe("a plan that fails", () => {
  it("delays no notice, ends no pass for good, and is retried", async () => {
    const world = new ModelWorld();
    for (const name of ["n0", "n1"]) world.addNode(name, name);
    spotPolicy(world, {});
    let asked = 0;
    const gates = {
      ask: async () => {
        asked += 1;
        if (asked < 4) throw new RangeError("Invalid time value");
        return {};
      },
    };
    const stop = new AbortController();
    const running = world.startController(stop.signal, { gates });
    await world.pass(seconds(1));
    world.notice("n1", seconds(120));
    await world.pass(seconds(1));
    expect(world.marksOf("n1")).toContain("unschedulable");
    const failing = world.gauges.get("lastcall_plan_failing");
    const conditions = feasibleOf(world);
    await world.pass(seconds(240));
    expect(asked).toBeGreaterThan(3);
    // These are over by now; they were visible while the plan failed.
    expect(failing).toEqual([{ labels: {}, value: 1 }]);
    expect(conditions).toContainEqual(
      expect.objectContaining({ type: "Feasible", status: "Unknown", reason: "PlanFailed" }),
    );
    expect(world.gauges.get("lastcall_plan_failing")).toEqual([{ labels: {}, value: 0 }]);
    expect(feasibleOf(world)).toMatchObject([{ status: "True", reason: "InTime" }]);
    const said = world.logged.filter((line) => line.includes("plan-failed"));
    expect(said).toHaveLength(1);
    expect(world.counted).toContain("lastcall_errors_total code=UNEXPECTED");
    stop.abort();
    await running;
  });
});
