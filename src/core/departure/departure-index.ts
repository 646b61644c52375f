import { compareIdentity, type NodeFacts } from "../cluster/node.ts";
import type { Instant } from "../time/time.ts";
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
 * machine by now, whose lifetime starts anew.
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
