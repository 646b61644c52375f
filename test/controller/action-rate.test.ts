import { describe, expect, it } from "vitest";
import type { ActionRunner } from "../../src/contracts/action-runner.ts";
import {
  type ActionEnd,
  carryOut,
  type OpenTask,
} from "../../src/controller/action/action-attempt.ts";
import { seededRng } from "../../src/core/chance/chance.ts";
import type { Action } from "../../src/core/policy/action.ts";
import { minutes, plus, seconds } from "../../src/core/time/time.ts";
import { LastcallError } from "../../src/errors.ts";
import { Bucket } from "../support/bucket.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { passTime } from "../support/pass-time.ts";

const action = { name: "tell", timeoutMs: seconds(30), retries: 3 } as unknown as Action;
const task = { name: "tell", how: { kind: "slack" } } as unknown as OpenTask;

/** A receiver that takes short bursts and then one message a second, as Slack does in a channel. */
function chat(clock: ManualClock, bucket: Bucket): ActionRunner {
  return {
    check: async () => undefined,
    prepare: async () => undefined,
    apply: async () => {
      if (bucket.take(clock.monotonic())) return { detail: "sent" };
      const problem = "Cannot send to Slack: found status 429";
      throw new LastcallError("ACTION_RATE_LIMITED", problem, { retryAfterMs: 1000 });
    },
    undo: async () => ({ detail: "a message stays" }),
  };
}

function sendAll(count: number, how: { readonly bucket: Bucket; readonly withDeadline: boolean }) {
  const clock = new ManualClock();
  const deadlineAt = plus(clock.now(), minutes(2));
  const all = Array.from({ length: count }, (_, place) =>
    carryOut(action, task, {
      ...{ clock, rng: seededRng(place + 1), runner: chat(clock, how.bucket) },
      deadlineAt: () => (how.withDeadline ? deadlineAt : undefined),
      keep: async () => {},
      signal: new AbortController().signal,
    }),
  );
  return passTime(Promise.all(all), { clock, quiet: () => true });
}

const sent = (ends: readonly ActionEnd[]) => ends.filter(({ kind }) => kind === "Done").length;

describe("messages to one channel that takes one a second", () => {
  it("are all sent before the deadline of a notice, if there is time for each", async () => {
    const ends = await sendAll(100, { bucket: new Bucket(20, 1), withDeadline: true });
    expect(sent(ends)).toBe(100);
  });

  it("fail after five minutes of refusals, each with one more attempt for each retry", async () => {
    const ends = await sendAll(1, { bucket: new Bucket(0, 0), withDeadline: false });
    expect(ends).toMatchObject([{ kind: "Failed", code: "ACTION_RATE_LIMITED" }]);
    // A pause has one second and then up to ten.
    expect(ends[0]?.attempts).toBeGreaterThan(300 / 11);
    expect(ends[0]?.attempts).toBeLessThan(300 / 6 + 6);
  });
});
