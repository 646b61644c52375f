/** How much of a budget one drain asks for, and how much there was when it was asked. */
export interface BudgetDemand {
  /** `namespace/name` */
  readonly budget: string;
  readonly pods: number;
  readonly disruptionsAllowed: number;
}

/** A drain, as far as others can get into its way. */
export interface Demanding {
  readonly demands: readonly BudgetDemand[];
}

/**
 * A drain under way. Its demands are those that it began with: what it has spent since is its own.
 */
export interface RunningDrain extends Demanding {
  readonly name: string;
}

/** Drains that can end up waiting for each other in a ring. */
export interface DrainConflict {
  /** The two budgets over which the newcomer would close the ring. */
  readonly budgets: readonly [string, string];
  /** The drains that link them already. */
  readonly drains: readonly string[];
}

/**
 * Whether a drain that began beside those under way could wait for ever. It takes a ring: one drain
 * has spent a budget that the next one waits for, and so on back to the first; if the replacements
 * need any of the nodes to come back, none goes on (openshift/machine-api-operator#1066 has the
 * ring of two). A newcomer closes one when two budgets that it needs are linked already, by a drain
 * that needs both or by several one after another. Only budgets count that cannot let the pods of
 * all go at once: over one alone drains only take turns. A budget that allows nothing is held by
 * nobody and is found before, in the plan.
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

/** Those that cannot let the pods of all drains go at once, by the most that each ever allowed. */
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

/** Every budget that can be reached from one, with the drains on the shortest way. */
function chainsFrom(
  first: string,
  links: readonly { readonly name: string; readonly budgets: readonly string[] }[],
): ReadonlyMap<string, readonly string[]> {
  const chains = new Map<string, readonly string[]>([[first, []]]);
  // A map takes in what is set while it is gone through.
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
 * Of what a drain asks for that over which it could get into a conflict once it has begun; none
 * where it is too little for any.
 */
export function contestable(demands: readonly BudgetDemand[]): readonly BudgetDemand[] {
  const open = demands.filter(({ disruptionsAllowed }) => disruptionsAllowed > 0);
  return open.length < 2 ? [] : open;
}
