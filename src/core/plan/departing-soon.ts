import type { NodeFacts } from "../cluster/node.ts";
import { type Departure, isLive, isNoticed, isUnderWay } from "../departure/departure.ts";
import { departureAnnotation } from "../notice/interruption.ts";
import { between, earlier, earliest, type Instant, type Millis, minus } from "../time/time.ts";
import type { FleetPlan } from "./fleet-plan.ts";

/** Its effect is PreferNoSchedule: the scheduler places pods elsewhere if they fit there. */
export const departingSoonTaint = "lastcall.dev/departing-soon";

/** Whether a node should have the taint of nodes that depart soon. */
export type SoonStanding = "Soon" | "NotSoon";

export interface SoonChange {
  readonly node: NodeFacts;
  readonly to: SoonStanding;
}

export interface SoonQuestion {
  readonly nodes: readonly NodeFacts[];
  readonly departures: readonly Departure[];
  readonly plan: FleetPlan;
  readonly at: Instant;
  /** How long before its departure a node gets the taint; undefined: never. */
  readonly leadMs: Millis | undefined;
}

/**
 * The nodes that get or lose the taint now, and when the next one gets it. Nodes that are departing
 * or under notice are skipped, so that no write conflicts with their cordon.
 */
export function soonChanges(question: SoonQuestion): {
  readonly changes: readonly SoonChange[];
  readonly askAgainAt: Instant | undefined;
} {
  const { nodes, departures, at, leadMs } = question;
  const departAts = leadMs === undefined ? new Map<string, Instant>() : expected(question);
  const leaving = new Set(
    departures
      .filter((one) => isLive(one) && (isUnderWay(one) || isNoticed(one)))
      .map(({ node }) => node.uid),
  );
  const changes = nodes.flatMap((node): SoonChange[] => {
    const { uid, taints, annotations, unschedulable, deletionAt } = node;
    const departs = leaving.has(uid) || departureAnnotation in annotations;
    if (departs || deletionAt !== undefined) return [];
    const departAt = departAts.get(uid);
    const isSoon = departAt !== undefined && between(at, departAt) <= (leadMs ?? 0);
    // No pods are scheduled to a cordoned node anyway.
    const to: SoonStanding = isSoon && !unschedulable ? "Soon" : "NotSoon";
    const stands = taints.some(({ key }) => key === departingSoonTaint);
    return stands === (to === "Soon") ? [] : [{ node, to }];
  });
  const later = [...departAts.values()]
    .map((departAt) => minus(departAt, leadMs as Millis))
    .filter((soonAt) => soonAt > at);
  return {
    changes,
    askAgainAt: later.reduce<Instant | undefined>(
      (first, next) => earliest(first, next),
      undefined,
    ),
  };
}

/**
 * When each node leaves, by the plan of an active policy or by a request, whichever is first.
 */
function expected({ plan, departures }: SoonQuestion): ReadonlyMap<string, Instant> {
  const planned = plan.policies
    .filter(({ policy }) => !policy.paused && !policy.dryRun)
    .flatMap((one) => one.departures.map(({ node, departAt }) => [node.uid, departAt] as const));
  const asked = departures
    .filter((one) => isLive(one) && one.cause === "Manual" && !one.hold)
    .flatMap(({ node, departAt }) =>
      departAt === undefined ? [] : [[node.uid, departAt] as const],
    );
  const first = new Map(planned);
  for (const [uid, departAt] of asked) {
    first.set(uid, earlier(departAt, first.get(uid) ?? departAt));
  }
  return first;
}
