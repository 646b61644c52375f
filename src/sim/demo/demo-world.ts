import type { Clock } from "../../contracts/clock.ts";
import {
  hours,
  type Instant,
  millis,
  minus,
  minutes,
  plus,
  seconds,
} from "../../core/time/time.ts";
import { assert } from "../../errors.ts";
import type { ModelApi } from "../api/model-api.ts";
import type { MachineGroup } from "../cloud/model-machine.ts";
import { EmpiricalPreemptions, hashOf, type PreemptionModel } from "../cloud/preemption-model.ts";
import { oneOutcome, plannedInTime, startIsAllowed } from "../invariants/departure-invariants.ts";
import {
  budgetIsKept,
  cordonBeforeEviction,
  cordonHasDeparture,
  evictionOnly,
} from "../invariants/drain-invariants.ts";
import type { Invariant } from "../invariants/invariant.ts";
import { oneActor, releaseAfterDrain, rightMachine } from "../invariants/release-invariants.ts";
import { type ModelCluster, startModelCluster } from "../model-cluster.ts";
import { type DemoObject, demoWorkloads } from "./demo-workloads.ts";

interface DemoWorldOptions {
  readonly clock: Clock;
  readonly seed: number;
  readonly nodes: number;
  /** The CustomResourceDefinitions of Lastcall, as `lastcall setup crds` gives them. */
  readonly definitions: readonly object[];
}

/** From the notice of a preemption until the machine shuts down, as its agent reports it. */
export const demoNoticeMs = seconds(120);

/** As with `preemptionNoticeDuration` of 120 s; the shutdown takes the usual 30 s after it. */
const demoTimings = { beforeShutdown: demoNoticeMs, notice: seconds(150) };

const zones = ["europe-west1-b", "europe-west1-c", "europe-west1-d"];

/**
 * A fleet of preemptible machines in three zones with a shop running on it and a policy for it.
 * It does not depend on a controller: the same seed has the same preemptions with and without one.
 */
export function startDemoWorld(options: DemoWorldOptions): ModelCluster {
  const { clock, seed, nodes, definitions } = options;
  const startAt = clock.now();
  const groups = groupsOf(nodes);
  const cluster = startModelCluster({
    clock,
    seed,
    groups,
    ...scheduleOf(options),
    timings: demoTimings,
  });
  const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  for (const body of definitions) create(cluster.api, { path, body });
  create(cluster.api, { path: "/api/v1/namespaces", body: { metadata: { name: "lastcall" } } });
  create(cluster.api, placeholderPriority);
  create(cluster.api, demoPolicy(startAt));
  for (const object of demoWorkloads(nodes)) create(cluster.api, object);
  return cluster;
}

/** As `deploy/base/placeholder-priority.yaml` has it, so that a policy may want room first. */
const placeholderPriority: DemoObject = {
  path: "/apis/scheduling.k8s.io/v1/priorityclasses",
  body: {
    apiVersion: "scheduling.k8s.io/v1",
    kind: "PriorityClass",
    metadata: { name: "lastcall-placeholder" },
    value: -10,
    preemptionPolicy: "Never",
    globalDefault: false,
    description: "Pods that keep room for those of a node that is about to leave.",
  },
};

function groupsOf(nodes: number): readonly MachineGroup[] {
  return zones.map((zone, index) => ({
    name: `spot-${zone.at(-1)}`,
    zone,
    size: Math.floor(nodes / zones.length) + (index < nodes % zones.length ? 1 : 0),
    price: "Preemptible",
  }));
}

/** From the start until the first machine leaves as planned. */
const untilFirst = minutes(10);
/** Where so many are to leave one by one that there is no such age, they begin at this one. */
const leastAge = hours(1);
/** From the start until the cloud takes a machine before its time. */
const untilPreemption = minutes(4);

/**
 * All machines are launched within a minute, as in a new node pool, and have reached the age at
 * which the first has to leave. So all reach their 24 hours together, unless somebody acts.
 */
function scheduleOf(world: DemoWorldOptions): {
  readonly preemptions: PreemptionModel;
  readonly launchTimes: (name: string) => Instant;
} {
  const { clock, seed, nodes } = world;
  const startAt = clock.now();
  const apart = millis((nodes - 1) * demoSpacingMs);
  const age = millis(Math.max(leastAge, hours(demoLifetimeHours) - apart - untilFirst));
  const preemptedAt = plus(startAt, millis(untilPreemption + demoTimings.notice));
  const later = new EmpiricalPreemptions(seed, { noneBefore: preemptedAt });
  const preemptedIndex = hashOf(`${seed}|strike`) % nodes;
  let [preempted, count] = ["", 0];
  return {
    launchTimes: (name) => {
      if (count === preemptedIndex) preempted = name;
      count += 1;
      return minus(startAt, millis(age + (hashOf(`${seed}|${name}|birth`) % minutes(1))));
    },
    preemptions: {
      // Of the machine that is there at the start; not of those that get its name.
      endOf: (slot, bornAt) =>
        slot === preempted && bornAt < startAt
          ? { at: preemptedAt, because: "Preempted" }
          : later.endOf(slot, bornAt),
    },
  };
}

function create(api: ModelApi, { path, body }: DemoObject): void {
  const { status } = api.handle({ method: "POST", path, body });
  assert(status === 201, `the model takes what the demo creates at ${path}: ${status}`);
}

/** How many nodes of the demo may be out at once before another one starts to leave. */
const demoBudgetNodes = 2;
/** A node's deadline is so long after its launch time: 24 h less the reserve. */
const demoLifetimeHours = 23.5;
/** Departures are at least this far apart. */
const demoSpacingMs = minutes(15);

const hourMs = 3_600_000;

/** The hour of the day (UTC) in which nobody may start to leave; some hours after the start. */
function quietHour(startAt: Instant): number {
  return (Math.floor(startAt / hourMs) + 5) % 24;
}

/** The demo's policy, as a user would write it. */
function demoPolicy(startAt: Instant): DemoObject {
  const hour = quietHour(startAt);
  const clock = (at: number): string => `${String(at).padStart(2, "0")}:00`;
  const window = { name: "settlement", type: "Deny", timeZone: "UTC" };
  return {
    path: "/apis/lastcall.dev/v1alpha1/departurepolicies",
    body: {
      apiVersion: "lastcall.dev/v1alpha1",
      kind: "DeparturePolicy",
      metadata: { name: "spot" },
      spec: {
        lifetime: { max: "24h", reserve: "30m" },
        spacing: { mode: "Late", min: `${demoSpacingMs / minutes(1)}m` },
        windows: [{ ...window, start: clock(hour), end: clock(hour + 1) }],
        budgets: [{ nodes: demoBudgetNodes, scope: "Policy" }],
        drain: { timeout: "10m", onTimeout: "RollBack" },
      },
    },
  };
}

/** Whether the policy's window lets a planned departure start; by the hour alone. */
function demoMayStart(startAt: Instant, at: Instant): boolean {
  return Math.floor(at / hourMs) % 24 !== quietHour(startAt);
}

/** What a run of the demo that began at `startAt` is held to. */
export function demoInvariants(startAt: Instant): readonly Invariant[] {
  return [
    startIsAllowed({
      mayStart: (at) => demoMayStart(startAt, at),
      budgetNodes: demoBudgetNodes,
    }),
    plannedInTime(hours(demoLifetimeHours)),
    releaseAfterDrain,
    rightMachine,
    budgetIsKept,
    evictionOnly,
    oneActor,
    cordonBeforeEviction,
    cordonHasDeparture,
    oneOutcome,
  ];
}
