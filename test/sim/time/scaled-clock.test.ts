import { describe, expect, it } from "vitest";
import { instant, minutes, plus } from "../../../src/core/time/time.ts";
import { ScaledClock } from "../../support/scaled-clock.ts";

describe("ScaledClock", () => {
  const startAt = instant(Date.UTC(2026, 10, 20));

  it("lets an hour pass in a fraction of a second, from the given start", async () => {
    const clock = new ScaledClock({ startAt, speed: 72_000 });
    expect(clock.now()).toBeGreaterThanOrEqual(startAt);
    expect(clock.now()).toBeLessThan(plus(startAt, minutes(60)));
    const before = clock.monotonic();
    await clock.sleep(minutes(60));
    // Timers of the host fire on whole milliseconds, up to one early: 72 s of this clock.
    expect(clock.monotonic() - before).toBeGreaterThanOrEqual(minutes(58));
    expect(clock.now()).toBeGreaterThanOrEqual(plus(startAt, minutes(58)));
  });

  it("rejects a sleep with the signal's reason", async () => {
    const clock = new ScaledClock({ startAt, speed: 1 });
    const abort = new AbortController();
    const sleeping = clock.sleep(minutes(60), abort.signal);
    abort.abort("enough");
    await expect(sleeping).rejects.toBe("enough");
  });
});
