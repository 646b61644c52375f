import type { Clock } from "../contracts/clock.ts";
import {
  hours,
  type Instant,
  type Millis,
  millis,
  minus,
  minutes,
  plus,
} from "../core/time/time.ts";
import { assert } from "../errors.ts";
import { demoPolicy } from "./demo-policy.ts";
import { type DemoObject, demoWorkloads } from "./demo-workloads.ts";
import { EmpiricalFate, type Fate } from "./fate.ts";
import type { ModelApi } from "./model-api.ts";
import { type ModelCluster, startModelCluster } from "./model-cluster.ts";
import type { MachineGroup } from "./model-machine.ts";

export interface DemoWorldOptions {
  readonly clock: Clock;
  readonly seed: number;
  readonly nodes: number;
  /** The CustomResourceDefinitions of Lastcall, as `lastcall setup crds` gives them. */
  readonly definitions: readonly object[];
}

const zones = ["europe-west1-b", "europe-west1-c", "europe-west1-d"];

/**
 * A fleet of preemptible machines in three zones with a shop running on it and a policy for it.
 * Nothing in it knows of a controller: the same seed is the same fate, whoever acts upon it.
 */
export function startDemoWorld(options: DemoWorldOptions): ModelCluster {
  const { clock, seed, nodes, definitions } = options;
  const startAt = clock.now();
  const fate = new EmpiricalFate(seed);
  const groups = groupsOf(nodes);
  const births = staggeredBirths({ fate, startAt, groups });
  const cluster = startModelCluster({ clock, seed, fate, births, groups });
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

/** The oldest machine leaves a minute into the run: at 23 h 30 min by the demo's policy. */
const oldestAge = millis(hours(23) + minutes(29));
/** A machine that is to be there at the start is not taken in its first moments. */
const graceAtStart = minutes(1);

/**
 * Ages that lie close together among the old, so that departures follow one another soon, and wide
 * apart among the young; dealt to the zones in turn. Each machine takes the oldest age left in its
 * zone at which it would be alive still.
 */
function staggeredBirths(world: {
  readonly fate: Fate;
  readonly startAt: Instant;
  readonly groups: readonly MachineGroup[];
}): (name: string) => Instant {
  const { fate, startAt, groups } = world;
  const nodes = groups.reduce((sum, { size }) => sum + size, 0);
  const ages = new Map(groups.map(({ name }) => [name, [] as Millis[]]));
  for (let index = 0; index < nodes; index += 1) {
    const age = millis(Math.round(oldestAge * (1 - (index / nodes) ** 1.5)));
    ages.get(groups[index % groups.length]?.name ?? "")?.push(age);
  }
  const lives = (name: string, bornAt: Instant): boolean => {
    const end = fate.endOf(name, bornAt);
    return end === "Endless" || end.at > plus(startAt, graceAtStart);
  };
  return (name) => {
    const left = ages.get(name.slice(0, name.lastIndexOf("-"))) ?? [];
    const found = left.findIndex((age) => lives(name, minus(startAt, age)));
    const [age = millis(0)] = found < 0 ? [] : left.splice(found, 1);
    return minus(startAt, age);
  };
}

function create(api: ModelApi, { path, body }: DemoObject): void {
  const { status } = api.handle({ method: "POST", path, body });
  assert(status === 201, `the model takes what the demo creates at ${path}: ${status}`);
}
