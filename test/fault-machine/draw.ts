import { seededRng } from "../../src/core/chance/chance.ts";

/** Random choices from a seed: the same seed makes the same choices. */
export class Draw {
  readonly #rng: () => number;

  constructor(seed: number) {
    // Similar seeds of the generator give similar first numbers.
    this.#rng = seededRng(Math.imul(seed + 1, 0x9e37_79b1));
    this.#rng();
  }

  /** A whole number from `from` to `to`, both included. */
  between(from: number, to: number): number {
    return from + Math.floor(this.#rng() * (to - from + 1));
  }

  chance(share: number): boolean {
    return this.#rng() < share;
  }

  pick<T>(...choices: readonly T[]): T {
    return choices[this.between(0, choices.length - 1)] as T;
  }

  /** Some of the choices, in their order. */
  some<T>(choices: readonly T[], count: number): readonly T[] {
    const left = choices.map((_, index) => index);
    const taken: number[] = [];
    while (taken.length < Math.min(count, choices.length)) {
      taken.push(...left.splice(this.between(0, left.length - 1), 1));
    }
    return taken.toSorted((a, b) => a - b).map((index) => choices[index] as T);
  }
}
