import { createHash } from "node:crypto";

export interface Successor<State> {
  readonly event: string;
  readonly state: State;
}

/** A small world: what can happen next in each of its states, and which rule a state breaks. */
export interface StateSpace<State> {
  readonly first: State;
  readonly next: (state: State) => readonly Successor<State>[];
  readonly broken: (state: State) => string | undefined;
  /** What of a state decides about everything that can follow: states with the same are one. */
  readonly essence: (state: State) => unknown;
}

export interface Exploration {
  readonly states: number;
  readonly transitions: number;
  /** States in which nothing can happen any more. */
  readonly ends: number;
  /** The rule that is broken after the fewest events, and these events. */
  readonly found: { readonly rule: string; readonly path: readonly string[] } | undefined;
}

/** Larger spaces are no small worlds. */
const statesMost = 1_000_000;

/**
 * Visits every state that can be reached, each once, the nearest first: so the first broken rule
 * that it meets has a shortest path.
 */
export function explore<State>({ first, next, broken, essence }: StateSpace<State>): Exploration {
  const cameFrom = new Map<string, { readonly from: string | undefined; readonly event: string }>();
  const start = hashOf(essence(first));
  cameFrom.set(start, { from: undefined, event: "" });
  let [frontier, transitions, ends] = [[{ key: start, state: first }], 0, 0];
  while (frontier.length > 0) {
    const further: typeof frontier = [];
    for (const { key, state } of frontier) {
      const rule = broken(state);
      if (rule !== undefined) {
        const found = { rule, path: pathTo(key, cameFrom) };
        return { states: cameFrom.size, transitions, ends, found };
      }
      const successors = next(state);
      if (successors.length === 0) ends += 1;
      for (const { event, state: after } of successors) {
        transitions += 1;
        const its = hashOf(essence(after));
        if (cameFrom.has(its)) continue;
        cameFrom.set(its, { from: key, event });
        further.push({ key: its, state: after });
      }
      if (cameFrom.size > statesMost) throw new Error(`more than ${statesMost} states`);
    }
    frontier = further;
  }
  return { states: cameFrom.size, transitions, ends, found: undefined };
}

function hashOf(state: unknown): string {
  return createHash("sha1").update(JSON.stringify(state)).digest("base64");
}

function pathTo(
  key: string,
  cameFrom: ReadonlyMap<string, { readonly from: string | undefined; readonly event: string }>,
): readonly string[] {
  const path: string[] = [];
  let at = cameFrom.get(key);
  while (at?.from !== undefined) {
    path.unshift(at.event);
    at = cameFrom.get(at.from);
  }
  return path;
}
