import { describe, expect, it } from "vitest";
import { seededRng } from "../../../src/core/chance/chance.ts";
import { KeyIndex } from "../../../src/kube/watch/collection.ts";

interface Item {
  readonly id: number;
  readonly keys: readonly string[];
}

describe("KeyIndex", () => {
  it("finds after any changes what a scan of all items would find", () => {
    const rng = seededRng(7);
    const pick = (most: number) => Math.floor(rng() * most);
    const index = new KeyIndex<Item>(({ keys }) => keys);
    let items: Item[] = [];
    const keysOf = () => [...new Set([`k${pick(6)}`, `k${pick(6)}`])];
    for (let id = 0; id < 1000; id += 1) {
      const before = items[pick(items.length + 2)];
      const isGone = before !== undefined && pick(2) === 0;
      const item = isGone
        ? undefined
        : { id, keys: pick(3) === 0 && before ? before.keys : keysOf() };
      index.change(before, item);
      items = items.filter((one) => one !== before);
      if (item !== undefined) items.push(item);
      for (const key of ["k0", "k1", "k2", "k3", "k4", "k5", "k6"]) {
        const there = items.filter(({ keys }) => keys.includes(key));
        expect(new Set(index.of(key))).toEqual(new Set(there));
        expect(index.of(key)).toHaveLength(there.length);
      }
    }
  });

  it("keeps the place of an item that changes", () => {
    const index = new KeyIndex<Item>(({ keys }) => keys);
    const [a, b, anew] = [1, 2, 3].map((id): Item => ({ id, keys: ["k"] }));
    index.change(undefined, a);
    index.change(undefined, b);
    index.change(a, anew);
    expect(index.of("k")).toEqual([anew, b]);
    index.change(anew, undefined);
    expect(index.of("k")).toEqual([b]);
    index.change(b, undefined);
    expect(index.of("k")).toEqual([]);
  });
});
