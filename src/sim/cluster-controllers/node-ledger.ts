import { zoneLabel } from "../../core/cluster/node.ts";
import type { ModelObject } from "../api/model-object.ts";
import type { ModelStore } from "../api/object-store.ts";
import type { StoredChange } from "../api/watch-history.ts";
import { controllerOf, keyOf, type NodeObject, type PodObject } from "./cluster-object.ts";
import { parseQuantity } from "./quantity.ts";

export interface Load {
  readonly cpu: number;
  readonly memory: number;
  readonly pods: number;
}

export interface Spread {
  readonly byNode: ReadonlyMap<string, number>;
  readonly byZone: ReadonlyMap<string, number>;
}

const evenSpread: Spread = { byNode: new Map(), byZone: new Map() };

interface Booked extends Load {
  readonly nodeName: string;
  readonly owner: string;
}

/** What is promised on each node, and how the pods of each owner are spread. */
export class NodeLedger {
  readonly #nodes: (name: string) => NodeObject | undefined;
  readonly #loads = new Map<string, Load>();
  readonly #booked = new Map<string, Booked>();
  readonly #spread = new Map<string, Map<string, number>>();

  constructor(store: ModelStore) {
    this.#nodes = (name) => store.collection("nodes").get("", name) as NodeObject | undefined;
    const pods = store.collection("pods");
    for (const pod of pods.all()) this.#book(pod as PodObject);
    pods.subscribe((change) => this.#follow(change));
  }

  loadOf(nodeName: string): Load {
    return this.#loads.get(nodeName) ?? nothing;
  }

  /** How the pods of the same owner are spread over nodes and zones. */
  spreadOf(pod: ModelObject): Spread {
    const owner = controllerOf(pod)?.uid;
    const byNode = owner === undefined ? undefined : this.#spread.get(owner);
    if (!byNode) return evenSpread;
    const byZone = new Map<string, number>();
    for (const [name, count] of byNode) {
      const zone = zoneOfNode(this.#nodes(name));
      byZone.set(zone, (byZone.get(zone) ?? 0) + count);
    }
    return { byNode, byZone };
  }

  #follow(change: StoredChange): void {
    this.#unbook(keyOf(change.object));
    if (change.type !== "DELETED") this.#book(change.object as PodObject);
  }

  #book(pod: PodObject): void {
    const { nodeName } = pod.spec;
    const { phase } = pod.status;
    if (nodeName === undefined || phase === "Succeeded" || phase === "Failed") return;
    const owner = controllerOf(pod)?.uid ?? "";
    const booked = { nodeName, owner, ...requestsOf(pod) };
    this.#booked.set(keyOf(pod), booked);
    this.#count(booked, 1);
  }

  #unbook(key: string): void {
    const booked = this.#booked.get(key);
    if (!booked) return;
    this.#booked.delete(key);
    this.#count(booked, -1);
  }

  #count({ nodeName, owner, cpu, memory }: Booked, sign: 1 | -1): void {
    const load = this.loadOf(nodeName);
    this.#loads.set(nodeName, {
      cpu: load.cpu + sign * cpu,
      memory: load.memory + sign * memory,
      pods: load.pods + sign,
    });
    if (owner === "") return;
    const spread = this.#spread.get(owner) ?? new Map<string, number>();
    const count = (spread.get(nodeName) ?? 0) + sign;
    if (count > 0) spread.set(nodeName, count);
    else spread.delete(nodeName);
    if (spread.size > 0) this.#spread.set(owner, spread);
    else this.#spread.delete(owner);
  }
}

const nothing: Load = Object.freeze({ cpu: 0, memory: 0, pods: 0 });

export function requestsOf(pod: PodObject): Load {
  let cpu = 0;
  let memory = 0;
  for (const { resources } of pod.spec.containers) {
    cpu += parseQuantity(resources?.requests?.cpu);
    memory += parseQuantity(resources?.requests?.memory);
  }
  return { cpu, memory, pods: 1 };
}

export function zoneOfNode(node: NodeObject | undefined): string {
  return node?.metadata.labels?.[zoneLabel] ?? "";
}
