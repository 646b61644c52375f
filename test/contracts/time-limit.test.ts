import { describe, expect, it } from "vitest";
import { untilAborted, withinTime } from "../../src/contracts/time-limit.ts";
import { seconds } from "../../src/core/time/time.ts";
import { ManualClock } from "../support/manual-clock.ts";

const late = () => new Error("too late");

function limited(clock = new ManualClock()) {
  return { clock, limitMs: seconds(5), late };
}

/** Work that never ends, and the signals that it was given. */
function endless() {
  const signals: AbortSignal[] = [];
  const work = (signal: AbortSignal): Promise<never> => {
    signals.push(signal);
    return new Promise(() => undefined);
  };
  return { work, signals };
}

describe("work within a time limit", () => {
  it("has its result, and its signal aborts then", async () => {
    let given: AbortSignal | undefined;
    const work = async (signal: AbortSignal) => {
      given = signal;
      return `aborted: ${signal.aborted}`;
    };
    expect(await withinTime(work, limited())).toBe("aborted: false");
    expect(given?.aborted).toBe(true);
  });

  it("keeps its own error", async () => {
    const work = () => Promise.reject(new Error("refused"));
    await expect(withinTime(work, limited())).rejects.toThrow("refused");
  });

  it("fails when the time is over, even if it ignores its signal", async () => {
    const { work, signals } = endless();
    const limit = limited();
    let error: unknown;
    const done = withinTime(work, limit).catch((thrown: unknown) => {
      error = thrown;
    });
    await limit.clock.advance(seconds(4));
    expect(error).toBeUndefined();
    await limit.clock.advance(seconds(1));
    await done;
    expect(error).toMatchObject({ message: "too late" });
    expect(signals.map(({ reason }) => reason)).toEqual([error]);
  });

  it("fails with the reason of an abort, and does not begin after one", async () => {
    const { work, signals } = endless();
    const caller = new AbortController();
    const done = withinTime(work, limited(), caller.signal);
    caller.abort(new Error("interrupted"));
    await expect(done).rejects.toThrow("interrupted");
    await expect(withinTime(work, limited(), caller.signal)).rejects.toThrow("interrupted");
    expect(signals).toHaveLength(1);
  });

  it("fails with the limit's error, not with that of work that was aborted by it", async () => {
    const limit = limited();
    const work = (signal: AbortSignal) =>
      new Promise<never>((_, reject) => {
        signal.addEventListener("abort", () => reject(new Error("AbortError")));
      });
    const done = expect(withinTime(work, limit)).rejects.toThrow("too late");
    await limit.clock.advance(seconds(5));
    await done;
  });
});

describe("shared work", () => {
  it("is waited for only until the signal aborts", async () => {
    const shared = Promise.withResolvers<string>();
    const caller = new AbortController();
    const waited = untilAborted(shared.promise, caller.signal);
    caller.abort(new Error("gave up"));
    await expect(waited).rejects.toThrow("gave up");
    await expect(untilAborted(shared.promise, caller.signal)).rejects.toThrow("gave up");
    shared.resolve("done");
    expect(await untilAborted(shared.promise, new AbortController().signal)).toBe("done");
  });
});
