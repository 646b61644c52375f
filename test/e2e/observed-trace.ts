/**
 * What an onlooker of a real control plane saw, as a trace of the fault machine: the rules that
 * judge seeded worlds judge end-to-end runs as well.
 */
import {
  actsOnOwnNode,
  dyingStaysCordoned,
  evictedFromCordoned,
  releasedRightMachine,
  releasedWhenEmpty,
} from "../fault-machine/checkers/act-checkers.ts";
import { markHasDeparture } from "../fault-machine/checkers/cordon-checkers.ts";
import { endedWithEvidence } from "../fault-machine/checkers/evidence-checkers.ts";
import { othersCordonStays, undisturbedStays } from "../fault-machine/checkers/pod-checkers.ts";
import type { TraceEvent } from "../fault-machine/trace.ts";
import { View } from "../fault-machine/view.ts";
import type { World } from "../fault-machine/world.ts";
import { type AuditEntry, unanswered } from "../support/audit-log.ts";
import { type Change, type History, keyOf, type WatchedKind } from "./history.ts";

/** The rules that need objects, writes and machines only, and have no time scale but their own. */
export const observedRules = [
  evictedFromCordoned,
  undisturbedStays,
  othersCordonStays,
  releasedWhenEmpty,
  releasedRightMachine,
  actsOnOwnNode,
  dyingStaysCordoned,
  endedWithEvidence,
  markHasDeparture,
] as const;

export interface Observed {
  /** The controller's user name at the API server. */
  readonly user: string;
  /** What the policy says, as far as the rules ask. */
  readonly policy: {
    readonly drain: { readonly onTimeout: string };
    readonly instance: { readonly release: string };
  };
}

/** Each broken rule, as a sentence; empty if there is none. */
export function brokenRules(history: History, observed: Observed): readonly string[] {
  const view = new View({ policy: observed.policy } as unknown as World);
  const hasWritten = history.audit.some(({ user }) => user === observed.user);
  if (!hasWritten)
    throw new Error(`${observed.user} has written nothing: there is nothing to judge`);
  const judges = observedRules.map(({ name, start }) => ({ name, judge: start() }));
  return traceOf(history, observed).flatMap((event) => {
    view.apply(event);
    return judges.flatMap(({ name, judge }) => {
      const what = judge(event, view);
      return what === undefined ? [] : [`${name}: ${what}`];
    });
  });
}

const storages: Readonly<Record<WatchedKind, string>> = {
  Node: "nodes",
  Pod: "pods",
  Budget: "poddisruptionbudgets.policy",
  Departure: "departures.lastcall.dev",
  NodeClaim: "nodeclaims.karpenter.sh",
};

/** An event with its place: the cluster's order where it is known, and otherwise by time. */
interface Placed {
  readonly order: number;
  /** At the same order: a change comes before the request that made it. */
  readonly rank: 0 | 1;
  readonly event: TraceEvent;
}

/** Everything that is known to have happened, in order. */
export function traceOf(history: History, { user }: Observed): readonly TraceEvent[] {
  const { changes } = history;
  const placed = [
    ...changesOf(changes),
    ...machinesOf(history),
    ...history.audit.filter((entry) => entry.user === user).map((one) => requestOf(one, changes)),
  ];
  return placed
    .toSorted((a, b) => a.order - b.order || a.rank - b.rank || a.event.at - b.event.at)
    .map(({ event }) => event);
}

function changesOf(changes: readonly Change[]): readonly Placed[] {
  const known = new Map<string, object>();
  return changes.map((change) => {
    const { kind, type, object, order, atMs: at = 0 } = change;
    const key = `${kind} ${keyOf(object)}`;
    const previous = known.get(key);
    if (type === "Set") known.set(key, object);
    else known.delete(key);
    const what = type === "Gone" ? "DELETED" : previous === undefined ? "ADDED" : "MODIFIED";
    const fields = {
      kind: "Change",
      storage: storages[kind],
      type: what,
      object,
      previous,
    } as const;
    return { order, rank: 0, event: { at, ...fields } as unknown as TraceEvent };
  });
}

/** Machines with the cloud's ids only: what has no identity proves nothing. */
function machinesOf({
  changes,
  releases,
  machineEnds,
  machineStarts = [],
}: History): readonly Placed[] {
  // A release knows a revision that no watched change may have.
  const known = [...changes, ...releases.map(({ order = 0, at }) => ({ order, atMs: at }))];
  const placeAt = (atMs: number): number =>
    known.reduce((most, one) => ((one.atMs ?? 0) <= atMs ? Math.max(most, one.order) : most), 0);
  const ends = machineEnds.flatMap(({ machine: name, id, at }) => {
    if (id === undefined) return [];
    const because = releases.some((one) => one.id === id) ? "Released" : undefined;
    return [placedMachine({ order: placeAt(at), at, name, id, what: "Gone", because })];
  });
  const starts = machineStarts.map(({ machine: name, id, at }) =>
    placedMachine({ order: placeAt(at), at, name, id, what: "Registered", because: undefined }),
  );
  const ended = new Set(machineEnds.map(({ id }) => id));
  const begun = new Set<string>();
  const stops = releases.flatMap(({ machine: name, id, at, order }) => {
    // A request that is repeated, perhaps when the next machine has the name, stops nothing more.
    if (id === undefined || order === undefined || begun.has(id) || !ended.has(id)) return [];
    begun.add(id);
    return [placedMachine({ order, at, name, id, what: "Stopping", because: "Released" })];
  });
  return [...starts, ...stops, ...ends];
}

function placedMachine({
  order,
  ...machine
}: {
  readonly order: number;
  readonly at: number;
  readonly name: string;
  readonly id: string;
  readonly what: "Registered" | "Stopping" | "Gone";
  readonly because: string | undefined;
}): Placed {
  return { order, rank: 1, event: { ...machine, kind: "Machine", bornAt: 0 } };
}

const methods: Readonly<Record<string, string>> = {
  create: "POST",
  update: "PUT",
  patch: "PATCH",
  delete: "DELETE",
};

const kinds: Readonly<Record<string, WatchedKind>> = {
  nodes: "Node",
  pods: "Pod",
  departures: "Departure",
};

/**
 * A write comes right after the change that it made: the first of its object that was seen after
 * the request had arrived. Without one, it comes when it was answered.
 */
function requestOf(entry: AuditEntry, changes: readonly Change[]): Placed {
  const { verb, resource, subresource, namespace, name, code } = entry;
  const [sentAt, answeredAt] = [entry.receivedAtUs / 1000, entry.answeredAtUs / 1000];
  const made = changes.find(
    ({ kind, object, atMs = 0 }) =>
      kind === kinds[resource] && object.metadata?.name === name && atMs >= sentAt,
  );
  const last = changes.findLast(({ atMs = 0 }) => atMs <= answeredAt);
  const scope = namespace === "" ? "" : `/namespaces/${namespace}`;
  const path = `/api/v1${scope}/${resource}/${name}${subresource && `/${subresource}`}`;
  const body = undefined;
  const status = code === unanswered ? 0 : code;
  const request = {
    process: "controller",
    sentAt,
    method: methods[verb] ?? verb,
    path,
    body,
    status,
  };
  const at = made?.atMs ?? answeredAt;
  return {
    order: (made ?? last)?.order ?? 0,
    rank: 1,
    event: { at, kind: "Request", ...request, answer: "Arrived" },
  };
}
