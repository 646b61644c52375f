import { describe, expect, it } from "vitest";
import { millis, minutes, seconds } from "../../../src/core/time/time.ts";
import { AttemptLimit } from "../../../src/kube/http/request-limits.ts";
import { ManualClock } from "../../support/manual-clock.ts";

describe("the timeout of an urgent request", () => {
  it("is 2.5 s, and doubles with each attempt without a response, up to 30 s", () => {
    const limit = new AttemptLimit(new ManualClock());
    const limits = Array.from({ length: 6 }, () => {
      const { ms } = limit;
      limit.unanswered(ms);
      return ms;
    });
    expect(limits).toEqual([2_500, 5_000, 10_000, 20_000, 30_000, 30_000]);
  });

  it("doubles once if many requests get no response at the same time", () => {
    const limit = new AttemptLimit(new ManualClock());
    for (let one = 0; one < 64; one += 1) limit.unanswered(millis(2_500));
    expect(limit.ms).toBe(5_000);
  });

  it("is twice the slowest response of the last minute", async () => {
    const clock = new ManualClock();
    const limit = new AttemptLimit(clock);
    limit.answered(4_000);
    for (let one = 0; one < 100; one += 1) limit.answered(20);
    expect(limit.ms).toBe(8_000);
    await clock.advance(seconds(59));
    expect(limit.ms).toBe(8_000);
    await clock.advance(minutes(1));
    expect(limit.ms).toBe(2_500);
  });
});
