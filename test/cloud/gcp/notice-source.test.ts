import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { GcpNoticeSource } from "../../../src/cloud/gcp/notice-source.ts";
import type { NoticeSourceReading } from "../../../src/contracts/cloud.ts";
import { seededRng } from "../../../src/core/chance/chance.ts";
import { instant, plus, seconds } from "../../../src/core/time/time.ts";
import { noticeSourceContract } from "../../contract/notice-source.contract.ts";
import { GcpMetadataServer } from "../../support/gcp-metadata-server.ts";
import { ScaledClock } from "../../support/scaled-clock.ts";
import { waitUntil } from "../../support/wait-until.ts";

const startAt = instant(Date.UTC(2026, 10, 20));

function sourceOf(server: GcpMetadataServer, clock: ScaledClock): GcpNoticeSource {
  // The server counts in real seconds, the source in tenths of them.
  return new GcpNoticeSource({
    baseUrl: server.url,
    fetch,
    clock,
    rng: seededRng(1),
    waitSeconds: 1,
  });
}

noticeSourceContract("Compute Engine's metadata server", async () => {
  const clock = new ScaledClock({ startAt, speed: 10 });
  const server = await new GcpMetadataServer(() => clock.now()).start();
  return {
    source: sourceOf(server, clock),
    now: () => clock.now(),
    interrupt: () => {
      server.set("instance/preempted", "TRUE");
      return plus(clock.now(), seconds(30));
    },
    relent: () => server.set("instance/preempted", "FALSE"),
    fallIll: (illness) => server.fallIll(illness),
    heal: () => server.heal(),
    stop: () => server.stop(),
    start: async () => void (await server.start()),
    close: () => server.stop(),
  };
});

describe("hanging requests to Compute Engine's metadata server", () => {
  let clock: ScaledClock;
  let server: GcpMetadataServer;
  let ending: AbortController;
  let heard: NoticeSourceReading[];
  let running: Promise<void>;

  beforeEach(async () => {
    clock = new ScaledClock({ startAt, speed: 1 });
    server = await new GcpMetadataServer(() => clock.now()).start();
    ending = new AbortController();
    heard = [];
  });
  afterEach(async () => {
    ending.abort();
    await running;
    await server.stop();
  });

  function listen(): void {
    const sink = {
      onReading: (reading: NoticeSourceReading) => void heard.push(reading),
      onError: () => {},
      onTurn: () => {},
    };
    running = sourceOf(server, clock).run(sink, ending.signal);
  }

  function until(what: string, look: () => boolean): Promise<unknown> {
    return waitUntil(async () => look(), { what, timeoutMs: 15_000, intervalMs: 2 });
  }

  it("stay open, one per value, with no further ones while nothing changes", async () => {
    listen();
    await until("both requests hang", () => server.held === 2);
    // Two first reads, two hanging requests, one for the length of the notice.
    expect(server.seen).toHaveLength(5);
    expect(server.seen.at(-1)?.url).toContain("last_etag=etag-");
  });

  it("return a change within half a second, not after a poll interval", async () => {
    listen();
    await until("both requests hang", () => server.held === 2);
    const changedMs = performance.now();
    server.set("instance/preempted", "TRUE");
    await until("it is told", () => heard.some((one) => one.reading.notices.length > 0));
    expect(performance.now() - changedMs).toBeLessThan(500);
  });

  it("keep a preemption when the maintenance event becomes NONE", async () => {
    server.set("instance/preempted", "TRUE");
    listen();
    await until("both requests hang", () => server.held === 2);
    server.set("instance/maintenance-event", "TERMINATE_ON_HOST_MAINTENANCE");
    await until("the maintenance is told", () =>
      heard.some((one) => one.reading.notices[0]?.cause === "ScheduledMaintenance"),
    );
    server.set("instance/maintenance-event", "NONE");
    await until("its end is told", () => {
      const newest = heard.findLast((one) => one.channel === "gcp/maintenance-event");
      return newest?.reading.notices.length === 0;
    });
    const preempted = heard.filter((one) => one.channel === "gcp/preempted");
    expect(preempted.every((one) => one.reading.notices.length === 1)).toBe(true);
  });

  it("use the longer notice that the owner wrote into the machine's metadata", async () => {
    server.set("instance/attributes/lastcall-preemption-notice", "120s");
    listen();
    await until("the attribute was read", () =>
      server.seen.some((one) => one.url.endsWith("lastcall-preemption-notice")),
    );
    await until("both requests hang", () => server.held === 2);
    server.set("instance/preempted", "TRUE");
    await until("it is told", () => heard.some((one) => one.reading.notices.length > 0));
    const told = heard.find((one) => one.reading.notices.length > 0);
    const [notice] = told?.reading.notices ?? [];
    expect((notice?.deadlineAt ?? 0) - (notice?.noticedAt ?? 0)).toBe(120_000);
  });
});
