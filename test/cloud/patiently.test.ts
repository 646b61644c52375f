import { describe, expect, it } from "vitest";
import { patiently } from "../../src/cloud/release/rest-exchange.ts";
import { seconds } from "../../src/core/time/time.ts";
import { LastcallError } from "../../src/errors.ts";
import { ManualClock } from "../support/manual-clock.ts";

const never = new AbortController().signal;

/** Calls that fail, until there are no errors left; and the times at which they were made. */
function failing(...errors: readonly Error[]) {
  const clock = new ManualClock();
  const callsAtMs: number[] = [];
  const startMs = clock.monotonic();
  const call = async () => {
    const error = errors[callsAtMs.length];
    callsAtMs.push(clock.monotonic() - startMs);
    if (error !== undefined) throw error;
    return "answered";
  };
  return { call, callsAtMs, clock, rng: () => 1 };
}

function passing(retryAfterMs?: number): LastcallError {
  return new LastcallError("CLOUD_UNREACHABLE", "no response", { retryAfterMs });
}

describe("a call that may be repeated", () => {
  it("is repeated after faults that pass, half a second later and then twice as late", async () => {
    const { call, callsAtMs, ...tools } = failing(passing(), passing());
    const answer = patiently(call, tools, never);
    await tools.clock.advance(seconds(5));
    expect(await answer).toBe("answered");
    expect(callsAtMs).toEqual([0, 500, 1500]);
  });

  it("is made four times at most, and fails with the last error", async () => {
    const last = passing();
    const { call, callsAtMs, ...tools } = failing(passing(), passing(), passing(), last);
    const answer = expect(patiently(call, tools, never)).rejects.toBe(last);
    await tools.clock.advance(seconds(60));
    await answer;
    expect(callsAtMs).toHaveLength(4);
  });

  it.each([
    [7, 7],
    [0.1, 0.5],
    [3600, 15],
  ])("waits if the cloud asks for %d s: %d s", async (askedSeconds, waitedSeconds) => {
    const { call, callsAtMs, ...tools } = failing(passing(seconds(askedSeconds)));
    const answer = patiently(call, tools, never);
    await tools.clock.advance(seconds(60));
    expect(await answer).toBe("answered");
    expect(callsAtMs).toEqual([0, seconds(waitedSeconds)]);
  });

  it.each([new LastcallError("CLOUD_REFUSED", "no"), new Error("unexpected")])(
    "is not repeated after %s",
    async (error) => {
      const { call, callsAtMs, ...tools } = failing(error);
      await expect(patiently(call, tools, never)).rejects.toBe(error);
      expect(callsAtMs).toEqual([0]);
    },
  );
});
