import { compareIdentity } from "../cluster/identity.ts";
import type { NodeFacts } from "../cluster/node.ts";
import { type Instant, later } from "../time/time.ts";
import type { Departure } from "./departure.ts";

/**
 * The nodes, each with the launch time of the machine that stands behind it now: by the cloud's word, else as
 * far as the ledger tells it. A group that is quick makes its new machine before the old Node object is gone, and
 * the machine takes it over: same uid, new boot (GKE does so with preemptible nodes). Its life
 * began no earlier than the departure of the one before it ended. Without this a new machine would
 * be overdue from its first minute, and be rotated again and again.
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
