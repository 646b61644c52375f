/**
 * Which items have a key, kept in step with a watch: a change costs what it changes, however many there
 * are. A key has one item as a rule, which then stands there without a list around it.
 */
export class KeyIndex<T extends object> {
  readonly #keysOf: (item: T) => readonly string[];
  readonly #items = new Map<string, T | readonly T[]>();

  constructor(keysOf: (item: T) => readonly string[]) {
    this.#keysOf = keysOf;
  }

  /** `item` comes in the place of `before`; without `before` it is new, without `item` that has gone. */
  change(before: T | undefined, item: T | undefined): void {
    const old = before === undefined ? [] : this.#keysOf(before);
    const now = item === undefined ? [] : this.#keysOf(item);
    for (const key of old) {
      if (now.includes(key)) continue;
      this.#set(
        key,
        this.of(key).filter((one) => one !== before),
      );
    }
    if (item === undefined) return;
    for (const key of now) {
      const there = this.of(key);
      const has = there.some((one) => one === before);
      this.#set(key, has ? there.map((one) => (one === before ? item : one)) : [...there, item]);
    }
  }

  /** In the order in which they came. */
  of(key: string): readonly T[] {
    const there = this.#items.get(key);
    if (there === undefined) return [];
    return isList(there) ? there : [there];
  }

  #set(key: string, items: readonly T[]): void {
    const [first] = items;
    if (first === undefined) this.#items.delete(key);
    else this.#items.set(key, items.length === 1 ? first : items);
  }
}

function isList<T extends object>(there: T | readonly T[]): there is readonly T[] {
  return Array.isArray(there);
}
