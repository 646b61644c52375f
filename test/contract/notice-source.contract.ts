import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { NoticeSink, NoticeSource, NoticeSourceReading } from "../../src/contracts/cloud.ts";
import type { Notice } from "../../src/core/notice/notice.ts";
import { between, type Instant, type Millis } from "../../src/core/time/time.ts";
import type { LastcallError } from "../../src/errors.ts";
import { type Illness, illnesses } from "../support/metadata-server.ts";
import { waitUntil } from "../support/wait-until.ts";

/** A fake metadata service and the source under test. */
export interface NoticeWorld {
  readonly source: NoticeSource;
  /** The current time of the cloud. */
  now(): Instant;
  /**
   * The cloud announces that it takes the machine; returns the deadline that it states or implies.
   */
  interrupt(): Instant;
  /** The cloud withdraws the announcement. */
  relent(): void;
  fallIll(illness: Illness): void;
  heal(): void;
  stop(): Promise<void>;
  start(): Promise<void>;
  close(): Promise<void>;
}

/** The largest difference between the deadline that is read and the cloud's. */
const toleranceMs = 1500;

/** What every implementation of `NoticeSource` guarantees. */
export function noticeSourceContract(name: string, makeWorld: () => Promise<NoticeWorld>): void {
  describe(`${name} as a NoticeSource`, () => {
    let world: NoticeWorld;
    let ears: Ears;
    let ending: AbortController;
    let running: Promise<void>;

    beforeEach(async () => {
      world = await makeWorld();
      ears = new Ears();
      ending = new AbortController();
    });
    afterEach(async () => {
      ending.abort();
      await running;
      await world.close();
    });

    function listen(): void {
      running = world.source.run(ears, ending.signal);
    }

    async function standing(): Promise<readonly Notice[]> {
      return until("a notice stands", () => ears.standing());
    }

    it("reports an empty reading of every channel if there is no notice", async () => {
      listen();
      await until("all channels are heard", () => ears.heard.size === world.source.channels.length);
      expect([...ears.heard.keys()].toSorted()).toEqual([...world.source.channels].toSorted());
      expect(ears.standing()).toBe(false);
    });

    it("reports an interruption while it listens, with the deadline in cloud time", async () => {
      listen();
      await until("a channel is heard", () => ears.heard.size > 0);
      const deadlineAt = world.interrupt();
      const [notice] = await standing();
      expect(notice?.cause).toBe("SpotInterruption");
      expect(Math.abs(gap(notice?.deadlineAt, deadlineAt))).toBeLessThan(toleranceMs);
      expect(Math.abs(gap(notice?.noticedAt, world.now()))).toBeLessThan(10_000);
    });

    it("reports an interruption that was announced before it started", async () => {
      world.interrupt();
      listen();
      expect(await standing()).toHaveLength(1);
    });

    it("gives the same notice the same ID every time", async () => {
      world.interrupt();
      listen();
      const first = await standing();
      ears.forget();
      const again = await until("it is told again", () => ears.standing());
      expect(again.map((one) => one.eventId)).toEqual(first.map((one) => one.eventId));
    }, 30_000);

    it("no longer reports a notice that the cloud withdrew", async () => {
      world.interrupt();
      listen();
      await standing();
      world.relent();
      ears.forget();
      await until("nothing stands", () => ears.heard.size > 0 && ears.standing() === false);
    });

    it("waits for a service that starts after it", async () => {
      await world.stop();
      listen();
      await until("trouble is told", () => ears.troubles.length > 0);
      expect(ears.troubles[0]?.code).toBe("CLOUD_UNREACHABLE");
      await world.start();
      world.interrupt();
      expect(await standing()).toHaveLength(1);
    });

    it.each(illnesses)("recovers from a faulty service: %s", async (illness) => {
      world.fallIll(illness);
      listen();
      await until("trouble is told", () => ears.troubles.length > 0);
      const codes = new Set(ears.troubles.map((one) => one.code));
      for (const code of codes) expect(["CLOUD_UNREACHABLE", "NOTICE_UNREADABLE"]).toContain(code);
      world.heal();
      world.interrupt();
      expect(await standing()).toHaveLength(1);
    });

    it.each(illnesses)(
      "does not withdraw a notice because the service turns faulty: %s",
      async (illness) => {
        world.interrupt();
        listen();
        await standing();
        ears.forget();
        world.fallIll(illness);
        await until("trouble is told", () => ears.troubles.length > 0);
        ears.heard.clear();
        await until("more trouble is told", () => ears.troubles.length > 2);
        const emptied = [...ears.heard.values()].some(
          (one) => one.reading.notices.length === 0 && ears.interruptedOn.has(one.channel),
        );
        expect(emptied).toBe(false);
      },
    );

    it("ends when its signal aborts", async () => {
      listen();
      await until("a channel is heard", () => ears.heard.size > 0);
      ending.abort(new Error("enough"));
      await expect(running).resolves.toBeUndefined();
    });
  });
}

/** Records what the source reports. */
class Ears implements NoticeSink {
  readonly heard = new Map<string, NoticeSourceReading>();
  readonly troubles: LastcallError[] = [];
  /** The channels that have ever reported an interruption. */
  readonly interruptedOn = new Set<string>();

  onReading(heard: NoticeSourceReading): void {
    this.heard.set(heard.channel, heard);
    if (heard.reading.notices.length > 0) this.interruptedOn.add(heard.channel);
  }

  onError(_channel: string, error: LastcallError): void {
    this.troubles.push(error);
  }

  onTurn(): void {}

  forget(): void {
    this.heard.clear();
    this.troubles.length = 0;
  }

  /** The notices in the latest reading of each channel; false if there are none. */
  standing(): readonly Notice[] | false {
    const notices = [...this.heard.values()].flatMap((one) => one.reading.notices);
    return notices.length > 0 && notices;
  }
}

function gap(found: Instant | undefined, wanted: Instant): Millis {
  return found === undefined ? (Number.NaN as Millis) : between(wanted, found);
}

function until<T>(what: string, look: () => T | false): Promise<T> {
  return waitUntil(async () => look(), { what, timeoutMs: 15_000, intervalMs: 10 });
}
