import type { ReleaseRequest } from "../../contracts/cloud.ts";
import { type Instant, type Millis, parseInstant, plus, seconds } from "../../core/time/time.ts";
import { isReady, type ModelObject, type ModelStore } from "../api/store/object-store.ts";
import {
  controllerOf,
  type NodeObject,
  type PodObject,
} from "../cluster-controllers/cluster-object.ts";
import {
  type DepartureObject,
  departureOfNode,
  departureStorage,
  type Invariant,
  phaseOf,
  type TraceEvent,
} from "./invariant.ts";

/** What the policy of a run allows, defined independently of core. */
interface StartRules {
  /** Whether windows let a planned departure start at an instant. */
  readonly mayStart: (at: Instant) => boolean;
  /** How many nodes may be unavailable at once, including the one that starts. */
  readonly budgetNodes: number;
}

/**
 * Invariant 1: no departure starts outside its windows or over its budgets, unless a deadline
 * requires it.
 */
export function startIsAllowed(rules: StartRules): Invariant {
  return {
    name: "start-is-allowed",
    check: (store) => (event) => {
      const departure = startedNow(event);
      if (departure === undefined || departure.status?.reason === "DeadlineForces")
        return undefined;
      const { name } = departure.spec.node;
      if (!rules.mayStart(event.at)) return `node ${name} started to leave outside the windows`;
      const out = nodesOut(store, name);
      if (out + 1 <= rules.budgetNodes) return undefined;
      return `node ${name} started to leave while ${out} others were out, expected at most ${rules.budgetNodes} in total`;
    },
  };
}

/** Invariant 2: no departure is planned past its deadline, and no deadline past the machine's. */
export function plannedInTime(lifetime: Millis): Invariant {
  return {
    name: "planned-in-time",
    check: (store) => (event) => {
      if (event.kind !== "Change" || event.storage !== departureStorage) return undefined;
      const { type, object } = event.change;
      const { node, cause, departAt, deadlineAt, noticedAt } = (object as DepartureObject).spec;
      // After a notice it is no longer planned: its deadline is the cloud's, which may name none.
      if (type === "DELETED" || cause !== "Planned" || noticedAt !== undefined) return undefined;
      const [departs, deadline] = [departAt, deadlineAt].map((text) => parseInstant(text ?? ""));
      if (departs === undefined || deadline === undefined) {
        return `the planned departure of ${node.name} has no instant or no deadline`;
      }
      const found = store.collection("nodes").get("", node.name);
      const bornAt = parseInstant(found?.metadata.creationTimestamp ?? "");
      const isSame = found?.metadata.uid === node.uid;
      if (isSame && bornAt !== undefined && deadline > plus(bornAt, lifetime)) {
        return `the deadline of ${node.name} is later than its machine may live`;
      }
      // A departure that was uncordoned past its deadline has no better time left.
      if (departs <= deadline || event.at >= deadline) return undefined;
      return `${node.name} is planned past its deadline`;
    },
  };
}

function startedNow(event: TraceEvent): DepartureObject | undefined {
  if (event.kind !== "Change" || event.storage !== departureStorage) return undefined;
  const departure = event.change.object as DepartureObject;
  const before = event.change.previous as DepartureObject | undefined;
  if (departure.spec.cause !== "Planned" || departure.spec.noticedAt !== undefined)
    return undefined;
  const waited = before === undefined || ["Scheduled", "Held"].includes(phaseOf(before));
  return waited && phaseOf(departure) === "Preparing" ? departure : undefined;
}

/** Nodes that are unavailable: not ready, or cordoned by anybody. */
function nodesOut(store: ModelStore, except: string): number {
  const nodes = [...store.collection("nodes").all()] as NodeObject[];
  return nodes.filter(
    (node) => node.metadata.name !== except && (!isReady(node) || node.spec.unschedulable === true),
  ).length;
}

/**
 * Each departure ends in exactly one outcome, which never changes; and every phase has its reason.
 */
export const oneOutcome: Invariant = {
  name: "one-outcome",
  check: () => (event) => {
    if (event.kind !== "Change" || event.storage !== departureStorage) return undefined;
    const { type, object } = event.change;
    const [now, before] = [object, event.change.previous] as [
      DepartureObject,
      DepartureObject | undefined,
    ];
    const { name } = now.metadata;
    if (type === "DELETED") {
      return phaseOf(now) === "Ended" ? undefined : `${name} was deleted before it had ended`;
    }
    const outcome = before?.status?.outcome;
    if (outcome !== undefined && outcome !== now.status?.outcome) {
      return `${name} ended as ${outcome} and then as ${now.status?.outcome ?? "nothing"}`;
    }
    const ended = phaseOf(now) === "Ended";
    if (ended !== (now.status?.outcome !== undefined)) {
      return `${name} is in phase ${phaseOf(now)} with the outcome ${now.status?.outcome ?? "none"}`;
    }
    const moved = before !== undefined && phaseOf(before) !== phaseOf(now);
    const isSaid = Boolean(now.status?.reason) && Boolean(now.status?.message);
    return moved && !isSaid ? `${name} came to ${phaseOf(now)} without a reason` : undefined;
  },
};

/**
 * Invariant 3: a machine is released only after the last pod that must leave has left, or after the
 * time was up and the status says so.
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
    // Its Node may be gone: then only the machine id of the request identifies the machine.
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

/** A daemon stays, a finished pod does not matter, and a static pod goes with its machine. */
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

/** Replicas that do not lead also write Events and the Lease itself. */
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
