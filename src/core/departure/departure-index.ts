import { compareIdentity, type NodeFacts, type NodeIdentity } from "../cluster/node.ts";
import type { Reason } from "../reason/reason.ts";
import { hours, type Instant, later, type Millis, millis, minutes, plus } from "../time/time.ts";
import {
  type Departure,
  type DepartureStatus,
  isLive,
  isUnderWay,
  isVoluntary,
  isWaitingAdvice,
  isWaitingRequest,
} from "./departure.ts";

/** Indexes the departures of a fleet: live ones by node, and those that have started. */
export interface DepartureIndex {
  /** Under way or ended; most departures of a fleet are not due yet. */
  readonly begun: readonly Departure[];
  /** The ended departures, by the uid of the node. */
  readonly former: ReadonlyMap<string, readonly Departure[]>;
  /**
   * The live departure of the node; of several, the most advanced one. Advice and requests count
   * only once they have started.
   */
  of(node: NodeFacts): Departure | undefined;
  /** The first of a person's requests that has not started. */
  requestOf(node: NodeFacts): Departure | undefined;
}

export function indexDepartures(departures: readonly Departure[], at: Instant): DepartureIndex {
  const byUid = new Map<string, Departure>();
  const requests = new Map<string, Departure>();
  const begun: Departure[] = [];
  for (const departure of departures) {
    if (isUnderWay(departure)) begun.push(departure);
    if (!isLive(departure) || isWaitingAdvice(departure, at)) continue;
    if (isWaitingRequest(departure)) {
      const former = requests.get(departure.node.uid);
      if (former === undefined || startOf(departure) < startOf(former)) {
        requests.set(departure.node.uid, departure);
      }
      continue;
    }
    const other = byUid.get(departure.node.uid);
    if (other === undefined || urgency(departure) > urgency(other)) {
      byUid.set(departure.node.uid, departure);
    }
  }
  const ended = begun.filter((departure) => !isLive(departure));
  const former = Map.groupBy(ended, (departure) => departure.node.uid);
  return {
    ...{ begun, former },
    of: (node) => byUid.get(node.uid),
    requestOf: (node) => requests.get(node.uid),
  };
}

/** When a departure is due; never for one that a person holds. */
function startOf({ hold, departAt, createdAt }: Departure): number {
  return hold ? Number.POSITIVE_INFINITY : (departAt ?? createdAt ?? 0);
}

/**
 * The instant of the node's previous plan; undefined if it had none, or if the node has another
 * machine by now, whose lifetime starts over.
 */
export function keptInstant(
  departure: Departure | undefined,
  node: NodeFacts,
): Instant | undefined {
  if (departure === undefined || departure.cause !== "Planned" || isUnderWay(departure)) {
    return undefined;
  }
  return compareIdentity(departure.node, node) === "Same" ? departure.departAt : undefined;
}

export interface NewestStart {
  readonly at: Instant;
  /**
   * The planned or requested instant; undefined if there is none.
   */
  readonly plannedAt: Instant | undefined;
}

/**
 * By policy: the last voluntary start up to `at`. Interruptions do not count.
 */
export function newestStarts(
  departures: readonly Departure[],
  at: Instant,
): ReadonlyMap<string, NewestStart> {
  const newest = new Map<string, NewestStart>();
  for (const { policy, cause, departAt, status } of departures) {
    const startedAt = leftAt(status);
    if (policy === undefined || startedAt === undefined || startedAt > at) continue;
    if (isVoluntary(cause) && startedAt > (newest.get(policy)?.at ?? Number.NEGATIVE_INFINITY)) {
      newest.set(policy, { at: startedAt, plannedAt: departAt });
    }
  }
  return newest;
}

/** When a departure started, or when its wait for another drain ended. */
function leftAt({ startedAt, timeline }: DepartureStatus): Instant | undefined {
  const began = timeline.findLastIndex(({ step }) => step === "Preparing");
  const waited = timeline.findLastIndex(({ step }) => step === "ConflictWait");
  return waited <= began ? startedAt : (timeline[waited + 1]?.at ?? startedAt);
}

function urgency(departure: Departure): number {
  if (!isVoluntary(departure.cause)) return 2;
  return isUnderWay(departure) ? 1 : 0;
}

const firstMs = minutes(10);
const longestMs = hours(6);

/**
 * When a node whose departures failed, were rolled back or were cancelled by a user may be tried
 * again: ten minutes after the last of them ended (twice within the default reserve before a
 * deadline), doubling with each further one, at most six hours. Undefined if none failed. The
 * deadline still forces the departure: this only moves the planned instant.
 */
export function retryAt(former: readonly Departure[]): Instant | undefined {
  const undone = former.filter(
    ({ status }) =>
      status.outcome === "RolledBack" ||
      status.outcome === "Failed" ||
      // A departure that was cancelled before it started disturbed nothing.
      (status.outcome === "Cancelled" && status.startedAt !== undefined),
  );
  const ends = undone.flatMap(({ status }) => status.endedAt ?? []);
  if (ends.length === 0) return undefined;
  const waitMs = Math.min(longestMs, firstMs * 2 ** (ends.length - 1)) as typeof firstMs;
  return plus(Math.max(...ends) as Instant, waitMs);
}

const firstRestMs = hours(1);
const longestRestMs = hours(24);

/** The reasons of departures that drained the node completely but did not end its machine. */
const inVain: ReadonlySet<Reason> = new Set(["ReleaseFailed", "MachineNotTaken"]);

/**
 * When a node that was drained but not released may be planned again: an hour after the last time,
 * doubling with each further one, at most a day. A deadline does not shorten this, because the
 * machine would stay again. Undefined if its machine never stayed, or has been replaced since.
 */
export function restsUntil(node: NodeIdentity, former: readonly Departure[]): Instant | undefined {
  const stayed = former.filter(
    (one) =>
      isVoluntary(one.cause) &&
      (one.status.outcome === "RolledBack" || one.status.outcome === "Failed") &&
      one.status.reason !== undefined &&
      inVain.has(one.status.reason) &&
      compareIdentity(one.node, node) === "Same",
  );
  const ends = stayed.flatMap(({ status }) => status.endedAt ?? []);
  if (ends.length === 0) return undefined;
  const restMs = Math.min(longestRestMs, firstRestMs * 2 ** (ends.length - 1));
  return plus(Math.max(...ends) as Instant, millis(restMs));
}

/** How long the record of an ended departure is kept. */
const keepEndedMs: Millis = hours(72);

/**
 * The most records kept for one node, however recent: an agent finds a free name among 999 by
 * trying each, and a platform that issues and withdraws notices all day must not use them up.
 */
const mostRecords = 100;

/** Whether to delete the record of an ended departure; `ofNode` are all departures of its node. */
export function isForgettable(
  departure: Departure,
  ofNode: readonly Departure[],
  now: Instant,
): boolean {
  const endedAt = endOf(departure);
  if (endedAt === undefined) return false;
  if (plus(endedAt, keepEndedMs) <= now) return true;
  if (ofNode.length <= mostRecords) return false;
  return ofNode.filter((one) => isNewer(one, departure)).length >= mostRecords;
}

function isNewer(one: Departure, than: Departure): boolean {
  const [a, b] = [endOf(one) ?? 0, endOf(than) ?? 0];
  return a > b || (a === b && one.name > than.name);
}

function endOf({ status }: Departure): Instant | undefined {
  return status.phase === "Ended" ? status.endedAt : undefined;
}

/**
 * The nodes, each with the launch time of its current machine: as the cloud reports it, otherwise
 * as the departures show it. A fast group creates the new machine before the old Node object is
 * gone, and the machine takes the object over: same uid, new boot (GKE does so with preemptible
 * nodes). Its lifetime then counts from the end of the previous machine's departure. Otherwise a
 * new machine would be overdue from its first minute, and be rotated again and again.
 */
export function withLaunchTimes(
  nodes: readonly NodeFacts[],
  departures: readonly Departure[],
): readonly NodeFacts[] {
  const ended = departures.filter(({ status }) => status.endedAt !== undefined);
  if (ended.length === 0) return nodes;
  const byUid = Map.groupBy(ended, (one) => one.node.uid);
  return nodes.map((node) => {
    if (node.instanceBornAt !== undefined) return node;
    const instanceBornAt = newestEnd(node, byUid.get(node.uid) ?? []);
    return instanceBornAt === undefined ? node : { ...node, instanceBornAt };
  });
}

/** When the last departure of another machine under this Node object ended. */
function newestEnd(node: NodeFacts, former: readonly Departure[]): Instant | undefined {
  return former
    .filter((one) => compareIdentity(one.node, node) !== "Same")
    .map((one) => one.status.endedAt as Instant)
    .reduce<Instant | undefined>((newest, at) => (newest ? later(newest, at) : at), undefined);
}
