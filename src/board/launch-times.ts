import type { FleetView } from "../contracts/fleet.ts";
import type { NodeFacts } from "../core/cluster/node.ts";
import { type Departure, isLive, isNoticed } from "../core/departure/departure.ts";
import { selectPolicy } from "../core/policy/policy.ts";
import { type Instant, instant, minutes } from "../core/time/time.ts";

/** A kubelet registers its Node within this time of its machine's launch, or something is wrong. */
const mostMs = minutes(15);

/**
 * The nodes with their machines' own launch times, which the controller knows from the cloud and
 * nobody else: it has planned each Departure's deadline by them. Without that the plan of the board
 * would be another than the controller's, by the seconds that a machine is older than its Node.
 */
export function withLaunchTimes({
  nodes,
  departures,
  policies,
}: Pick<FleetView, "nodes" | "departures" | "policies">): readonly NodeFacts[] {
  const planned = new Map<string, Departure>();
  for (const one of departures) {
    if (one.cause === "Planned" && isLive(one) && !isNoticed(one)) planned.set(one.node.uid, one);
  }
  return nodes.map((node) => {
    const instanceBornAt = launchTime(node, planned.get(node.uid), policies);
    return instanceBornAt === undefined ? node : { ...node, instanceBornAt };
  });
}

function launchTime(
  node: NodeFacts,
  departure: Departure | undefined,
  policies: FleetView["policies"],
): Instant | undefined {
  const { createdAt } = node;
  const deadlineAt = departure?.deadlineAt;
  if (deadlineAt === undefined || createdAt === undefined) return undefined;
  if (node.instanceBornAt !== undefined) return undefined;
  const policy = selectPolicy(node, policies)?.policy;
  if (policy?.lifetime.maxMs === undefined || policy.name !== departure?.policy) return undefined;
  const launchedAt = instant(deadlineAt - policy.lifetime.maxMs + policy.lifetime.reserveMs);
  // Anything else is the deadline of a policy that has been edited since.
  const isLikely = launchedAt < createdAt && createdAt - launchedAt <= mostMs;
  return isLikely ? launchedAt : undefined;
}
