import { compareIdentity, type NodeFacts, type NodeIdentity } from "../cluster/node.ts";
import type { PhaseResult } from "../departure/ledger.ts";
import { replacement } from "./interruption.ts";

/**
 * The result that ends a departure if a fresh read shows another machine; undefined if it is the
 * same.
 */
export function machineLost(
  then: NodeIdentity,
  now: NodeFacts | undefined,
): PhaseResult | undefined {
  if (now === undefined) return { event: "NodeGone", reason: "NodeGone" };
  const found = compareIdentity(then, now);
  return found === "Same" ? undefined : replacement(found, now);
}

/** Completes the identity of a hand-written Departure that names only the node's uid. */
export function wholeIdentity(named: NodeIdentity, tested: NodeIdentity): NodeIdentity {
  if (named.uid !== tested.uid) return named;
  const { providerID = tested.providerID, bootID = tested.bootID } = named;
  return { ...named, providerID, bootID };
}
