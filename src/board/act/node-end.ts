import type { FleetView } from "../../contracts/cluster.ts";
import type { NodeFacts } from "../../core/cluster/node.ts";
import { cloudDeadline, isLive } from "../../core/departure/departure.ts";
import { withLaunchTimes } from "../../core/departure/launch-time.ts";
import { type LifetimeEnd, lifetimeEnd } from "../../core/plan/lifetime-end.ts";
import { selectPolicy } from "../../core/policy/policy.ts";
import { earliest, type Instant } from "../../core/time/time.ts";

/** What ends a node, whatever a person requests of it. */
export interface NodeEnd {
  /** By its policy; undefined if that limits no lifetime. */
  readonly lifetime?: PolicyLifetime | undefined;
  /** When the cloud takes its machine, by a notice. */
  readonly takenAt?: Instant | undefined;
}

interface PolicyLifetime extends LifetimeEnd {
  readonly policy: string;
}

type NodeEndFacts = Pick<FleetView, "nodes" | "departures" | "policies">;

/** `departures` are those of the node, or of the whole fleet. */
export function nodeEnd(node: NodeFacts, facts: Omit<NodeEndFacts, "nodes">): NodeEnd {
  const departures = facts.departures.filter((one) => one.node.uid === node.uid);
  const taken = departures.filter(isLive).flatMap((one) => cloudDeadline(one) ?? []);
  const lifetime = lifetimeOf(node, { ...facts, departures });
  return { lifetime, takenAt: taken.reduce<Instant | undefined>(earliest, undefined) };
}

function lifetimeOf(
  node: NodeFacts,
  facts: Omit<NodeEndFacts, "nodes">,
): PolicyLifetime | undefined {
  const [known = node] = withLaunchTimes([node], facts.departures);
  const policy = selectPolicy(node, facts.policies)?.policy;
  const end = policy && lifetimeEnd(known, policy);
  return end && { ...end, policy: policy.name };
}
