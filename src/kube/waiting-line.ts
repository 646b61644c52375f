interface Place<T> {
  readonly item: T;
  readonly rank: number;
  /** Tells those of one rank apart: who came first. */
  readonly order: number;
}

/** Who waits, the lowest rank first and those of one rank in the order in which they came. */
export class WaitingLine<T> {
  readonly #places: Place<T>[] = [];
  #joined = 0;

  get size(): number {
    return this.#places.length;
  }

  /** Gives back how to leave the line; whoever has left it already may. */
  join(item: T, rank: number): () => void {
    this.#joined += 1;
    const place = { item, rank, order: this.#joined };
    this.#places.splice(this.#indexOf(place), 0, place);
    return () => {
      const index = this.#indexOf(place);
      if (this.#places[index] === place) this.#places.splice(index, 1);
    };
  }

  /** Takes the first one out. */
  shift(): T | undefined {
    return this.#places.shift()?.item;
  }

  /** Where it stands, or would. */
  #indexOf({ rank, order }: Place<T>): number {
    let [from, to] = [0, this.#places.length];
    while (from < to) {
      const middle = (from + to) >>> 1;
      const there = this.#places[middle] as Place<T>;
      const isBefore = there.rank < rank || (there.rank === rank && there.order < order);
      if (isBefore) from = middle + 1;
      else to = middle;
    }
    return from;
  }
}
