/**
 * The reasons for lines of a drain plan and for pods of a running drain. Each has a line in
 * docs/drain.md and a sentence in drain-plan-report.ts; a test keeps them in step.
 */
export const drainReasons = [
  // Why a pod is skipped.
  "DaemonSet",
  "Mirror",
  "Finished",
  "PolicySkip",
  "ComesBack",
  // How a pod leaves.
  "Evictable",
  "WillBeCut",
  "OwnController",
  "DaemonSetByRule",
  "DeleteRule",
  "NodeUnreachable",
  // What is lost with the pod.
  "NoController",
  "DaemonSetGone",
  "EmptyDir",
  "HostPath",
  "LocalVolume",
  // What may happen to its replacement.
  "NoCapacityElsewhere",
  // What has to happen first.
  "Terminating",
  "StuckTerminating",
  "NamespaceTerminating",
  "WaitCompleted",
  "RestartOwner",
  // What blocks it.
  "DoNotDisturb",
  "DoNotDisrupt",
  "NotSafeToEvict",
  "BlockRule",
  "MultipleBudgets",
  "BudgetImpossible",
  "BudgetExhausted",
  "SingleReplica",
  // What blocked it and is overruled by a notice.
  "AnnotationOverruled",
  "BlockRuleOverruled",
  // What the API responded during the drain.
  "BudgetHolds",
  "BudgetStale",
  "ApiOverloaded",
  "EvictionRefused",
  "EvictionFailed",
  "RestartRefused",
  "AnswerLost",
  // Why a pod was deleted instead of evicted.
  "ForcedAtDeadline",
  "ForcedAtTimeout",
] as const;

export type DrainReason = (typeof drainReasons)[number];

/** Why an eviction would be refused now. */
export const heldByBudget: ReadonlySet<DrainReason> = new Set([
  "MultipleBudgets",
  "BudgetImpossible",
  "BudgetExhausted",
  "SingleReplica",
]);

/** The answers that are about budgets which select the pod; any other says nothing about one. */
export const budgetAnswers: ReadonlySet<DrainReason> = new Set([
  "BudgetHolds",
  "BudgetStale",
  "MultipleBudgets",
]);

/** Why a pod was deleted instead of evicted: the label of `lastcall_pods_forced_total`. */
export type ForceReason = Extract<
  DrainReason,
  "ForcedAtDeadline" | "ForcedAtTimeout" | "DeleteRule" | "NamespaceTerminating"
>;

/** How much of a budget a drain demands, and how much the budget allowed at that time. */
export interface BudgetDemand {
  /** `namespace/name` */
  readonly budget: string;
  readonly pods: number;
  readonly disruptionsAllowed: number;
}

/** The demands of a drain. */
export interface Demanding {
  readonly demands: readonly BudgetDemand[];
}

/** The hold of a departure whose drain would complete a cycle. */
export function conflictHold({ drains, budgets }: DrainConflict): {
  readonly reason: "ConflictWait";
  readonly detail: string;
} {
  const detail = `${drains.join(" and ")}, over ${budgets.join(" and ")}`;
  return { reason: "ConflictWait", detail };
}

/**
 * A drain under way, with the demands that it started with: what it has used since is its own.
 */
export interface RunningDrain extends Demanding {
  readonly name: string;
}

/** Drains that could wait for each other in a cycle. */
export interface DrainConflict {
  /** The two budgets over which the new drain would close the cycle. */
  readonly budgets: readonly [string, string];
  /** The drains that already connect them. */
  readonly drains: readonly string[];
}

/**
 * Detects whether a new drain could deadlock with the drains under way. A deadlock is a cycle: one
 * drain has used up a budget that the next one waits for, and so on back to the first; if the
 * replacements need any of the nodes, none can proceed (openshift/machine-api-operator#1066 shows a
 * cycle of two). A new drain closes a cycle if two budgets that it needs are already connected, by
 * a drain that needs both or by a chain of drains. Only budgets count that cannot allow all
 * evictions at once: over a single one, drains merely take turns. A budget that never allows an
 * eviction is reported earlier, in the plan.
 */
export function conflictWith(
  running: readonly RunningDrain[],
  next: Demanding,
): DrainConflict | undefined {
  const tight = tightBudgets([...running, next]);
  const needed = next.demands.map(({ budget }) => budget).filter((one) => tight.has(one));
  const links = running.map(({ name, demands }) => ({
    name,
    budgets: demands.map(({ budget }) => budget).filter((one) => tight.has(one)),
  }));
  for (const [at, first] of needed.entries()) {
    const chains = chainsFrom(first, links);
    for (const second of needed.slice(at + 1)) {
      const drains = chains.get(second);
      if (drains !== undefined) return { budgets: [first, second], drains };
    }
  }
  return undefined;
}

/** The budgets that cannot allow the evictions of all drains at once. */
function tightBudgets(drains: readonly Demanding[]): ReadonlySet<string> {
  const all = Map.groupBy(
    drains.flatMap(({ demands }) => demands),
    ({ budget }) => budget,
  );
  const tight = [...all].filter(([, demands]) => {
    const allowed = Math.max(...demands.map(({ disruptionsAllowed }) => disruptionsAllowed));
    const pods = demands.reduce((sum, demand) => sum + demand.pods, 0);
    return allowed > 0 && demands.length > 1 && pods > allowed;
  });
  return new Set(tight.map(([budget]) => budget));
}

/** Every budget reachable from one, with the drains on the shortest path. */
function chainsFrom(
  first: string,
  links: readonly { readonly name: string; readonly budgets: readonly string[] }[],
): ReadonlyMap<string, readonly string[]> {
  const chains = new Map<string, readonly string[]>([[first, []]]);
  // Iterating a Map includes entries that are added meanwhile.
  for (const [budget, drains] of chains) {
    for (const link of links.filter(({ budgets }) => budgets.includes(budget))) {
      for (const next of link.budgets) {
        if (!chains.has(next)) chains.set(next, [...drains, link.name]);
      }
    }
  }
  return chains;
}

/**
 * The demands over which a drain could deadlock once it has started; none if there are too few.
 */
export function contestable(demands: readonly BudgetDemand[]): readonly BudgetDemand[] {
  const open = demands.filter(({ disruptionsAllowed }) => disruptionsAllowed > 0);
  return open.length < 2 ? [] : open;
}
