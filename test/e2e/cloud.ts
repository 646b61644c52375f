import { randomUUID } from "node:crypto";
import type { Pod } from "kubernetes-types/core/v1.js";
import { type Instant, type Millis, millis } from "../../src/core/time/time.ts";
import { realClock } from "../../src/runtime/real-clock.ts";
import type { ComputeGroup, ComputeMachine, ComputeOperation } from "../support/compute-body.ts";
import { type ComputeServer, startComputeServer } from "../support/compute-server.ts";
import type { ControlPlane } from "../support/control-plane.ts";
import { nodeObject } from "../support/kwok-fleet.ts";
import { type Relay, type RelayCall, startRelay } from "../support/relay.ts";
import { waitUntil } from "../support/wait-until.ts";
import type { MachineEnd, MachineStart, Release } from "./history.ts";

export const project = { id: "e2e-project", number: "601024681890" } as const;

/** Much faster than Compute Engine, but in its order: scheduled, stopping, gone, new, running. */
const timings = {
  scheduleMs: millis(200),
  stopMs: millis(700),
  createMs: millis(300),
  // Longer than the controller's poll interval, so it mostly sees the name without a machine.
  startMs: millis(3_000),
};

/** The label of the original nodes. */
export const generationLabel = "e2e.lastcall.dev/generation";

export interface CloudOptions {
  /** How long a machine takes to stop, if that matters. */
  readonly stopMs?: Millis;
  /** How long a group takes to make a machine anew, if that matters. */
  readonly createMs?: Millis;
  readonly before?: (call: RelayCall) => Promise<"Pass" | "Drop">;
  readonly after?: (call: RelayCall) => Promise<void>;
}

/** GKE's labels of the instances of its nodes. */
const ofCluster = {
  "goog-k8s-cluster-name": "main",
  "goog-k8s-cluster-location": "europe-west1",
};

/** Compute Engine, and the kubelets of the machines that it creates. */
export class Cloud {
  readonly releases: Release[] = [];
  readonly machineEnds: MachineEnd[] = [];
  readonly machineStarts: MachineStart[] = [];
  readonly #plane: ControlPlane;
  readonly #server: ComputeServer;
  readonly #relay: Relay;
  readonly #groups = new Map<string, ComputeGroup>();
  readonly #starting = new Set<Promise<void>>();
  /** By name: the id of the machine that has it now, or had it last. */
  readonly #ids = new Map<string, string>();
  readonly #closed = new AbortController();
  #opened = false;

  static async start(plane: ControlPlane, options: CloudOptions = {}): Promise<Cloud> {
    const late: { cloud?: Cloud } = {};
    const server = await startComputeServer({
      clock: realClock,
      project,
      timings: {
        ...timings,
        ...(options.stopMs && { stopMs: options.stopMs }),
        ...(options.createMs && { createMs: options.createMs }),
      },
      onInstanceGone: (machine) => late.cloud?.end(machine),
      onInstanceBorn: (machine) => late.cloud?.boot(machine),
    });
    const relay = await startRelay({
      target: server.endpoint,
      before: async (call) => {
        if ((await options.before?.(call)) === "Drop") return "Drop";
        await late.cloud?.witness(call);
        return "Pass";
      },
      ...(options.after && { after: options.after }),
    });
    late.cloud = new Cloud(plane, server, relay);
    return late.cloud;
  }

  private constructor(plane: ControlPlane, server: ComputeServer, relay: Relay) {
    this.#plane = plane;
    this.#server = server;
    this.#relay = relay;
  }

  /** The value for `--gcp-endpoint`. */
  get endpoint(): string {
    return this.#relay.url;
  }

  /**
   * Adds existing machines, each to the group of its zone. From then on every new machine registers
   * a Node.
   */
  adopt(machines: readonly { readonly name: string; readonly zone: string }[]): void {
    const zones = [...new Set(machines.map(({ zone }) => zone))];
    for (const zone of zones) {
      const group = { scope: "zones", location: zone, name: `gke-${zone}-grp` } as const;
      if (!this.#groups.has(zone)) this.#groups.set(zone, this.#server.model.addGroup(group));
    }
    for (const { name, zone } of machines) {
      const group = this.#groups.get(zone);
      const { id } = this.#server.model.addMachine({ name, zone, group, labels: ofCluster });
      this.start(name, id);
    }
    this.#opened = true;
  }

  /** Preempts a Spot machine; returns the operation that reports it. */
  preempt(name: string): ComputeOperation {
    const { zone } = this.#machine(name);
    return this.#server.model.preempt(zone, name);
  }

  /** When the current machine with this name was last started. */
  startedAt(name: string): Instant {
    return this.#machine(name).startedAt;
  }

  /** Adds a machine of the cluster whose kubelet never registers. */
  addStray(name: string, zone: string, how: "InGroup" | "Alone" = "InGroup"): void {
    const place = { scope: "zones", location: zone } as const;
    const isAlone = how === "Alone";
    const group = isAlone ? undefined : this.#server.model.group(place, `gke-${zone}-grp`);
    this.#opened = false;
    this.#server.model.addMachine({ name, zone, group, labels: ofCluster });
    this.#opened = true;
  }

  /** Sets when a machine was last started. */
  startAt(name: string, at: Instant): void {
    this.#machine(name).startedAt = at;
  }

  /** Forbids calls that need this permission from now on. */
  deny(permission: string): void {
    this.#server.deny(permission);
  }

  allow(permission: string): void {
    this.#server.allow(permission);
  }

  #machine(name: string): ComputeMachine {
    const machine = this.#server.model.allMachines().find((one) => one.name === name);
    if (machine === undefined) throw new Error(`Cannot find the machine ${name}`);
    return machine;
  }

  async stop(): Promise<void> {
    this.#closed.abort();
    await Promise.allSettled(this.#starting);
    await this.#relay.close();
    await this.#server.close();
  }

  /** Records the node's pods when its machine is released; the caller waits meanwhile. */
  async witness(call: RelayCall): Promise<void> {
    const machine = machineToRelease(call);
    if (machine === undefined) return;
    const path = `/api/v1/pods?fieldSelector=spec.nodeName%3D${machine}`;
    const { body } = await this.#plane.request({ path });
    const podsThen: readonly Pod[] = body.items;
    const order = Number(body.metadata.resourceVersion);
    const id = this.#ids.get(machine);
    this.releases.push({ machine, at: Date.now(), podsThen, order, ...(id && { id }) });
  }

  private start(machine: string, id: string): void {
    this.#ids.set(machine, id);
    this.machineStarts.push({ machine, id, at: Date.now() });
  }

  private end(machine: string): void {
    this.machineEnds.push({ machine, at: Date.now(), id: this.#ids.get(machine) });
  }

  private boot(machine: ComputeMachine): void {
    this.start(machine.name, machine.id);
    if (!this.#opened) return;
    const boot = this.#register(machine).finally(() => this.#starting.delete(boot));
    this.#starting.add(boot);
    boot.catch(() => {});
  }

  /**
   * Does what a kubelet does at startup: takes over an existing Node object with its name, with a
   * new boot, or creates one. A replacement has no generation, so no policy selects it.
   */
  async #register(machine: ComputeMachine): Promise<void> {
    const { name, zone } = machine;
    const bootID = randomUUID();
    await waitUntil(
      async () => {
        if (machine.status !== "RUNNING") return false;
        if (await this.#takeOver(name, bootID)) return true;
        const body = nodeObject({ name, zone, bootID });
        const made = await this.#plane.request({ method: "POST", path: "/api/v1/nodes", body });
        return made.status === 201;
      },
      {
        what: `the new machine ${name} is registered`,
        timeoutMs: 120_000,
        signal: AbortSignal.any([this.#closed.signal, this.#plane.signal]),
      },
    );
  }

  async #takeOver(name: string, bootID: string): Promise<boolean> {
    const path = `/api/v1/nodes/${name}`;
    const patch = { method: "PATCH", contentType: "application/merge-patch+json" };
    const metadata = { labels: { [generationLabel]: null } };
    const ofAge = await this.#plane.request({ ...patch, path, body: { metadata } });
    if (ofAge.status !== 200) return false;
    const status = { nodeInfo: { bootID } };
    const booted = await this.#plane.request({
      ...patch,
      path: `${path}/status`,
      body: { status },
    });
    return booted.status === 200;
  }
}

function machineToRelease({ method, path, body }: RelayCall): string | undefined {
  const one = /\/instances\/([^/?]+)(\?|$)/.exec(path)?.[1];
  if (method === "DELETE") return one;
  if (!/\/(recreate|delete)Instances(\?|$)/.test(path)) return undefined;
  const { instances } = JSON.parse(body) as { readonly instances: readonly string[] };
  return instances[0]?.split("/").at(-1);
}
