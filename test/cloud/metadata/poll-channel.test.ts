import { describe, expect, it } from "vitest";
import {
  type Channel,
  type ChannelAnswer,
  followChannel,
} from "../../../src/cloud/metadata/metadata-client.ts";
import type { NoticeSourceReading } from "../../../src/contracts/cloud.ts";
import { seconds } from "../../../src/core/time/time.ts";
import { LastcallError } from "../../../src/errors.ts";
import { ManualClock } from "../../support/manual-clock.ts";

describe("a channel that fails", () => {
  it.each([
    ["with the same error for an hour", () => new LastcallError("CLOUD_UNREACHABLE", "Cannot ask")],
    ["because of a bug", () => new TypeError("undefined is not a function")],
  ])("%s is polled every second throughout, and read once it recovers", async (_, fault) => {
    const clock = new ManualClock();
    const heard: NoticeSourceReading[] = [];
    let troubles = 0;
    let isAway = true;
    const reading = { kind: "Read", notices: [], ignored: [], problems: [] } as const;
    const channel: Channel = {
      name: "aws/a",
      ask: async (): Promise<ChannelAnswer> => {
        if (isAway) throw fault();
        return { reading, at: clock.now() };
      },
      restMs: () => seconds(1),
    };
    const sink = {
      onReading: (one: NoticeSourceReading) => void heard.push(one),
      onError: () => {
        troubles += 1;
      },
      onTurn: () => {},
    };
    const ending = new AbortController();
    const running = followChannel(channel, { sink, clock, rng: () => 0.5 }, ending.signal);
    await clock.advance(3_600_000);
    // At once, and then every second.
    expect(troubles).toBe(3601);
    isAway = false;
    await clock.advance(1000);
    expect(heard).toHaveLength(1);
    ending.abort();
    await running;
  });
});
