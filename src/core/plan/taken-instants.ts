import { nextOpen, type OpenTime } from "../limits/gate.ts";

/** The instants of departures that keep a gap from each other. */
export class TakenInstants {
  readonly #gap: number;
  /** Sorted. */
  readonly #taken: number[];
  /** Instants with no room for one have none for the next one with the same release. */
  readonly #searchedTo = new Map<OpenTime, Map<number, number>>();

  constructor(gap: number, taken: readonly number[]) {
    this.#gap = gap;
    this.#taken = [...taken].sort((a, b) => a - b);
  }

  /** Whether the instant is at least the gap from every taken one. */
  isClear(at: number): boolean {
    return this.#clearFrom(at) === at;
  }

  take(at: number): void {
    this.#taken.splice(this.#placeOf(at), 0, at);
  }

  /** Takes the first open instant from `release` on that is clear. Infinity if there is none. */
  takeFirst(open: OpenTime, release: number): number {
    const searched = this.#searchedTo.get(open) ?? new Map<number, number>();
    this.#searchedTo.set(open, searched);
    let at = nextOpen(open, searched.get(release) ?? release);
    while (at < Number.POSITIVE_INFINITY && !this.isClear(at)) {
      at = nextOpen(open, this.#clearFrom(at));
    }
    searched.set(release, at);
    if (at < Number.POSITIVE_INFINITY) this.take(at);
    return at;
  }

  /** The instant itself, or one past a neighbour that is closer to it than the gap. */
  #clearFrom(at: number): number {
    const place = this.#placeOf(at);
    const before = (this.#taken[place - 1] ?? Number.NEGATIVE_INFINITY) + this.#gap;
    const after = this.#taken[place] ?? Number.POSITIVE_INFINITY;
    if (before > at) return before;
    return at + this.#gap > after ? after + this.#gap : at;
  }

  /** The index of the first taken instant at or after `at`. */
  #placeOf(at: number): number {
    let low = 0;
    let high = this.#taken.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#taken[middle] as number) < at) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
