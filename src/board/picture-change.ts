import type { BoardChange, BoardPicture, FleetState, Identified, ListChange } from "./stream.ts";

/** So many of what is gone are remembered however few rows there are. */
const smallFleet = 500;

/**
 * The latest picture, and what in it is new since when: each part is compared by what would be sent
 * of it, and what is as it was is neither sent nor kept again. A page that comes back is told all
 * that has changed meanwhile, as it is now.
 */
export class PictureChanges {
  readonly #rows = new NumberedItems<BoardPicture["rows"][number]>();
  readonly #past = new NumberedItems<BoardPicture["past"][number]>();
  readonly #policies = new NumberedItems<BoardPicture["policies"][number]>();
  #fleet: { readonly state: FleetState; readonly seq: number } | undefined;
  #seq = 0;

  /** The number of the last change. */
  get seq(): number {
    return this.#seq;
  }

  /** The last one that was seen; undefined before the first. */
  picture(): BoardPicture | undefined {
    if (this.#fleet === undefined) return undefined;
    return {
      fleet: this.#fleet.state,
      rows: this.#rows.all(),
      past: this.#past.all(),
      policies: this.#policies.all(),
    };
  }

  /** Undefined where nothing is new. */
  of(picture: BoardPicture): BoardChange | undefined {
    const seq = this.#seq + 1;
    const { fleet, rows, past, policies } = picture;
    if (!isSameJson(fleet, this.#fleet?.state)) this.#fleet = { state: fleet, seq };
    this.#rows.take(rows, seq);
    this.#past.take(past, seq);
    this.#policies.take(policies, seq);
    const change = this.since(this.#seq);
    if (change !== undefined && Object.keys(change).length > 0) this.#seq = seq;
    return this.#seq === seq ? change : undefined;
  }

  /** What is new since the change of that number; undefined where that is not known any more. */
  since(seq: number): BoardChange | undefined {
    const lists = [this.#rows, this.#past, this.#policies];
    if (seq < Math.max(...lists.map((list) => list.knownSince))) return undefined;
    const fleet = this.#fleet !== undefined && this.#fleet.seq > seq && this.#fleet.state;
    const rows = this.#rows.since(seq);
    const past = this.#past.since(seq);
    const policies = this.#policies.since(seq);
    return {
      ...(fleet && { fleet }),
      ...(rows && { rows }),
      ...(past && { past }),
      ...(policies && { policies }),
    };
  }
}

interface NumberedItem<T> {
  readonly item: T;
  /** Of the change that brought it as it is. */
  readonly seq: number;
}

class NumberedItems<T extends Identified> {
  #items: ReadonlyMap<string, NumberedItem<T>> = new Map();
  /** By the change that took it away, the longest gone first. */
  readonly #gone = new Map<string, number>();
  #knownSince = 0;

  /** What came after a change before this one is not known any more. */
  get knownSince(): number {
    return this.#knownSince;
  }

  all(): readonly T[] {
    return [...this.#items.values()].map(({ item }) => item);
  }

  take(items: readonly T[], seq: number): void {
    // Before what goes now, of which everybody is still to be told.
    this.#forget(Math.max(smallFleet, items.length));
    const before = this.#items;
    const now = new Map<string, NumberedItem<T>>();
    for (const item of items) {
      const known = before.get(item.id);
      const isKnown = known !== undefined && isSameJson(known.item, item);
      now.set(item.id, isKnown ? known : { item, seq });
      this.#gone.delete(item.id);
    }
    for (const id of before.keys()) if (!now.has(id)) this.#gone.set(id, seq);
    this.#items = now;
  }

  since(seq: number): ListChange<T> | undefined {
    const set = [...this.#items.values()].filter((one) => one.seq > seq).map(({ item }) => item);
    const gone = [...this.#gone].filter(([, goneAt]) => goneAt > seq).map(([id]) => id);
    return set.length + gone.length === 0 ? undefined : { set, gone };
  }

  /** Whoever has missed that much is told less by a whole picture. */
  #forget(most: number): void {
    for (const [id, seq] of this.#gone) {
      if (this.#gone.size <= most) return;
      this.#gone.delete(id);
      this.#knownSince = seq;
    }
  }
}

/** Whether the same would be sent of both. */
function isSameJson(one: unknown, other: unknown): boolean {
  if (Object.is(one, other)) return true;
  if (typeof one !== "object" || typeof other !== "object") return false;
  if (one === null || other === null || Array.isArray(one) !== Array.isArray(other)) return false;
  const [entries, others] = [Object.entries(one), other as Readonly<Record<string, unknown>>];
  return (
    entries.length === Object.keys(others).length &&
    entries.every(([key, value]) => key in others && isSameJson(value, others[key]))
  );
}
