import { compareIdentity, type NodeFacts } from "../cluster/node.ts";
import { type Instant, later } from "../time/time.ts";
import type { Departure } from "./departure.ts";

/**
 * The nodes, each with the launch time of its current machine: as the cloud reports it, otherwise
 * as the departures show it. Only the controller asks the cloud, and it records the answer in the
 * Departure that it plans by: a reader that counted from the Node object instead would
 * contradict it.
 *
 * A fast group creates the new machine before the old Node object is gone, and the machine takes
 * the object over: same uid, new boot (GKE does so with preemptible nodes). Without a record of its
 * own, its lifetime counts from the end of the previous machine's departure. Otherwise a new
 * machine would be overdue from its first minute, and be rotated again and again.
 */
export function withLaunchTimes(
  nodes: readonly NodeFacts[],
  departures: readonly Departure[],
): readonly NodeFacts[] {
  const telling = departures.filter(
    ({ launchedAt, status }) => launchedAt !== undefined || status.endedAt !== undefined,
  );
  if (telling.length === 0) return nodes;
  const byUid = Map.groupBy(telling, (one) => one.node.uid);
  return nodes.map((node) => {
    if (node.instanceBornAt !== undefined) return node;
    const own = Map.groupBy(byUid.get(node.uid) ?? [], (one) =>
      compareIdentity(one.node, node) === "Same" ? "Same" : "Former",
    );
    const instanceBornAt =
      newest(own.get("Same"), (one) => one.launchedAt) ??
      newest(own.get("Former"), (one) => one.status.endedAt);
    return instanceBornAt === undefined ? node : { ...node, instanceBornAt };
  });
}

function newest(
  departures: readonly Departure[] = [],
  instantIn: (departure: Departure) => Instant | undefined,
): Instant | undefined {
  return departures
    .flatMap((one) => instantIn(one) ?? [])
    .reduce<Instant | undefined>((last, at) => (last ? later(last, at) : at), undefined);
}
