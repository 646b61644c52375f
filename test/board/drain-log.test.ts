import { afterEach, beforeEach, expect, it } from "vitest";
import { DrainLog } from "../../src/board/node-page.ts";
import type { Fleet, FleetChange, NodePods } from "../../src/contracts/cluster.ts";
import { seededRng } from "../../src/core/chance/chance.ts";
import type { PodFacts } from "../../src/core/cluster/pod.ts";
import type { Departure } from "../../src/core/departure/departure.ts";
import { type Instant, instant, plus, seconds } from "../../src/core/time/time.ts";
import { LastcallError } from "../../src/errors.ts";
import { ManualClock } from "../support/manual-clock.ts";

const beganAt = instant(Date.UTC(2026, 10, 20));
const after = (count: number): Instant => plus(beganAt, seconds(count));
const node = {
  ...{ name: "n1", uid: "uid-n1", labels: {}, annotations: {}, taints: [] },
  ...{ unschedulable: false, ready: true, createdAt: beganAt },
};
const podOf = (name: string, fields: Partial<PodFacts> = {}) =>
  ({
    ...{ namespace: "shop", name, uid: `uid-${name}`, nodeName: "n1", phase: "Running" },
    ...{ ready: true, labels: {}, annotations: {}, priority: 0, graceSeconds: 60 },
    ...{ graceSource: "Set", mirror: false, emptyDir: false, hostPath: false },
    ...{ volumeClaims: [], tolerations: [] },
    ...{ controller: { kind: "ReplicaSet", name: "r", uid: "r" }, ...fields },
  }) as PodFacts;

let phase: string;
let fields: Partial<Departure>;
let at: Instant;
let here: readonly PodFacts[];
let budgets: () => Promise<readonly never[]>;
let follows: string[];
let tell: (change: FleetChange) => void;
let podsChanged: () => void;
let over: AbortController;
let log: DrainLog;
let clock: ManualClock;

beforeEach(() => {
  [phase, at, here, follows] = ["Scheduled", beganAt, [podOf("a"), podOf("b")], []];
  fields = {};
  budgets = async () => [];
  const departure = () =>
    ({
      ...{ name: "n1-1", uid: "d1", node: { name: "n1", uid: "uid-n1" }, cause: "Planned" },
      status: { phase, startedAt: beganAt, timeline: [] },
      ...fields,
    }) as unknown as Departure;
  const fleet: Pick<Fleet, "node" | "policies" | "departure" | "onChange"> = {
    ...{ node: () => node, policies: () => [], departure },
    onChange: (listener) => {
      tell = listener;
      return () => {};
    },
  };
  const pods: Pick<NodePods, "follow" | "budgets"> = {
    budgets: () => budgets(),
    follow: (name, { signal }) => {
      follows.push(`follow ${name}`);
      signal.addEventListener("abort", () => follows.push(`leave ${name}`));
      return {
        ...{ synced: async () => {}, refusal: () => undefined, pods: () => here },
        onChange: (listener) => {
          podsChanged = listener;
          return () => {};
        },
      };
    },
  };
  over = new AbortController();
  clock = new ManualClock();
  log = new DrainLog({ fleet: fleet as Fleet, pods, now: () => at, clock, rng: seededRng(1) });
  log.follow(over.signal);
});
afterEach(() => over.abort());

async function turn(next: string): Promise<void> {
  phase = next;
  tell({ nodes: new Set(), departures: new Set(["d1"]), policies: false });
  await Promise.resolve().then(() => Promise.resolve());
  await Promise.resolve().then(() => Promise.resolve());
}

it("keeps the plan from the start of a drain, and when each pod was terminated and gone", async () => {
  await turn("Scheduled");
  expect(follows).toEqual([]);
  await turn("Draining");
  expect(log.of("d1")?.plan.pods.map(({ name, graceSeconds }) => [name, graceSeconds])).toEqual([
    ["a", 60],
    ["b", 60],
  ]);
  [at, here] = [after(2), [podOf("a", { deletionAt: after(62) }), podOf("b")]];
  podsChanged();
  [at, here] = [after(20), [podOf("b")]];
  podsChanged();
  expect(log.of("d1")?.pods).toEqual([
    { uid: "uid-a", terminatingAt: after(2), goneAt: after(20) },
    { uid: "uid-b", terminatingAt: null, goneAt: null },
  ]);
});

it("plans a pod that was terminating when first seen as if it had not been", async () => {
  here = [podOf("a", { deletionAt: after(60) })];
  await turn("Draining");
  expect(log.of("d1")?.plan.pods[0]).toMatchObject({ action: "Evict", graceSeconds: 60 });
});

it.each([
  ["SpotInterruption", 40],
  // A deadline that a person has set, and a notice without one.
  ["Manual", null],
] as const)("plans until the cloud's deadline, and no other: %s", async (cause, noticeSeconds) => {
  fields = { cause, noticedAt: beganAt, deadlineAt: after(40) };
  await turn("Draining");
  expect(log.of("d1")?.plan).toMatchObject({ noticeSeconds });
});

it("plans with the time that a drain has which began after its deadline", async () => {
  fields = { cause: "SpotInterruption", noticedAt: beganAt, deadlineAt: after(-5) };
  await turn("Draining");
  expect(log.of("d1")?.plan).toMatchObject({ noticeSeconds: 30 });
});

it("watches the pods of a node once, for as long as it departs", async () => {
  for (const next of ["Preparing", "Draining", "Draining", "Releasing"]) await turn(next);
  expect(follows).toEqual(["follow n1"]);
  await turn("Ended");
  expect(follows).toEqual(["follow n1", "leave n1"]);
  expect(log.of("d1")).toBeDefined();
});

it("follows no drain that started long before it is first seen", async () => {
  at = after(61);
  await turn("Draining");
  expect(follows).toEqual([]);
  await turn("Preparing");
  expect(follows).toEqual(["follow n1"]);
});

it("has no record if the pods may not be listed", async () => {
  budgets = () => Promise.reject(new LastcallError("RIGHT_MISSING", "Cannot list budgets"));
  await turn("Draining");
  await clock.advance(seconds(30));
  expect(log.of("d1")).toBeUndefined();
  expect(follows).toEqual(["follow n1", "leave n1"]);
});

it("starts again after an error of the API server while the drain is young", async () => {
  let faults = 2;
  budgets = async () => {
    if (faults-- > 0) throw new LastcallError("API_UNREACHABLE", "Cannot list budgets: refused");
    return [];
  };
  await turn("Draining");
  expect(log.of("d1")).toBeUndefined();
  await clock.advance(seconds(1));
  expect(log.of("d1")?.pods).toHaveLength(2);
  expect(follows).toEqual(["follow n1", "leave n1", "follow n1", "leave n1", "follow n1"]);
});
