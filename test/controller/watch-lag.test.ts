import { describe, expect, it } from "vitest";
import type { Fleet } from "../../src/contracts/cluster.ts";
import type { Telemetry } from "../../src/contracts/telemetry.ts";
import type { DepartureWriter } from "../../src/controller/departure-writer.ts";
import { NoticeReconciler } from "../../src/controller/notice/notice-reconciler.ts";
import type { Notice } from "../../src/core/notice/notice.ts";
import { defaultPolicy } from "../../src/core/policy/policy.ts";
import { type Instant, type Millis, millis, plus, seconds } from "../../src/core/time/time.ts";
import { aNode } from "../core/fleet-builder.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { RecordedMetrics } from "../support/recorded-metrics.ts";

/** A wall clock that can be set while the monotonic clock continues. */
class SetClock extends ManualClock {
  setByMs: Millis = millis(0);

  override now(): Instant {
    return plus(super.now(), this.setByMs);
  }
}

/** Departures are written, but no watch ever shows them. */
function stage() {
  const clock = new SetClock();
  const node = { ...aNode("n1"), providerID: "aws:///eu-west-1a/i-0abc" };
  const fleet: Partial<Fleet> = {
    nodesOf: () => [node],
    policies: () => [defaultPolicy],
    departuresOf: () => [],
    departureNamed: () => undefined,
    onChange: () => () => {},
  };
  const made: string[] = [];
  const writer: Pick<DepartureWriter, "schedule"> = {
    schedule: async ({ name }) => {
      made.push(name);
      return "Made";
    },
  };
  const telemetry = { metrics: new RecordedMetrics() } as unknown as Telemetry;
  const reconciler = new NoticeReconciler({
    ...{ clock, fleet: fleet as Fleet, writer: writer as DepartureWriter, telemetry },
  });
  const notice: Notice = {
    ...{ cause: "SpotInterruption", source: "aws/queue/spot-interruption", eventId: "e1" },
    ...{ noticedAt: clock.now(), deadlineAt: plus(clock.now(), seconds(120)) },
  };
  let end: unknown;
  const handling = reconciler.handle({ machine: "i-0abc", notice }).catch((error: unknown) => {
    end = error;
  });
  return { clock, made, handling, ended: () => end };
}

describe("a notice whose departure no watch shows", () => {
  it.each([0, 5_000, -5_000])(
    "is rejected after two seconds, even if the wall clock is set by %s ms",
    async (setByMs) => {
      const { clock, made, ended, handling } = stage();
      await clock.advance(seconds(1));
      expect(made).toHaveLength(1);
      clock.setByMs = millis(setByMs);
      await clock.advance(millis(900));
      expect(ended()).toBeUndefined();
      await clock.advance(millis(100));
      expect(ended()).toMatchObject({ code: "CONFLICT" });
      await handling;
    },
  );
});
