/** Bits in one word of the set. */
const wordBits = 32;

/**
 * A set of whole numbers below a limit that finds neighbours quickly: words of bits, above them
 * words that say which words below are not empty, and so on up to a single word. Every operation
 * touches one word a level, which is four levels for a million members.
 */
export class RankSet {
  readonly #levels: readonly Int32Array[];

  constructor(limit: number) {
    const levels: Int32Array[] = [];
    let words = Math.max(1, limit);
    do {
      words = Math.ceil(words / wordBits);
      levels.push(new Int32Array(words));
    } while (words > 1);
    this.#levels = levels;
  }

  add(rank: number): void {
    let at = rank;
    for (const level of this.#levels) {
      const word = at >>> 5;
      level[word] = (level[word] as number) | (1 << (at & 31));
      at = word;
    }
  }

  delete(rank: number): void {
    let at = rank;
    for (const level of this.#levels) {
      const word = at >>> 5;
      const left = (level[word] as number) & ~(1 << (at & 31));
      level[word] = left;
      if (left !== 0) return;
      at = word;
    }
  }

  /** The smallest member at or above `rank`; -1 where there is none. */
  atOrAbove(rank: number): number {
    let at = rank;
    for (let height = 0; height < this.#levels.length; height += 1) {
      const word = at >>> 5;
      const bits = (this.#word(height, word) & (-1 << (at & 31))) >>> 0;
      if (bits !== 0) return this.#descend(height, word * wordBits + lowestBit(bits), lowestBit);
      at = word + 1;
    }
    return -1;
  }

  /** The largest member below `rank`; -1 where there is none. */
  below(rank: number): number {
    let at = rank - 1;
    for (let height = 0; height < this.#levels.length && at >= 0; height += 1) {
      const word = at >>> 5;
      const bits = (this.#word(height, word) & (-1 >>> (31 - (at & 31)))) >>> 0;
      if (bits !== 0) return this.#descend(height, word * wordBits + highestBit(bits), highestBit);
      at = word - 1;
    }
    return -1;
  }

  #word(height: number, word: number): number {
    return this.#levels[height]?.[word] ?? 0;
  }

  #descend(height: number, from: number, pick: (bits: number) => number): number {
    let at = from;
    for (let level = height - 1; level >= 0; level -= 1) {
      at = at * wordBits + pick(this.#word(level, at) >>> 0);
    }
    return at;
  }
}

function lowestBit(bits: number): number {
  return 31 - Math.clz32(bits & -bits);
}

function highestBit(bits: number): number {
  return 31 - Math.clz32(bits);
}
