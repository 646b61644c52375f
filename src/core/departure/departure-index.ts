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

/** The departures of a fleet: the live ones found by node, and apart those that wait no more. */
export interface DepartureIndex {
  /** Under way or ended. Of a fleet's departures most wait for their time. */
  readonly begun: readonly Departure[];
  /** Those that have ended, by the uid of the node. */
  readonly former: ReadonlyMap<string, readonly Departure[]>;
  /**
   * The live departure that concerns the node; of several the one that is furthest, of advice and
   * of requests only what has begun.
   */
  of(node: NodeFacts): Departure | undefined;
  /** A person's request that has not begun; of several the first. */
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

/** Of one that a person holds nobody knows when. */
function startOf({ hold, departAt, createdAt }: Departure): number {
  return hold ? Number.POSITIVE_INFINITY : (departAt ?? createdAt ?? 0);
}

/**
 * The instant that the plan before gave the node; undefined where it had none, or where the machine
 * behind the node is another by now and its life begins again.
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
   * When the plan, or whoever asked for it, expected it; undefined where nobody has named an
   * instant.
   */
  readonly plannedAt: Instant | undefined;
}

/**
 * By policy: when a node was last made to leave, up to `at`; what the cloud takes does not count.
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

/** One that had to wait for another drain before its node was marked left as that wait was over. */
function leftAt({ startedAt, timeline }: DepartureStatus): Instant | undefined {
  const began = timeline.findLastIndex(({ step }) => step === "Preparing");
  const waited = timeline.findLastIndex(({ step }) => step === "ConflictWait");
  return waited <= began ? startedAt : (timeline[waited + 1]?.at ?? startedAt);
}

function urgency(departure: Departure): number {
  if (!isVoluntary(departure.cause)) return 2;
  return isUnderWay(departure) ? 1 : 0;
}
