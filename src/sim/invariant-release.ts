import type { ReleaseRequest } from "../contracts/instance-releaser.ts";
import type { ModelObject } from "./api/model-object.ts";
import type { ModelStore } from "./api/object-store.ts";
import {
  controllerOf,
  type NodeObject,
  type PodObject,
} from "./cluster-controllers/cluster-object.ts";
import { type DepartureObject, departureStorage } from "./departure-object.ts";
import type { Invariant } from "./happening.ts";
import { departureOfNode } from "./node-departure.ts";

/**
 * Invariant 3: a machine is let go only after the last pod that had to leave has left, or after
 * the time was up and the ledger says so.
 */
export const releaseAfterDrain: Invariant = {
  name: "release-after-drain",
  check: (store) => (happening) => {
    if (happening.kind !== "Release") return undefined;
    const { request } = happening;
    const departure = departureOf(store, request);
    const node = nodeOf(store, request);
    if (node === undefined || (departure !== undefined && wasCutShort(departure))) return undefined;
    const left = store.collection("pods").onNode(node.metadata.name).filter(hadToLeave);
    if (left.length === 0) return undefined;
    const names = left.map(({ metadata }) => metadata.name).join(", ");
    return `${request.providerID} was released with pods on it: ${names}`;
  },
};

/** Invariant 6: the machine that is let go is the one behind the node that was emptied for it. */
export const rightMachine: Invariant = {
  name: "right-machine",
  check: (store) => (happening) => {
    if (happening.kind !== "Release") return undefined;
    const { request } = happening;
    const node = nodeOf(store, request);
    // Its Node may be gone by now: then the machine id in the request is what tells.
    if (node === undefined) return undefined;
    const departure = departureOfNode(store, node.metadata.name);
    if (departure?.metadata.uid === request.requestId) return undefined;
    return `${request.providerID} was released, but its node ${node.metadata.name} was not cordoned for it`;
  },
};

function nodeOf(store: ModelStore, { providerID }: ReleaseRequest): NodeObject | undefined {
  const name = providerID.slice(providerID.lastIndexOf("/") + 1);
  const node = store.collection("nodes").get("", name) as NodeObject | undefined;
  return node?.spec.providerID === providerID ? node : undefined;
}

function departureOf(store: ModelStore, request: ReleaseRequest): DepartureObject | undefined {
  const all = store.collection(departureStorage).all() as Iterable<DepartureObject>;
  for (const one of all) if (one.metadata.uid === request.requestId) return one;
  return undefined;
}

function wasCutShort({ status }: DepartureObject): boolean {
  return status?.timeline?.some(({ result }) => result.startsWith("CutShort")) ?? false;
}

/** A daemon stays, a finished pod is no matter, and a static pod goes with its machine. */
function hadToLeave(object: ModelObject): boolean {
  const { phase } = (object as PodObject).status;
  const owner = controllerOf(object)?.kind;
  return owner !== "DaemonSet" && owner !== "Node" && phase !== "Succeeded" && phase !== "Failed";
}
