import { describe, expect, it } from "vitest";
import { millis, seconds } from "../../src/core/time/time.ts";
import { HeapPace } from "../../src/runtime/heap-pace.ts";
import { ManualClock } from "../support/manual-clock.ts";

describe("the pace of the heap", () => {
  function paced(usedMiB = 30) {
    const clock = new ManualClock();
    const did: string[] = [];
    const engine = {
      setFlag: (flag: string) => did.push(flag),
      collect: () => did.push("collect"),
      usedMiB: () => usedMiB,
    };
    const stop = new AbortController();
    return { clock, did, stop, pace: new HeapPace({ clock, signal: stop.signal, engine }) };
  }

  const hasty = ["--no-optimize-for-size", "--heap-growing-percent=100"];
  const settled = ["--heap-growing-percent=15", "collect"];
  const thrifty = ["--optimize-for-size", "--heap-growing-percent=0", "collect"];

  it("is hasty from the first rush signal on, and tells V8 once", () => {
    const { did, pace } = paced();
    pace.rush();
    pace.rush();
    expect(did).toEqual(hasty);
  });

  it.each([
    [30, 100],
    [80, 50],
    [1000, 15],
  ])("lets a heap of %d MiB grow by 40 MiB, within 15 to 100 %%: by %d %%", (usedMiB, percent) => {
    const { did, pace } = paced(usedMiB);
    pace.rush();
    expect(did).toEqual(["--no-optimize-for-size", `--heap-growing-percent=${percent}`]);
  });

  it("does not collect a large heap that has not grown by more", async () => {
    const { clock, did, pace } = paced(1000);
    pace.rush();
    await clock.advance(seconds(3));
    expect(did).not.toContain("collect");
  });

  it("stays hasty while rush signals continue", async () => {
    const { clock, did, pace } = paced();
    pace.rush();
    for (let second = 0; second < 60; second += 1) {
      await clock.advance(millis(900));
      pace.rush();
    }
    expect(did).toEqual(hasty);
  });

  it("settles within two seconds of the last rush signal, and is thrifty after 20", async () => {
    const { clock, did, pace } = paced();
    pace.rush();
    await clock.advance(millis(500));
    pace.rush();
    await clock.advance(millis(999));
    expect(did).toEqual(hasty);
    await clock.advance(millis(501));
    expect(did).toEqual([...hasty, ...settled]);
    await clock.advance(seconds(18));
    expect(did).toEqual([...hasty, ...settled]);
    await clock.advance(seconds(1));
    expect(did).toEqual([...hasty, ...settled, ...thrifty]);
  });

  it("collects once more when the departures of the rush have ended", async () => {
    const { clock, did, pace } = paced();
    pace.rush();
    await clock.advance(seconds(60));
    expect(did).toEqual([...hasty, ...settled, ...thrifty]);
    did.length = 0;
    await clock.advance(seconds(60));
    expect(did).toEqual(["collect"]);
    await clock.advance(seconds(600));
    expect(did).toEqual(["collect"]);
  });

  it("collects after departures without a rush, 90 s after the last one has acted", async () => {
    const { clock, did, pace } = paced();
    await clock.advance(seconds(1000));
    pace.stir();
    await clock.advance(seconds(60));
    pace.stir();
    await clock.advance(seconds(89));
    expect(did).toEqual([]);
    await clock.advance(seconds(2));
    expect(did).toEqual(["collect"]);
    await clock.advance(seconds(600));
    expect(did).toEqual(["collect"]);
  });

  it("collects after the rest of a rush only when its last departure has acted", async () => {
    const { clock, did, pace } = paced();
    pace.rush();
    await clock.advance(seconds(60));
    pace.stir();
    did.length = 0;
    await clock.advance(seconds(89));
    expect(did).toEqual([]);
    await clock.advance(seconds(2));
    expect(did).toEqual(["collect"]);
  });

  it.each([
    ["has settled", seconds(2)],
    ["is at rest", seconds(30)],
    ["is over", seconds(200)],
  ])("is hasty again in a rush that starts when it %s", async (_, passed) => {
    const { clock, did, pace } = paced();
    pace.rush();
    await clock.advance(passed);
    did.length = 0;
    pace.rush();
    await clock.advance(millis(900));
    expect(did).toEqual(hasty);
    await clock.advance(seconds(30));
    expect(did).toEqual([...hasty, ...settled, ...thrifty]);
  });

  it("does not collect after it has been stopped", async () => {
    const { clock, did, pace, stop } = paced();
    pace.rush();
    stop.abort();
    await clock.advance(seconds(30));
    expect(did).not.toContain("collect");
  });
});

it("V8 accepts the flags, and garbage is collected", async () => {
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
