import type { Node, Pod } from "kubernetes-types/core/v1.js";
import type { ControlPlane } from "../support/control-plane.ts";
import { type FleetNode, nodeObject } from "../support/kwok-fleet.ts";
import { waitUntil } from "../support/wait-until.ts";
import type { History, MachineEnd, Release, WatchedKind } from "./history.ts";

/** A cloud other than Compute Engine, with the kubelets of the machines that it creates. */
export interface FleetCloud {
  /** The flags of `lastcall run` for it. */
  readonly flags: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly witness: MachineWitness;
  /** An original machine, as its Node is registered. */
  machineFor(name: string): Promise<Pick<FleetNode, "providerID" | "labels">>;
  /** From now on every new machine registers a Node. */
  open(): Promise<void>;
  stop(): Promise<void>;
}

/** A cloud that runs in the cluster, creates nodes for pending pods, and ends with the plane. */
export interface GrowingCloud {
  /** What the onlooker watches in addition. */
  readonly watched: readonly WatchedKind[];
  /** Creates the pods of `workload`, and resolves when there are nodes for all of them. */
  grow(): Promise<readonly Node[]>;
  /** The fate of its machines, derived from what was seen in the cluster. */
  machinesOf(seen: Pick<History, "changes" | "audit">): Pick<History, "releases" | "machineEnds">;
}

/** Records the fate of machines, and registers new ones. */
export class MachineWitness {
  readonly releases: Release[] = [];
  readonly machineEnds: MachineEnd[] = [];
  readonly #plane: ControlPlane;
  readonly #closed = new AbortController();
  #count = 0;

  constructor(plane: ControlPlane) {
    this.#plane = plane;
  }

  /** Records the node's pods when its machine is released; the caller waits meanwhile. */
  async seeRelease(machine: string): Promise<void> {
    const path = `/api/v1/pods?fieldSelector=spec.nodeName%3D${machine}`;
    const { body } = await this.#plane.request({ path });
    const podsThen: readonly Pod[] = body.items;
    this.releases.push({ machine, at: Date.now(), podsThen });
  }

  seeEnd(machine: string): void {
    this.machineEnds.push({ machine, at: Date.now() });
  }

  nextName(): string {
    this.#count += 1;
    return `new-${this.#count}`;
  }

  /** A replacement has no generation, so no policy selects it. */
  async register(node: FleetNode): Promise<void> {
    await waitUntil(
      async () => {
        const body = nodeObject(node);
        const made = await this.#plane.request({ method: "POST", path: "/api/v1/nodes", body });
        return made.status === 201;
      },
      {
        what: `the new machine ${node.name} is registered`,
        timeoutMs: 60_000,
        signal: AbortSignal.any([this.#closed.signal, this.#plane.signal]),
      },
    );
  }

  close(): void {
    this.#closed.abort();
  }
}
