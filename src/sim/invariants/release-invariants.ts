import type { ReleaseRequest } from "../../contracts/cloud/instance-releaser.ts";
import { parseInstant, plus, seconds } from "../../core/time/time.ts";
import type { ModelObject } from "../api/store/model-object.ts";
import type { ModelStore } from "../api/store/object-store.ts";
import {
  controllerOf,
  type NodeObject,
  type PodObject,
} from "../cluster-controllers/cluster-object.ts";
import { type DepartureObject, departureOfNode, departureStorage } from "./departure-object.ts";
import type { Invariant, TraceEvent } from "./invariant.ts";

/**
 * Invariant 3: a machine is released only after the last pod that had to leave has left, or after
 * the time was up and the ledger says so.
 */
export const releaseAfterDrain: Invariant = {
  name: "release-after-drain",
  check: (store) => (event) => {
    if (event.kind !== "Release") return undefined;
    const { request } = event;
    const departure = departureOf(store, request);
    const node = nodeOf(store, request);
    if (node === undefined || (departure !== undefined && wasCutShort(departure))) return undefined;
    const left = store.collection("pods").onNode(node.metadata.name).filter(hadToLeave);
    if (left.length === 0) return undefined;
    const names = left.map(({ metadata }) => metadata.name).join(", ");
    return `${request.providerID} was released with pods on it: ${names}`;
  },
};

/** Invariant 6: the released machine is the one behind the node that was drained for it. */
export const rightMachine: Invariant = {
  name: "right-machine",
  check: (store) => (event) => {
    if (event.kind !== "Release") return undefined;
    const { request } = event;
    const node = nodeOf(store, request);
    // Its Node may be gone by now: then only the machine id of the request identifies the machine.
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

/** Invariant 5: a replica that writes or releases holds the Lease at that moment. */
export const oneActor: Invariant = {
  name: "one-actor",
  check: (store) => (event) => {
    const act = actOf(event);
    if (act === undefined) return undefined;
    const { holder, untilAt } = leaseOf(store);
    if (holder === act.actor && event.at < untilAt) return undefined;
    const found = holder === undefined ? "nobody did" : `${holder} did until its term ended`;
    return `${act.actor} did ${act.what} without holding the lease, ${found}`;
  },
};

/** Events and the Lease itself are written by those who do not lead, too. */
function actOf(event: TraceEvent): { actor: string; what: string } | undefined {
  if (event.kind === "Release") {
    return { actor: event.actor, what: `release ${event.request.providerID}` };
  }
  if (event.kind !== "Request") return undefined;
  const { method, path } = event.request;
  if (/\/(events|leases)(\/|$)/.test(path)) return undefined;
  return { actor: event.actor, what: `${method} ${path}` };
}

function leaseOf(store: ModelStore): { holder: string | undefined; untilAt: number } {
  for (const lease of store.collection("leases.coordination.k8s.io").all()) {
    if (lease.metadata.name !== "lastcall") continue;
    const spec = lease.spec as {
      holderIdentity?: string;
      renewTime?: string;
      leaseDurationSeconds?: number;
    };
    const renewedAt = parseInstant(spec.renewTime ?? "");
    const term = seconds(spec.leaseDurationSeconds ?? 0);
    const untilAt = renewedAt === undefined ? 0 : plus(renewedAt, term);
    return { holder: spec.holderIdentity || undefined, untilAt };
  }
  return { holder: undefined, untilAt: 0 };
}
