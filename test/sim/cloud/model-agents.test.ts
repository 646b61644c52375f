import { afterEach, beforeEach, expect, it } from "vitest";
import { crdOf } from "../../../src/config/schema/crd.ts";
import { resourceDefinitions } from "../../../src/config/schema/resource-definition.ts";
import { instant, minutes, plus, seconds } from "../../../src/core/time/time.ts";
import { eventLoopTurn } from "../../../src/runtime/real-clock.ts";
import { type DepartureObject, departureStorage } from "../../../src/sim/invariants/invariant.ts";
import { type ModelCluster, runAgents, startModelCluster } from "../../../src/sim/model-cluster.ts";
import { VirtualClock } from "../../../src/sim/time/virtual-clock.ts";

const startAt = instant(Date.UTC(2026, 10, 20));
const noticeMs = seconds(120);
const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

let clock: VirtualClock;
let cluster: ModelCluster;
let over: AbortController;
let running: Promise<void>;

beforeEach(() => {
  clock = new VirtualClock({ startAt, settle: eventLoopTurn });
  const group = { name: "spot", zone: "z", size: 2, price: "Standard" } as const;
  const timings = { beforeShutdown: noticeMs, notice: seconds(150) };
  cluster = startModelCluster({ clock, seed: 1, groups: [group], timings });
  const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  for (const body of resourceDefinitions.map(crdOf)) {
    cluster.api.handle({ method: "POST", path, body });
  }
  over = new AbortController();
  running = runAgents({ cluster, clock, seed: 1, noticeMs, log }, over.signal);
});
afterEach(async () => {
  over.abort();
  await running;
  cluster.stop();
});

function departures(): readonly DepartureObject[] {
  return [...cluster.api.context.store.collection(departureStorage).all()] as DepartureObject[];
}

it("the agent of a preempted machine reports it at once, with the deadline", async () => {
  const [first] = cluster.cloud.machines();
  await clock.advance(minutes(1));
  expect(departures()).toEqual([]);
  cluster.cloud.preempt(first?.name ?? "");
  await clock.advance(seconds(0));
  const [departure, ...others] = departures();
  expect(others).toEqual([]);
  expect(departure?.spec).toMatchObject({
    node: { name: first?.name },
    cause: "SpotInterruption",
    noticedAt: "2026-11-20T00:01:00.000Z",
    deadlineAt: "2026-11-20T00:03:00.000Z",
  });
});

it("the machine that replaces it has an agent of its own", async () => {
  const name = cluster.cloud.machines()[0]?.name ?? "";
  cluster.cloud.preempt(name);
  // Gone after 150 s, recreated 10 s later, and up after another 50 s.
  await clock.runUntil(plus(startAt, minutes(10)));
  expect(departures()).toHaveLength(1);
  cluster.cloud.preempt(name);
  await clock.advance(seconds(0));
  const uids = departures().map(({ spec }) => spec.node.uid);
  expect(new Set(uids).size).toBe(2);
});
