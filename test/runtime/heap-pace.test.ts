import { describe, expect, it } from "vitest";
import { millis, seconds } from "../../src/core/time/time.ts";
import { HeapPace } from "../../src/runtime/heap-pace.ts";
import { ManualClock } from "../support/manual-clock.ts";

describe("the pace of the heap", () => {
  function paced() {
    const clock = new ManualClock();
    const did: string[] = [];
    const engine = {
      setFlag: (flag: string) => did.push(flag),
      collect: () => did.push("collect"),
    };
    const stop = new AbortController();
    return { clock, did, stop, pace: new HeapPace({ clock, signal: stop.signal, engine }) };
  }

  it("is hasty from the first sign of a rush on, and told to V8 once", () => {
    const { did, pace } = paced();
    pace.rush();
    pace.rush();
    expect(did).toEqual(["--no-optimize-for-size", "--heap-growing-percent=15"]);
  });

  it("is thrifty again 20 s after the last sign, and gives back what it took", async () => {
    const { clock, did, pace } = paced();
    pace.rush();
    await clock.advance(seconds(15));
    pace.rush();
    did.length = 0;
    await clock.advance(millis(19_999));
    expect(did).toEqual([]);
    await clock.advance(millis(1));
    expect(did).toEqual(["--optimize-for-size", "--heap-growing-percent=0", "collect"]);
  });

  it("is hasty again in the next rush", async () => {
    const { clock, did, pace } = paced();
    pace.rush();
    await clock.advance(seconds(20));
    did.length = 0;
    pace.rush();
    expect(did).toHaveLength(2);
  });

  it("keeps no process from ending", async () => {
    const { clock, did, pace, stop } = paced();
    pace.rush();
    stop.abort();
    await clock.advance(seconds(30));
    expect(did).not.toContain("collect");
  });
});

it("V8 takes the flags and collects while it runs", async () => {
  const clock = new ManualClock();
  const pace = new HeapPace({ clock, signal: new AbortController().signal });
  pace.rush();
  const garbage = new WeakRef({ of: "the rush" });
  await clock.advance(seconds(20));
  await new Promise(setImmediate);
  pace.rush();
  await clock.advance(seconds(20));
  expect(garbage.deref()).toBeUndefined();
});
