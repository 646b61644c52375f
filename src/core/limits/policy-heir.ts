import type { NodeFacts } from "../cluster/node.ts";
import { type Policy, selectedBy } from "../policy/policy.ts";

export interface SelectedNodes {
  readonly policies: readonly Policy[];
  /** The nodes that each policy selects, by its name. */
  readonly nodes: ReadonlyMap<string | undefined, readonly NodeFacts[]>;
}

/**
 * The policies for which a node counts that has left by the policy of this name: that policy, as
 * long as it has other nodes, and then those that have taken its nodes over. Nobody knows which
 * nodes a deleted policy would select: then every other one.
 */
export function heirsOf(name: string, { policies, nodes }: SelectedNodes): readonly string[] {
  if ((nodes.get(name)?.length ?? 0) > 0) return [name];
  const former = policies.find((policy) => policy.name === name);
  const heirs = policies.filter((policy) => {
    const its = nodes.get(policy.name) ?? [];
    return former === undefined ? its.length > 0 : selectedBy(former, its).length > 0;
  });
  return heirs.length === 0 ? [name] : heirs.map((policy) => policy.name);
}
