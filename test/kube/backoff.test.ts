import { describe, expect, it } from "vitest";
import { millis } from "../../src/core/time/time.ts";
import { Backoff } from "../../src/kube/backoff.ts";

describe("the backoff", () => {
  it("doubles from a tenth of a second to ten seconds and begins anew after a reset", () => {
    const backoff = new Backoff({ rng: () => 1 });
    const waits = Array.from({ length: 9 }, () => backoff.next());
    expect(waits).toEqual([100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
    backoff.reset();
    expect(backoff.next()).toBe(100);
  });

  it("never waits less than half of that, whatever chance says", () => {
    const backoff = new Backoff({ rng: () => 0, firstMs: millis(1000), mostMs: millis(4000) });
    expect([backoff.next(), backoff.next(), backoff.next(), backoff.next()]).toEqual([
      500, 1000, 2000, 2000,
    ]);
  });
});
