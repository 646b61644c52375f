import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { AwsNoticeSource } from "../../../src/cloud/aws/notice-source.ts";
import type { NoticeSourceReading } from "../../../src/contracts/cloud.ts";
import { seededRng } from "../../../src/core/chance/chance.ts";
import { formatInstant, instant, plus, seconds } from "../../../src/core/time/time.ts";
import { noticeSourceContract } from "../../contract/notice-source.contract.ts";
import { AwsMetadataServer } from "../../support/aws-metadata-server.ts";
import { ScaledClock } from "../../support/scaled-clock.ts";
import { waitUntil } from "../../support/wait-until.ts";

const startAt = instant(Date.UTC(2026, 10, 20));
const actionPath = "spot/instance-action";

noticeSourceContract("EC2's metadata service", async () => {
  const clock = new ScaledClock({ startAt, speed: 10 });
  const server = await new AwsMetadataServer(() => clock.now()).start();
  return {
    source: new AwsNoticeSource({ baseUrl: server.url, fetch, clock, rng: seededRng(1) }),
    now: () => clock.now(),
    interrupt: () => {
      const deadlineAt = plus(clock.now(), seconds(120));
      const time = formatInstant(deadlineAt);
      server.values.set(actionPath, JSON.stringify({ action: "terminate", time }));
      return deadlineAt;
    },
    relent: () => void server.values.delete(actionPath),
    fallIll: (illness) => server.fallIll(illness),
    heal: () => server.heal(),
    stop: () => server.stop(),
    start: async () => void (await server.start()),
    close: () => server.stop(),
  };
});

describe("the session with EC2's metadata service", () => {
  let clock: ScaledClock;
  let server: AwsMetadataServer;
  let ending: AbortController;
  let heard: NoticeSourceReading[];
  let troubles: string[];
  let running: Promise<void>;

  beforeEach(async () => {
    clock = new ScaledClock({ startAt, speed: 10 });
    server = await new AwsMetadataServer(() => clock.now()).start();
    ending = new AbortController();
    heard = [];
    troubles = [];
  });
  afterEach(async () => {
    ending.abort();
    await running;
    await server.stop();
  });

  /** A busy machine cannot be expected to respond within a tenth of the time limit. */
  function listenPatiently(): void {
    clock = new ScaledClock({ startAt, speed: 2 });
    listen();
  }

  function listen(): void {
    const source = new AwsNoticeSource({ baseUrl: server.url, fetch, clock, rng: seededRng(1) });
    const sink = {
      onReading: (reading: NoticeSourceReading) => void heard.push(reading),
      onError: (_: string, error: Error) => void troubles.push(error.message),
      onTurn: () => {},
    };
    running = source.run(sink, ending.signal);
  }

  async function hearMore(count: number): Promise<void> {
    const wanted = heard.length + count;
    const what = `${count} more readings are heard`;
    await waitUntil(async () => heard.length >= wanted, { what, timeoutMs: 15_000, intervalMs: 5 });
  }

  it("uses one token for all its channels, and sends no request without one", async () => {
    listen();
    await hearMore(12);
    expect(server.tokensIssued).toBe(1);
    const bare = server.seen.filter(
      (one) => one.method === "GET" && one.headers["x-aws-ec2-metadata-token"] === undefined,
    );
    expect(bare).toEqual([]);
  });

  it("replaces a rejected token in the same turn, without reporting an error", async () => {
    listenPatiently();
    await hearMore(4);
    server.forgetTokens();
    await hearMore(4);
    expect(server.tokensIssued).toBe(2);
    expect(troubles).toEqual([]);
    // Replaced, not appended: the header has one value.
    const last = server.seen.at(-1)?.headers["x-aws-ec2-metadata-token"];
    expect(last).toBe("token-2==");
  });

  it("renews its token after half of its lifetime", async () => {
    server.ttlSeconds = 4;
    listenPatiently();
    // After two seconds, which are one second of real time.
    const what = "a second token is issued";
    await waitUntil(async () => server.tokensIssued > 1, { what, timeoutMs: 15_000 });
    await hearMore(2);
    expect(troubles).toEqual([]);
  });

  it("polls for the interruption about once a second, and less often for the rest", async () => {
    listen();
    const what = "10 answers about the interruption came";
    const asked = (path: string) => server.seen.filter((one) => one.url.endsWith(path)).length;
    await waitUntil(async () => asked(actionPath) >= 10, { what, timeoutMs: 15_000 });
    expect(asked("events/maintenance/scheduled")).toBeLessThanOrEqual(1);
    expect(asked("recommendations/rebalance")).toBeLessThanOrEqual(3);
  });

  it("reports a deadline by the cloud's clock if the local clock is an hour off", async () => {
    await server.stop();
    const hourAheadAt = plus(startAt, seconds(3600));
    server = await new AwsMetadataServer(() => hourAheadAt).start();
    const time = formatInstant(plus(hourAheadAt, seconds(60)));
    server.values.set(actionPath, JSON.stringify({ action: "stop", time }));
    listen();
    await hearMore(1);
    const reading = await waitUntil(
      async () => heard.find((one) => one.reading.notices.length > 0),
      { what: "the notice is heard", timeoutMs: 15_000, intervalMs: 5 },
    );
    expect(reading.at).toBe(hourAheadAt);
    expect(reading.skewMs).toBeLessThan(-3_590_000);
    expect(reading.reading.notices[0]).toMatchObject({
      deadlineAt: hourAheadAt + 60_000,
      noticedAt: hourAheadAt,
    });
  });

  it("believes no 404 before the service has shown that it knows its instance", async () => {
    server.values.clear();
    listenPatiently();
    const what = "trouble is told";
    await waitUntil(async () => troubles.length > 3, { what, timeoutMs: 15_000, intervalMs: 5 });
    expect(heard).toEqual([]);
    server.values.set("instance-id", "i-1234567890abcdef0");
    await hearMore(3);
  });
});
