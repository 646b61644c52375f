import { describe, expect, it } from "vitest";
import { Health } from "../../src/controller/health.ts";
import { minutes } from "../../src/core/time.ts";
import { ManualClock } from "../support/manual-clock.ts";

describe("the health of a controller", () => {
  it("ends when a pass of the rotation hangs for two minutes, and comes back with its end", async () => {
    const clock = new ManualClock();
    const health = new Health(clock);
    health.passBegan();
    await clock.advance(minutes(2));
    expect(health.problem()).toBeUndefined();
    await clock.advance(1000);
    expect(health.problem()).toMatch(/in one pass for 121 s/);
    health.passEnded();
    expect(health.problem()).toBeUndefined();
  });

  it("ends when no pass has begun for a quarter of an hour", async () => {
    const clock = new ManualClock();
    const health = new Health(clock);
    health.passBegan();
    health.passEnded();
    await clock.advance(minutes(15));
    expect(health.problem()).toBeUndefined();
    await clock.advance(1000);
    expect(health.problem()).toMatch(/begun no pass for 901 s/);
  });

  it("lasts on a replica that stands by, or has given the lead up", async () => {
    const clock = new ManualClock();
    const health = new Health(clock);
    await clock.advance(minutes(60));
    expect(health.problem()).toBeUndefined();
    health.passBegan();
    health.stoodDown();
    await clock.advance(minutes(60));
    expect(health.problem()).toBeUndefined();
  });

  it("is there before the watches are in step, and readiness only after", () => {
    const health = new Health(new ManualClock());
    expect([health.problem(), health.ready()]).toEqual([undefined, false]);
    health.watchesSynced();
    expect(health.ready()).toBe(true);
  });
});
