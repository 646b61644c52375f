import type { Clock } from "../../contracts/clock.ts";
import {
  hours,
  type Instant,
  type Millis,
  millis,
  minus,
  minutes,
  plus,
  seconds,
} from "../../core/time/time.ts";
import { assert } from "../../errors.ts";
import type { ModelApi } from "../api/model-api.ts";
import {
  EmpiricalPreemptions,
  hashOf,
  type MachineGroup,
  type PreemptionModel,
} from "../cloud/model-machine.ts";
import { podBehaviour } from "../cluster-controllers/kubelet.ts";
import {
  oneActor,
  oneOutcome,
  plannedInTime,
  releaseAfterDrain,
  rightMachine,
  startIsAllowed,
} from "../invariants/departure-invariants.ts";
import {
  budgetIsKept,
  cordonBeforeEviction,
  cordonHasDeparture,
  evictionOnly,
} from "../invariants/drain-invariants.ts";
import type { Invariant } from "../invariants/invariant.ts";
import { type ModelCluster, startModelCluster } from "../model-cluster.ts";

interface DemoWorldOptions {
  readonly clock: Clock;
  readonly seed: number;
  readonly nodes: number;
  /** Lastcall's CustomResourceDefinitions, as `lastcall setup crds` prints them. */
  readonly definitions: readonly object[];
  /** DeparturePolicy objects; default: the demo's own. */
  readonly policies?: readonly object[] | undefined;
  /** Default: the demo's machines, of which the first is taken after a few minutes. */
  readonly course?: FleetCourse | undefined;
}

/** The machines of a fleet, and what the cloud does to them. */
export interface FleetCourse {
  /** At the start. */
  readonly machines: readonly {
    readonly zone: string;
    readonly ageMs: Millis;
    /** Of its node, and of those that replace it. Default: those of a preemptible GKE node. */
    readonly labels?: Readonly<Record<string, string>>;
  }[];
  /** When it starts. Default: a fixed instant. */
  readonly startAt?: Instant;
  /** `Measured`: as observed on Compute Engine; `None`: the cloud takes machines at 24 h only. */
  readonly preemptions: "Measured" | "None";
  /** The cloud takes a share of the machines within a minute. */
  readonly storm?: { readonly afterMs: Millis; readonly share: number } | undefined;
}

/** From a preemption notice until the machine shuts down, as its agent reports it. */
export const demoNoticeMs = seconds(120);

/** As with a `preemptionNoticeDuration` of 120 s; the shutdown takes the usual 30 s after it. */
const demoTimings = { beforeShutdown: demoNoticeMs, notice: seconds(150) };

const zones = ["europe-west1-b", "europe-west1-c", "europe-west1-d"];

/**
 * A fleet of preemptible machines in three zones, with a shop running on it and a policy for it. It
 * does not depend on a controller: the same seed has the same preemptions with and without one.
 */
export function startDemoWorld(options: DemoWorldOptions): ModelCluster {
  const { clock, seed, nodes, definitions, course, policies } = options;
  const startAt = clock.now();
  const cluster = startModelCluster({
    clock,
    seed,
    ...(course === undefined
      ? { groups: groupsOf(nodes), ...scheduleOf(options) }
      : courseOf(course, { seed, startAt })),
    timings: demoTimings,
  });
  const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  for (const body of definitions) create(cluster.api, { path, body });
  create(cluster.api, { path: "/api/v1/namespaces", body: { metadata: { name: "lastcall" } } });
  create(cluster.api, placeholderPriority);
  for (const body of policies ?? [demoPolicy(startAt)]) {
    create(cluster.api, { path: policiesPath, body });
  }
  for (const object of demoWorkloads(nodes)) create(cluster.api, object);
  return cluster;
}

/** As in `deploy/base/placeholder-priority.yaml`, so that a policy may make room first. */
const placeholderPriority: DemoObject = {
  path: "/apis/scheduling.k8s.io/v1/priorityclasses",
  body: {
    apiVersion: "scheduling.k8s.io/v1",
    kind: "PriorityClass",
    metadata: { name: "lastcall-placeholder" },
    value: -10,
    preemptionPolicy: "Never",
    globalDefault: false,
    description: "Pods that reserve capacity for those of a node that is about to leave.",
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

/** From the start until the first planned departure. */
const untilFirst = minutes(10);
/** If too many nodes are to leave one by one for that, they start at this age. */
const leastAge = hours(1);
/** From the start until the cloud takes a machine early. */
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
      // For the machine that exists at the start; not for its successors of the same name.
      endOf: (slot, bornAt) =>
        slot === preempted && bornAt < startAt
          ? { at: preemptedAt, because: "Preempted" }
          : later.endOf(slot, bornAt),
    },
  };
}

function courseOf(
  { machines, preemptions, storm }: FleetCourse,
  { seed, startAt }: { readonly seed: number; readonly startAt: Instant },
): Pick<Parameters<typeof startModelCluster>[0], "groups" | "preemptions" | "launchTimes"> {
  const alike = Map.groupBy(machines, ({ zone, labels }) => JSON.stringify([zone, labels]));
  const groups = [...alike.values()].map((its, place) => {
    const { zone = "", labels } = its[0] ?? {};
    const name = labels === undefined ? `spot-${zone}` : `spot-${zone}-${place}`;
    return {
      ...{ name, zone, size: its.length, price: "Preemptible" as const },
      ...(labels === undefined ? {} : { labels }),
      launched: its.map(({ ageMs }) => minus(startAt, ageMs)),
    };
  });
  // The groups launch their first machines in this order.
  const launched = groups.flatMap((group) => group.launched).values();
  const measured = new EmpiricalPreemptions(seed, { noneBefore: startAt });
  const usual: PreemptionModel =
    preemptions === "Measured"
      ? measured
      : { endOf: (_, bornAt) => ({ at: plus(bornAt, hours(24)), because: "Limit" }) };
  const stormAt = storm && plus(startAt, storm.afterMs);
  return {
    groups: groups.map(({ launched: _, ...group }) => group),
    launchTimes: () => launched.next().value ?? startAt,
    preemptions: {
      endOf: (slot, bornAt) => {
        const end = usual.endOf(slot, bornAt);
        if (storm === undefined || stormAt === undefined || bornAt >= stormAt) return end;
        if (hashOf(`${seed}|${slot}|storm`) % 1000 >= storm.share * 1000) return end;
        const takenAt = plus(stormAt, millis(hashOf(`${seed}|${slot}|taken`) % minutes(1)));
        return end !== "Never" && end.at < takenAt ? end : { at: takenAt, because: "Preempted" };
      },
    },
  };
}

const policiesPath = "/apis/lastcall.dev/v1alpha1/departurepolicies";

function create(api: ModelApi, { path, body }: DemoObject): void {
  const { status } = api.handle({ method: "POST", path, body });
  assert(status === 201, `the model takes what the demo creates at ${path}: ${status}`);
}

/** How many nodes of the demo may be unavailable before another one may start to leave. */
const demoBudgetNodes = 2;
/** A node's deadline in hours after its launch: 24 h less the reserve. */
const demoLifetimeHours = 23.5;
/** Departures are at least this far apart. */
const demoSpacingMs = minutes(15);

const hourMs = 3_600_000;

/**
 * The hour of the day (UTC) in which no departure may start; it begins some hours after the demo.
 */
function quietHour(startAt: Instant): number {
  return (Math.floor(startAt / hourMs) + 5) % 24;
}

/** The demo's policy, as a user would write it. */
function demoPolicy(startAt: Instant): object {
  const hour = quietHour(startAt);
  const clock = (at: number): string => `${String(at).padStart(2, "0")}:00`;
  const window = { name: "settlement", type: "Deny", timeZone: "UTC" };
  return {
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
  };
}

/** Whether the policy's window lets a planned departure start; by the hour alone. */
function demoMayStart(startAt: Instant, at: Instant): boolean {
  return Math.floor(at / hourMs) % 24 !== quietHour(startAt);
}

/** The invariants of any fleet, whatever its policies. */
export const fleetInvariants: readonly Invariant[] = [
  releaseAfterDrain,
  rightMachine,
  budgetIsKept,
  evictionOnly,
  oneActor,
  cordonBeforeEviction,
  cordonHasDeparture,
  oneOutcome,
];

/** The invariants of a run of the demo that started at `startAt`. */
export function demoInvariants(startAt: Instant): readonly Invariant[] {
  return [
    startIsAllowed({
      mayStart: (at) => demoMayStart(startAt, at),
      budgetNodes: demoBudgetNodes,
    }),
    plannedInTime(hours(demoLifetimeHours)),
    ...fleetInvariants,
  ];
}

/** A workload of the demo: its requests, and how its programs behave. */
interface DemoWorkload {
  readonly name: string;
  readonly kind: "Deployment" | "StatefulSet";
  /** Replicas in a fleet of 18 nodes, and the minimum in a small one. */
  readonly replicas: number;
  readonly leastReplicas: number;
  readonly cpu: string;
  readonly graceSeconds: number;
  readonly startSeconds: number;
  /** From SIGTERM until its program exits on its own. */
  readonly exitSeconds: number;
  readonly budget?: { readonly maxUnavailable: number | string } | { readonly spare: number };
}

/**
 * A shop: servers that stop quickly, a database that needs longer, and workers that need longest.
 */
const workloads: readonly DemoWorkload[] = [
  {
    ...{ name: "web", kind: "Deployment", replicas: 24, leastReplicas: 2, cpu: "250m" },
    ...{ graceSeconds: 30, startSeconds: 8, exitSeconds: 6, budget: { maxUnavailable: "25%" } },
  },
  {
    ...{ name: "api", kind: "Deployment", replicas: 15, leastReplicas: 3, cpu: "500m" },
    ...{ graceSeconds: 60, startSeconds: 12, exitSeconds: 20, budget: { spare: 2 } },
  },
  {
    ...{ name: "checkout", kind: "Deployment", replicas: 9, leastReplicas: 2, cpu: "500m" },
    ...{ graceSeconds: 45, startSeconds: 20, exitSeconds: 25, budget: { maxUnavailable: 1 } },
  },
  {
    ...{ name: "db", kind: "StatefulSet", replicas: 3, leastReplicas: 3, cpu: "1" },
    ...{ graceSeconds: 120, startSeconds: 30, exitSeconds: 40, budget: { maxUnavailable: 1 } },
  },
  {
    ...{ name: "worker", kind: "Deployment", replicas: 18, leastReplicas: 2, cpu: "500m" },
    ...{ graceSeconds: 300, startSeconds: 5, exitSeconds: 90 },
  },
];

interface DemoObject {
  /** Where it is created, such as `/apis/apps/v1/namespaces/shop/deployments`. */
  readonly path: string;
  readonly body: object;
}

const namespace = "shop";

/** The demo's workloads, in the order of creation. */
function demoWorkloads(nodeCount: number): readonly DemoObject[] {
  return [
    { path: "/api/v1/namespaces", body: { metadata: { name: namespace } } },
    ...["node-exporter", "log-shipper"].map(daemonSet),
    ...workloads.flatMap((one) => {
      const replicas = Math.max(one.leastReplicas, Math.round((one.replicas * nodeCount) / 18));
      return [workloadObject(one, replicas), ...budgetObject(one, replicas)];
    }),
  ];
}

function workloadObject(workload: DemoWorkload, replicas: number): DemoObject {
  const { name, kind, cpu, graceSeconds, startSeconds, exitSeconds } = workload;
  const labels = { app: name };
  const annotations = {
    [podBehaviour.startSeconds]: String(startSeconds),
    [podBehaviour.exitSeconds]: String(exitSeconds),
  };
  const container = {
    name,
    image: `shop/${name}:1`,
    resources: { requests: { cpu, memory: "512Mi" } },
  };
  const spec = {
    replicas,
    selector: { matchLabels: labels },
    ...(kind === "StatefulSet" ? { serviceName: name, podManagementPolicy: "Parallel" } : {}),
    template: {
      metadata: { labels, annotations },
      spec: { terminationGracePeriodSeconds: graceSeconds, containers: [container] },
    },
  };
  return {
    path: `/apis/apps/v1/namespaces/${namespace}/${kind.toLowerCase()}s`,
    body: { metadata: { name, labels }, spec },
  };
}

function budgetObject({ name, budget }: DemoWorkload, replicas: number): readonly DemoObject[] {
  if (budget === undefined) return [];
  const limit = "spare" in budget ? { minAvailable: replicas - budget.spare } : budget;
  const spec = { ...limit, selector: { matchLabels: { app: name } } };
  const path = `/apis/policy/v1/namespaces/${namespace}/poddisruptionbudgets`;
  return [{ path, body: { metadata: { name }, spec } }];
}

function daemonSet(name: string): DemoObject {
  const labels = { app: name };
  const container = { name, image: `${name}:1`, resources: { requests: { cpu: "100m" } } };
  const spec = {
    priorityClassName: "system-node-critical",
    tolerations: [{ operator: "Exists" }],
    containers: [container],
  };
  return {
    path: "/apis/apps/v1/namespaces/kube-system/daemonsets",
    body: {
      metadata: { name, labels },
      spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
    },
  };
}
