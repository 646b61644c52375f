import { describe, expect, it } from "vitest";
import { GroupBatches, type Target } from "../../../../src/cloud/aws/actions/traffic-groups.ts";
import { millis } from "../../../../src/core/time/time.ts";
import { LastcallError } from "../../../../src/errors.ts";
import { ManualClock } from "../../../support/manual-clock.ts";

const never = new AbortController().signal;

function targets(...ids: readonly string[]): readonly Target[] {
  return ids.map((id) => ({ id }));
}

/** Batches whose requests the test answers. */
function stage({
  lingerMs,
  retryThrottled,
}: {
  lingerMs?: number;
  retryThrottled?: () => number;
} = {}) {
  const clock = new ManualClock();
  const sent: { readonly text: string; readonly end: PromiseWithResolvers<string> }[] = [];
  const batches = new GroupBatches<string>({
    send: (group, some) => {
      const end = Promise.withResolvers<string>();
      sent.push({ text: `${group}: ${some.map(({ id }) => id).join(" ")}`, end });
      return end.promise;
    },
    clock,
    ...(lingerMs === undefined ? {} : { lingerMs: millis(lingerMs) }),
    ...(retryThrottled === undefined ? {} : { retryThrottled }),
  });
  const texts = () => sent.map(({ text }) => text);
  return { clock, batches, sent, texts };
}

describe("requests for a group", () => {
  it("are sent at once, separately for each group", async () => {
    const { batches, texts } = stage();
    void batches.ask("web", targets("a"), never);
    void batches.ask("api", targets("a"), never);
    expect(texts()).toEqual(["web: a", "api: a"]);
  });

  it("are combined while another one is in flight", async () => {
    const { clock, batches, sent, texts } = stage();
    const all = ["a", "b", "c", "b"].map((id) => batches.ask("web", targets(id), never));
    sent[0]?.end.resolve("first");
    await clock.advance(0);
    expect(texts()).toEqual(["web: a", "web: b c"]);
    sent[1]?.end.resolve("second");
    expect(await Promise.all(all)).toEqual(["first", "second", "second", "second"]);
  });

  it("wait at most 100 ms for one that hangs", async () => {
    const { clock, batches, texts } = stage();
    void batches.ask("web", targets("a"), never);
    void batches.ask("web", targets("b"), never);
    await clock.advance(99);
    expect(texts()).toEqual(["web: a"]);
    await clock.advance(1);
    expect(texts()).toEqual(["web: a", "web: b"]);
  });

  it("are retried one by one if they are rejected together", async () => {
    const { clock, batches, sent, texts } = stage();
    const all = ["a", "b", "bad"].map((id) => batches.ask("web", targets(id), never));
    sent[0]?.end.resolve("first");
    await clock.advance(0);
    const refused = new LastcallError("CLOUD_REFUSED", "Cannot: a test refuses it");
    sent[1]?.end.reject(refused);
    await clock.advance(0);
    expect(texts().slice(2)).toEqual(["web: b", "web: bad"]);
    sent[2]?.end.resolve("alone");
    sent[3]?.end.reject(refused);
    await expect(all[2]).rejects.toBe(refused);
    expect(await Promise.all(all.slice(0, 2))).toEqual(["first", "alone"]);
  });

  it.each([
    ["there is no response", "CLOUD_RATE_LIMITED"],
    ["access is denied", "CLOUD_RIGHT_MISSING"],
    ["the credentials are unknown", "CLOUD_CREDENTIALS"],
  ] as const)("fail together if %s", async (_, code) => {
    const { clock, batches, sent, texts } = stage();
    const all = ["a", "b", "c"].map((id) => batches.ask("web", targets(id), never));
    sent[0]?.end.resolve("first");
    await clock.advance(0);
    const fault = new LastcallError(code, "Cannot: a test says so");
    sent[1]?.end.reject(fault);
    const ends = await Promise.allSettled(all);
    expect(ends.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected"]);
    expect(texts()).toHaveLength(2);
  });

  it("are retried with growing delays if throttled, together with new ones", async () => {
    const { clock, batches, sent, texts } = stage({ retryThrottled: () => 1 });
    const busy = new LastcallError("CLOUD_RATE_LIMITED", "Cannot: a test throttles it");
    const first = batches.ask("web", targets("a"), never);
    sent[0]?.end.reject(busy);
    await clock.advance(999);
    const second = batches.ask("web", targets("b"), never);
    expect(texts()).toEqual(["web: a"]);
    await clock.advance(1);
    expect(texts()).toEqual(["web: a", "web: a b"]);
    sent[1]?.end.reject(busy);
    await clock.advance(1999);
    expect(texts()).toHaveLength(2);
    await clock.advance(1);
    sent[2]?.end.resolve("third");
    expect(await Promise.all([first, second])).toEqual(["third", "third"]);
    void batches.ask("web", targets("c"), never);
    await clock.advance(0);
    expect(texts()).toHaveLength(4);
  });

  it.each([
    [7000, 8000],
    [3_600_000, 61_000],
  ])(
    "are retried after the requested %i ms, at most a minute, and the backoff: %i",
    async (retryAfterMs, againMs) => {
      const { clock, batches, sent, texts } = stage({ retryThrottled: () => 1 });
      const asked = batches.ask("web", targets("a"), never);
      const problem = "Cannot: a test throttles it";
      sent[0]?.end.reject(new LastcallError("CLOUD_RATE_LIMITED", problem, { retryAfterMs }));
      await clock.advance(againMs - 1);
      expect(texts()).toEqual(["web: a"]);
      await clock.advance(1);
      sent[1]?.end.resolve("second");
      expect(await asked).toBe("second");
    },
  );

  it("are sent without delay after a throttled one that was aborted", async () => {
    const { clock, batches, sent, texts } = stage({ retryThrottled: () => 1 });
    const gone = new AbortController();
    const asked = batches.ask("web", targets("a"), gone.signal);
    sent[0]?.end.reject(new LastcallError("CLOUD_RATE_LIMITED", "Cannot: a test throttles it"));
    await clock.advance(0);
    gone.abort(new Error("the departure is rolled back"));
    await expect(asked).rejects.toThrow("rolled back");
    await clock.advance(1000);
    void batches.ask("web", targets("b"), never);
    expect(texts()).toEqual(["web: a", "web: b"]);
  });

  it("are not sent once their caller has aborted", async () => {
    const { clock, batches, sent, texts } = stage();
    void batches.ask("web", targets("a"), never);
    const gone = new AbortController();
    const asked = batches.ask("web", targets("b"), gone.signal);
    gone.abort(new Error("the lead is lost"));
    await expect(asked).rejects.toThrow("the lead is lost");
    sent[0]?.end.resolve("first");
    await clock.advance(1000);
    expect(texts()).toEqual(["web: a"]);
  });

  it("wait for others if they may linger", async () => {
    const { clock, batches, texts } = stage({ lingerMs: 500 });
    void batches.ask("web", targets("a"), never);
    await clock.advance(499);
    void batches.ask("web", targets("b"), never);
    expect(texts()).toEqual([]);
    await clock.advance(1);
    expect(texts()).toEqual(["web: a b"]);
  });
});
