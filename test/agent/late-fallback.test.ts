import { beforeEach, describe, expect, it } from "vitest";
import { LateFallback } from "../../src/agent/late-fallback.ts";
import type { MachineNotice } from "../../src/core/notice/notice.ts";
import { instant, millis, seconds } from "../../src/core/time/time.ts";
import { ManualClock } from "../support/manual-clock.ts";

const notice: MachineNotice = {
  cause: "SpotInterruption",
  noticedAt: instant(0),
  source: "test",
  eventIds: ["e1"],
};
const reported = { kind: "Live", name: "n1-0123", event: "Noted" } as never;

describe("a fallback that is loaded on demand", () => {
  let told: unknown[];
  let troubles: unknown[];
  let loads: number;
  /** How often the load fails. */
  let failures: number;
  let clock: ManualClock;
  let ending: AbortController;
  let late: LateFallback;
  let running: Promise<void>;

  beforeEach(() => {
    told = [];
    troubles = [];
    loads = 0;
    failures = 0;
    ending = new AbortController();
    const side = {
      handle: (...said: unknown[]) => void told.push(["handle", ...said]),
      reported: (...said: unknown[]) => void told.push(["reported", ...said]),
      withdrawn: (...said: unknown[]) => void told.push(["withdrawn", ...said]),
      run: (signal: AbortSignal) => {
        told.push(["run"]);
        return new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
      },
    };
    const load = async () => {
      loads += 1;
      if (loads <= failures) throw new Error("no such file");
      return side;
    };
    clock = new ManualClock();
    const onError = (error: unknown) => troubles.push(error);
    late = new LateFallback({ load, clock, onError });
    running = late.run(ending.signal);
  });

  async function end(): Promise<void> {
    ending.abort();
    await running;
  }

  it("is not loaded as long as there is no notice", async () => {
    for (let poll = 0; poll < 100; poll += 1) late.handle(undefined, millis(0));
    await end();
    expect([loads, told]).toEqual([0, []]);
  });

  it("gets every call, from before and after the load, in order", async () => {
    late.handle(notice, millis(5));
    late.reported(reported);
    late.handle(undefined, millis(5));
    expect(told).toEqual([]);
    await expect.poll(() => told.length).toBe(4);
    late.withdrawn("n1-0123");
    expect(told).toEqual([
      ["handle", notice, 5],
      ["reported", reported],
      ["handle", undefined, 5],
      ["run"],
      ["withdrawn", "n1-0123"],
    ]);
    await end();
    expect(loads).toBe(1);
  });

  it("is loaded to undo what an earlier run of the agent has left", async () => {
    late.withdrawn("n1-0123");
    await expect.poll(() => told).toEqual([["withdrawn", "n1-0123"], ["run"]]);
    await end();
  });

  it("is loaded again after an error, and gets the latest state of every call", async () => {
    failures = 3;
    late.handle(notice, millis(1));
    late.handle(notice, millis(2));
    late.reported(reported);
    for (let rest = 1; rest <= failures; rest += 1) {
      await expect.poll(() => troubles.length).toBe(rest);
      late.handle(notice, millis(2 + rest));
      await clock.advance(seconds(1));
    }
    await expect.poll(() => told.length).toBe(4);
    expect(told).toEqual([
      ["handle", notice, 2],
      ["reported", reported],
      ["handle", notice, 5],
      ["run"],
    ]);
    await end();
  });

  it("does not keep the agent from ending if it cannot be loaded", async () => {
    failures = Number.POSITIVE_INFINITY;
    late.handle(notice, millis(0));
    await expect.poll(() => troubles.length).toBe(1);
    await end();
    expect(told).toEqual([]);
  });
});
