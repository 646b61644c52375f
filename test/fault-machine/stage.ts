import { crdOf } from "../../src/config/schema/crd.ts";
import { resourceDefinitions } from "../../src/config/schema/resource-definition.ts";
import type { KubeObject } from "../../src/contracts/kube-api.ts";
import { type Instant, instant, minutes, seconds } from "../../src/core/time/time.ts";
import { frozenCopy, type ModelObject } from "../../src/sim/api/store/object-store.ts";
import { neverPreempted } from "../../src/sim/cloud/model-machine.ts";
import { type ModelCluster, startModelCluster } from "../../src/sim/model-cluster.ts";
import { VirtualClock } from "../../src/sim/time/virtual-clock.ts";
import { MachineAgents } from "./machine-agents.ts";
import { PastStates } from "./past-states.ts";
import { Replica } from "./replica.ts";
import { settled } from "./settled.ts";
import type {
  ApiCall,
  ApiEffect,
  ApiRule,
  CloudCall,
  CloudEffect,
  CloudRule,
  EditedKind,
  Surroundings,
  Told,
  WatchEffect,
  WatchRule,
} from "./surroundings.ts";
import type { TraceEvent } from "./trace.ts";
import { workloadObjects } from "./workload-object.ts";
import type { World } from "./world.ts";

/** Every run starts at midnight, so that a window's hours are the run's. */
export const startAt: Instant = instant(Date.UTC(2026, 10, 20));

const paths = {
  nodes: "/api/v1/nodes",
  policies: "/apis/lastcall.dev/v1alpha1/departurepolicies",
  departures: "/apis/lastcall.dev/v1alpha1/departures",
  budgets: "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
} as const;

/** The same for every world. */
const customResources = resourceDefinitions.map((one) => frozenCopy(crdOf(one)));

const watchedStorages = [
  "nodes",
  "pods",
  "departures.lastcall.dev",
  "departurepolicies.lastcall.dev",
  "poddisruptionbudgets.policy",
  "leases.coordination.k8s.io",
];

/** A world that runs: cluster, cloud, controllers and agents, and what faults may do to them. */
export class Stage implements Surroundings {
  readonly world: World;
  readonly clock = new VirtualClock({ startAt, settle: settled });
  readonly cluster: ModelCluster;
  readonly agents: MachineAgents;
  readonly replicas: readonly Replica[];
  readonly apiRules = new Set<ApiRule>();
  readonly watchRules = new Set<WatchRule>();
  readonly cloudRules = new Set<CloudRule>();
  /** The names of the machines as they were at first, so that a fault can name one by number. */
  readonly machineNames: readonly string[];
  readonly #onEvent: (event: TraceEvent) => void;

  constructor(world: World, onEvent: (event: TraceEvent) => void) {
    this.world = world;
    this.#onEvent = onEvent;
    this.cluster = startModelCluster({ clock: this.clock, seed: world.seed, ...fleetOf(world) });
    this.#follow();
    this.machineNames = this.cluster.cloud.machines().map(({ name }) => name);
    this.#createObjects();
    this.agents = new MachineAgents(this);
    this.replicas = Array.from({ length: world.replicas }, (_, index) => new Replica(this, index));
  }

  /** What was stored before, of the kinds that lists may show again. */
  readonly past = new PastStates();

  tell(told: Told): void {
    this.#onEvent({ at: this.clock.now(), ...told } as TraceEvent);
  }

  /** The node whose departure made the present fault begin. */
  focus: string | undefined;

  /** A fleet's machine by number; beyond the fleet they start again, and -1 is the one in focus. */
  machineName(index: number): string {
    if (index < 0 && this.focus !== undefined) return this.focus;
    return this.machineNames[Math.max(0, index) % this.machineNames.length] as string;
  }

  apiEffect(call: ApiCall): ApiEffect | undefined {
    return firstOf(this.apiRules, (rule) => rule(call));
  }

  watchEffect(watch: Parameters<WatchRule>[0]): WatchEffect | undefined {
    return firstOf(this.watchRules, (rule) => rule(watch));
  }

  cloudEffect(call: CloudCall): CloudEffect | undefined {
    return firstOf(this.cloudRules, (rule) => rule(call));
  }

  /** By how much the API server's own clock is off. */
  serverOffMs = 0;

  /** The `Date` header of the API server: whole seconds. */
  serverTime(): Instant {
    return instant(Math.floor((this.clock.now() + this.serverOffMs) / 1000) * 1000);
  }

  // What people and other tools do. Those who are refused try no further.

  list(kind: EditedKind): readonly ModelObject[] {
    const answer = this.cluster.api.handle({ method: "GET", path: paths[kind] });
    return (answer.body as { items: ModelObject[] }).items;
  }

  get(kind: EditedKind, name: string): ModelObject | undefined {
    const answer = this.cluster.api.handle({ method: "GET", path: `${paths[kind]}/${name}` });
    return answer.status === 200 ? (answer.body as ModelObject) : undefined;
  }

  patch(kind: EditedKind, name: string, body: object): void {
    this.#byPerson("PATCH", `${paths[kind]}/${name}`, body);
  }

  delete(kind: EditedKind, name: string): void {
    this.#byPerson("DELETE", `${paths[kind]}/${name}`, undefined);
  }

  create(kind: EditedKind, body: object): void {
    this.#byPerson("POST", paths[kind], body);
  }

  post(path: string, body: object): void {
    const answer = this.cluster.api.handle({ method: "POST", path, body });
    if (answer.status >= 300) throw new Error(`${path}: ${JSON.stringify(answer.body)}`);
  }

  #byPerson(method: "PATCH" | "POST" | "DELETE", path: string, body: object | undefined): void {
    const patchType = method === "PATCH" ? "application/merge-patch+json" : undefined;
    const { status } = this.cluster.api.handle({ method, path, body, patchType });
    this.tell({ kind: "Person", what: `${method} ${path} ${JSON.stringify(body)} -> ${status}` });
  }

  /** Calls `act` after a while. */
  after(ms: number, act: () => void): void {
    void this.clock.sleep(seconds(ms / 1000)).then(act);
  }

  #follow(): void {
    const { store } = this.cluster.api.context;
    for (const storage of watchedStorages) {
      store.collection(storage).subscribe(({ type, object, previous }) => {
        this.past.record({ at: this.clock.now(), kind: "Change", storage, type, object, previous });
        this.tell({ kind: "Change", storage, type, object, previous });
      });
      for (const object of store.collection(storage).all()) {
        const first = { storage, type: "ADDED", object, previous: undefined } as const;
        this.past.record({ at: this.clock.now(), kind: "Change", ...first });
        this.tell({ kind: "Change", ...first });
      }
    }
    for (const { name, id, bornAt } of this.cluster.cloud.machines()) {
      this.tell({ kind: "Machine", what: "Registered", name, id, bornAt, because: undefined });
    }
    this.cluster.cloud.subscribe(({ kind: what, machine: { name, id, bornAt }, because }) => {
      this.tell({ kind: "Machine", what, name, id, bornAt, because });
    });
  }

  #createObjects(): void {
    const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    for (const one of customResources) this.post(definitions, one as object);
    this.post("/api/v1/namespaces", { metadata: { name: "lastcall" } });
    this.post("/apis/scheduling.k8s.io/v1/priorityclasses", {
      metadata: { name: "lastcall-placeholder" },
      ...{ value: -10, preemptionPolicy: "Never", globalDefault: false },
    });
    this.post(paths.policies, {
      apiVersion: "lastcall.dev/v1alpha1",
      ...{ kind: "DeparturePolicy", metadata: { name: "spot" }, spec: this.world.policy },
    });
    for (const { path, body } of this.world.workloads.flatMap(workloadObjects)) {
      this.post(path, body as KubeObject);
    }
  }
}

function firstOf<R, E>(rules: Iterable<R>, ask: (rule: R) => E | undefined): E | undefined {
  for (const rule of rules) {
    const effect = ask(rule);
    if (effect !== undefined) return effect;
  }
  return undefined;
}

function fleetOf({ nodes, machines }: World) {
  const ages = nodes.map(({ ageMinutes }) => ageMinutes);
  const zones = [...new Set(nodes.map(({ zone }) => zone))];
  const groups = zones.map((zone) => ({
    ...{ name: `spot-${zone}`, zone, price: "Preemptible" as const },
    size: nodes.filter((node) => node.zone === zone).length,
  }));
  let launched = 0;
  return {
    groups,
    preemptions: neverPreempted,
    launchTimes: () => instant(startAt - minutes(ages[launched++] ?? 0)),
    timings: {
      boot: seconds(machines.bootSeconds),
      recreate: seconds(machines.recreateSeconds),
      stop: seconds(machines.stopSeconds),
    },
  };
}
