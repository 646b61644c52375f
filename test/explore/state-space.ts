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

/** What a state is called that goes on for ever: whatever happens, nothing ends it. */
export const endless = "no end can be reached any more";

/**
 * Visits every state that can be reached, each once, the nearest first: so the first broken rule
 * that it meets has a shortest path. Then looks for a state from which no end can be reached.
 */
export function explore<State>({ first, next, broken, essence }: StateSpace<State>): Exploration {
  const visits = new Visits();
  visits.add(hashOf(essence(first)), { from: -1, event: "" });
  let frontier = [{ index: 0, state: first }];
  while (frontier.length > 0) {
    const further: typeof frontier = [];
    for (const { index, state } of frontier) {
      const rule = broken(state);
      if (rule !== undefined) return visits.result({ rule, path: visits.pathTo(index) });
      const successors = next(state);
      if (successors.length === 0) visits.ends.push(index);
      for (const { event, state: after } of successors) {
        const found = visits.add(hashOf(essence(after)), { from: index, event });
        if (found.isNew) further.push({ index: found.index, state: after });
      }
      if (visits.size > statesMost) throw new Error(`more than ${statesMost} states`);
    }
    frontier = further;
  }
  const stuck = visits.firstWithoutEnd();
  return visits.result(
    stuck === undefined ? undefined : { rule: endless, path: visits.pathTo(stuck) },
  );
}

/** The states by the order in which they were met, and what led from which to which. */
class Visits {
  readonly #indexes = new Map<string, number>();
  readonly #cameFrom: { readonly from: number; readonly event: string }[] = [];
  /** Each transition: from which state, and to which. */
  readonly #from: number[] = [];
  readonly #to: number[] = [];
  readonly ends: number[] = [];

  get size(): number {
    return this.#cameFrom.length;
  }

  add(
    key: string,
    how: { readonly from: number; readonly event: string },
  ): { readonly index: number; readonly isNew: boolean } {
    const known = this.#indexes.get(key);
    const index = known ?? this.#cameFrom.length;
    if (how.from >= 0) {
      this.#from.push(how.from);
      this.#to.push(index);
    }
    if (known !== undefined) return { index, isNew: false };
    this.#indexes.set(key, index);
    this.#cameFrom.push(how);
    return { index, isNew: true };
  }

  /** The nearest state from which no end can be reached. */
  firstWithoutEnd(): number | undefined {
    const before: number[][] = this.#cameFrom.map(() => []);
    for (const [step, to] of this.#to.entries()) before[to]?.push(this.#from[step] ?? 0);
    const ending = new Set(this.ends);
    // Iterating a Set includes entries that are added meanwhile.
    for (const index of ending) for (const from of before[index] ?? []) ending.add(from);
    return this.#cameFrom.keys().find((index) => !ending.has(index));
  }

  pathTo(index: number): readonly string[] {
    const path: string[] = [];
    for (let at = this.#cameFrom[index]; at !== undefined && at.from >= 0; ) {
      path.unshift(at.event);
      at = this.#cameFrom[at.from];
    }
    return path;
  }

  result(found: Exploration["found"]): Exploration {
    const [states, transitions, ends] = [this.size, this.#to.length, this.ends.length];
    return { states, transitions, ends, found };
  }
}

function hashOf(state: unknown): string {
  return createHash("sha1").update(JSON.stringify(state)).digest("base64");
}
