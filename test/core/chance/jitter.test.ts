import { describe, expect, it } from "vitest";
import { around, halfToAll } from "../../../src/core/chance/jitter.ts";

describe("a pause with some chance in it", () => {
  it.each([
    [0, 900, 500],
    [0.5, 1000, 750],
    [1, 1100, 1000],
  ])("of a second is, where chance says %d, %d ms around it and %d ms up to it", (...row) => {
    const [chance, aroundMs, halfToAllMs] = row;
    expect(around(1000, () => chance)).toBe(aroundMs);
    expect(halfToAll(1000, () => chance)).toBe(halfToAllMs);
  });
});
