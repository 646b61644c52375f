import type { ModelObject } from "./model-object.ts";

/** One write, as the store made it. */
export interface StoredChange {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  /** After the write; for DELETED the last state with the revision of the deletion. */
  readonly object: ModelObject;
  readonly previous: ModelObject | undefined;
  readonly revision: number;
}

/** The newest changes of one storage, from which a watch that reconnects catches up. */
export class WatchHistory {
  readonly #limit: number;
  #changes: StoredChange[] = [];
  /** Changes up to this revision are forgotten. */
  #forgotten = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  push(change: StoredChange): void {
    this.#changes.push(change);
    if (this.#changes.length >= 2 * this.#limit) this.#forgetOldest(this.#limit);
  }

  /** The changes after `revision`, oldest first; undefined where some of them are forgotten. */
  since(revision: number): readonly StoredChange[] | undefined {
    if (revision < this.#forgotten) return undefined;
    return this.#changes.slice(this.#firstAfter(revision));
  }

  compact(revision: number): void {
    this.#changes = [];
    this.#forgotten = revision;
  }

  get forgotten(): number {
    return this.#forgotten;
  }

  #forgetOldest(count: number): void {
    const last = this.#changes[count - 1];
    if (last !== undefined) this.#forgotten = last.revision;
    this.#changes = this.#changes.slice(count);
  }

  #firstAfter(revision: number): number {
    let low = 0;
    let high = this.#changes.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#changes[middle]?.revision ?? 0) <= revision) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
