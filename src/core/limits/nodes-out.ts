import type { NodeFacts } from "../cluster/node.ts";
import type { Policy } from "../policy/policy.ts";
import { type BudgetUsage, type BudgetVerdict, budgetVerdict } from "./budget.ts";

/** The nodes that are out, and whether they leave room for one whose start has been recorded. */
export interface NodesOut {
  readonly names: ReadonlySet<string>;
  readonly hold: Extract<BudgetVerdict, { kind: "Held" }> | undefined;
}

/** The budgets of starts per hour are not asked: its own start is among those. */
export function nodesOut(
  usage: BudgetUsage,
  { policy, node }: { readonly policy: Policy; readonly node: NodeFacts },
): NodesOut {
  const budgets = policy.budgets.filter(({ kind }) => kind !== "PerHour");
  const verdict = budgetVerdict(usage, { policy: { ...policy, budgets }, node });
  return { names: usage.cluster.out, hold: verdict.kind === "Held" ? verdict : undefined };
}
