import { describe, expect, it } from "vitest";
import { AzureNoticeSource } from "../../../src/cloud/azure/notice-source.ts";
import { seededRng } from "../../../src/core/chance/chance.ts";
import { instant, plus, seconds } from "../../../src/core/time/time.ts";
import { noticeSourceContract } from "../../contract/notice-source.contract.ts";
import { AzureMetadataServer } from "../../support/azure-metadata-server.ts";
import { httpDate } from "../../support/metadata-server.ts";
import { ScaledClock } from "../../support/scaled-clock.ts";
import { waitUntil } from "../../support/wait-until.ts";

const startAt = instant(Date.UTC(2026, 10, 20));

noticeSourceContract("Azure's Scheduled Events", async () => {
  // The first answer may take 130 s, about 3 s here; a silent service must not be waited for.
  const clock = new ScaledClock({ startAt, speed: 40 });
  const server = await new AzureMetadataServer(() => clock.now()).start();
  return {
    source: new AzureNoticeSource({ baseUrl: server.url, fetch, clock, rng: seededRng(1) }),
    now: () => clock.now(),
    interrupt: () => {
      const deadlineAt = plus(clock.now(), seconds(30));
      server.set([
        {
          EventId: "602d9444-d2cd-49c7-8624-8643e7171297",
          EventType: "Preempt",
          ResourceType: "VirtualMachine",
          Resources: [server.name],
          EventStatus: "Scheduled",
          NotBefore: httpDate(deadlineAt),
        },
      ]);
      return deadlineAt;
    },
    relent: () => server.set([]),
    fallIll: (illness) => server.fallIll(illness),
    heal: () => server.heal(),
    stop: () => server.stop(),
    start: async () => void (await server.start()),
    close: () => server.stop(),
  };
});

describe("Azure's Scheduled Events", () => {
  it("acknowledges one event by its ID", async () => {
    const clock = new ScaledClock({ startAt, speed: 10 });
    const server = await new AzureMetadataServer(() => clock.now()).start();
    const source = new AzureNoticeSource({ baseUrl: server.url, fetch, clock, rng: seededRng(1) });
    await source.acknowledge("event-1", AbortSignal.timeout(10_000));
    expect(server.acknowledged).toEqual(["event-1"]);
    await server.stop();
  });

  it("does not take a neighbor's end for its own while its own name is unknown", async () => {
    const clock = new ScaledClock({ startAt, speed: 10 });
    const server = await new AzureMetadataServer(() => clock.now()).start();
    const preempt = { EventType: "Preempt", EventStatus: "Scheduled", NotBefore: "" } as const;
    server.set([{ ...preempt, EventId: "theirs", Resources: ["aks-spot-12345678-vmss_4"] }]);
    const own = server.name;
    server.name = "";
    const told: number[] = [];
    const troubles: string[] = [];
    const ending = new AbortController();
    const source = new AzureNoticeSource({ baseUrl: server.url, fetch, clock, rng: seededRng(1) });
    const running = source.run(
      {
        onReading: ({ reading }) => void told.push(reading.notices.length),
        onError: (_, error) => void troubles.push(error.message),
        onTurn: () => {},
      },
      ending.signal,
    );
    const wait = { timeoutMs: 15_000, intervalMs: 5 };
    await waitUntil(async () => troubles.length > 2, { what: "trouble is told", ...wait });
    expect(told).toEqual([]);
    server.name = own;
    await waitUntil(async () => told.length > 2, { what: "events are told", ...wait });
    expect(new Set(told)).toEqual(new Set([0]));
    ending.abort();
    await running;
    await server.stop();
  });
});
