import { beforeEach, describe, expect, it } from "vitest";
import { LateFallback } from "../../src/agent/late-fallback.ts";
import type { NoticeCase } from "../../src/core/notice.ts";
import { instant, millis } from "../../src/core/time.ts";
import { ManualClock } from "../support/manual-clock.ts";

const notice: NoticeCase = {
  cause: "SpotInterruption",
  noticedAt: instant(0),
  source: "test",
  eventIds: ["e1"],
};
const filed = { kind: "Live", name: "n1-0123", event: "Noted" } as never;

describe("a fallback that is loaded late", () => {
  let told: unknown[];
  let loads: number;
  let ending: AbortController;
  let late: LateFallback;
  let running: Promise<void>;

  beforeEach(() => {
    told = [];
    loads = 0;
    ending = new AbortController();
    const side = {
      heed: (...said: unknown[]) => void told.push(["heed", ...said]),
      filed: (...said: unknown[]) => void told.push(["filed", ...said]),
      withdrawn: (...said: unknown[]) => void told.push(["withdrawn", ...said]),
      run: (signal: AbortSignal) => {
        told.push(["run"]);
        return new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
      },
    };
    late = new LateFallback(async () => {
      loads += 1;
      return side;
    }, new ManualClock());
    running = late.run(ending.signal);
  });

  async function end(): Promise<void> {
    ending.abort();
    await running;
  }

  it("is not loaded as long as nothing stands against the machine", async () => {
    for (let poll = 0; poll < 100; poll += 1) late.heed(undefined, millis(0));
    await end();
    expect([loads, told]).toEqual([0, []]);
  });

  it("is told, once it is there, all that was said before and after, in its order", async () => {
    late.heed(notice, millis(5));
    late.filed(filed);
    late.heed(undefined, millis(5));
    expect(told).toEqual([]);
    await expect.poll(() => told.length).toBe(4);
    late.withdrawn("n1-0123");
    expect(told).toEqual([
      ["heed", notice, 5],
      ["filed", filed],
      ["heed", undefined, 5],
      ["run"],
      ["withdrawn", "n1-0123"],
    ]);
    await end();
    expect(loads).toBe(1);
  });

  it("is loaded for what an earlier run of the agent has left to take back", async () => {
    late.withdrawn("n1-0123");
    await expect.poll(() => told).toEqual([["withdrawn", "n1-0123"], ["run"]]);
    await end();
  });

  it("fails its agent where it cannot be loaded, which begins anew then", async () => {
    await end();
    const broken = new LateFallback(
      () => Promise.reject(new Error("no such file")),
      new ManualClock(),
    );
    const failing = expect(broken.run(new AbortController().signal)).rejects.toThrow(
      "no such file",
    );
    broken.heed(notice, millis(0));
    await failing;
  });
});
