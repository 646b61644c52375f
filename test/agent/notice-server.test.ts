import { beforeEach, describe, expect, it } from "vitest";
import { NoticeServer } from "../../src/agent/agent-status.ts";
import type { HttpStream, StreamClient } from "../../src/contracts/http-route.ts";
import type { MachineNotice } from "../../src/core/notice/notice.ts";
import { instant, millis, plus, seconds } from "../../src/core/time/time.ts";
import { ManualClock } from "../support/manual-clock.ts";

const noSkew = millis(0);
let clock: ManualClock;
let feed: NoticeServer;

beforeEach(() => {
  clock = new ManualClock(Date.UTC(2026, 10, 20));
  feed = new NoticeServer(clock);
});

function spot(leftSeconds?: number): MachineNotice {
  const deadlineAt =
    leftSeconds === undefined ? undefined : plus(clock.now(), seconds(leftSeconds));
  const source = "aws/spot-instance-action";
  return {
    ...{ cause: "SpotInterruption", deadlineAt, noticedAt: clock.now(), source },
    eventIds: ["602d9444-d2cd-49c7-8624-8643e7171297"],
  };
}

function json(): unknown {
  const answer = feed.answer({ accept: "*/*" });
  if (!("text" in answer)) throw new Error("a stream");
  return JSON.parse(answer.text);
}

/** The raw text that one client has received. */
function listen(): { told: string[]; leave: () => void } {
  const told: string[] = [];
  const answer = feed.answer({ accept: "text/event-stream" }) as HttpStream;
  const client: StreamClient = { send: (text) => void told.push(text) };
  return { told, leave: answer.open(client) };
}

describe("the current notice", () => {
  it("is null while there is none", () => {
    expect(json()).toEqual({ notice: null });
  });

  it("has the cause, the source, the deadline and the seconds left", async () => {
    feed.show(spot(120), noSkew);
    await clock.advance(20_500);
    expect(json()).toEqual({
      notice: {
        ...{ cause: "SpotInterruption", source: "aws/spot-instance-action" },
        ...{ noticedAt: "2026-11-20T00:00:00.000Z", deadlineAt: "2026-11-20T00:02:00.000Z" },
        secondsLeft: 99.5,
      },
    });
  });

  it("has no event id, which could be used to acknowledge the event", () => {
    feed.show(spot(120), noSkew);
    expect(JSON.stringify(json())).not.toContain("602d9444");
  });

  it("has null without a deadline, and 0 after it", async () => {
    feed.show(spot(), noSkew);
    expect(json()).toMatchObject({ notice: { deadlineAt: null, secondsLeft: null } });
    feed.show(spot(10), noSkew);
    await clock.advance(11_000);
    expect(json()).toMatchObject({ notice: { secondsLeft: 0 } });
  });

  it("counts the seconds left by the cloud's clock if the node's is wrong", () => {
    const hourMs = 3_600_000;
    const deadlineAt = plus(instant(clock.now() - hourMs), seconds(120));
    feed.show({ ...spot(), deadlineAt }, millis(hourMs));
    expect(json()).toMatchObject({ notice: { secondsLeft: 120 } });
  });
});

describe("a client of the event stream", () => {
  it("receives the current state first, then each change once, and the withdrawal", () => {
    const { told } = listen();
    expect(told).toEqual(['retry: 1000\nevent: notice\ndata: {"notice":null}\n\n']);
    const first = spot(120);
    feed.show(first, noSkew);
    feed.show(first, noSkew);
    feed.show({ ...first, deadlineAt: plus(clock.now(), seconds(30)) }, noSkew);
    feed.show(undefined, noSkew);
    expect(told.slice(1)).toEqual([
      expect.stringMatching(/^event: notice\ndata: \{"notice":\{.*"secondsLeft":120\}\}\n\n$/),
      expect.stringMatching(/"secondsLeft":30\}\}\n\n$/),
      'event: notice\ndata: {"notice":null}\n\n',
    ]);
  });

  it("receives a comment every 15 s", async () => {
    const ending = new AbortController();
    const running = feed.run(ending.signal);
    const { told } = listen();
    await clock.advance(45_000);
    expect(told.slice(1)).toEqual(Array(3).fill(": keep-alive\n\n"));
    ending.abort();
    await running;
  });

  it("is rejected while 64 others are connected", () => {
    const all = Array.from({ length: 64 }, listen);
    expect(feed.answer({ accept: "text/event-stream" })).toMatchObject({ status: 503 });
    expect(json()).toEqual({ notice: null });
    all[0]?.leave();
    expect(feed.answer({ accept: "text/event-stream" })).toHaveProperty("open");
  });
});
