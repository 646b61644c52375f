import { describe, expect, it } from "vitest";
import type { Telemetry } from "../../src/contracts/telemetry.ts";
import { DepartureTelemetry } from "../../src/controller/departure/departure-telemetry.ts";
import type { Departure } from "../../src/core/departure/departure.ts";
import { plus, seconds } from "../../src/core/time/time.ts";
import { ManualClock } from "../support/manual-clock.ts";

const clock = new ManualClock();
const now = clock.now();

const noticed = {
  ...{ name: "n1-1", uid: "d1", node: { name: "n1", uid: "u1" }, cause: "SpotInterruption" },
  ...{ noticedAt: plus(now, seconds(-30)), deadlineAt: plus(now, seconds(90)) },
  status: { phase: "Draining", timeline: [] },
} as unknown as Departure;

/** What is observed during a call. */
function observed(told: (telemetry: DepartureTelemetry) => void): readonly string[] {
  const found: string[] = [];
  const observe = (name: string, value: number) => void found.push(`${name} ${value}`);
  const metrics = { observe, count: () => {}, set: () => {} };
  told(new DepartureTelemetry({ metrics } as unknown as Telemetry, clock));
  return found;
}

describe("the metrics of a drain at a notice", () => {
  const done = { verdict: "Done", endedAt: clock.now() } as const;
  const ended = (departure: Departure) => (telemetry: DepartureTelemetry) =>
    telemetry.drainEnded(departure, done);

  it("include the time to the last pod, and the time left until the deadline", () => {
    expect(observed(ended(noticed))).toEqual([
      "lastcall_notice_to_last_pod_seconds 30",
      "lastcall_deadline_left_seconds 90",
    ]);
  });

  it("are recorded once, even if pods arrive later", () => {
    const twice = observed((telemetry) => {
      for (const one of [noticed, noticed]) telemetry.drainEnded(one, done);
    });
    expect(twice).toHaveLength(2);
  });

  it("do not take a time that a person has set for the deadline of the notice", () => {
    const asked: Departure = { ...noticed, cause: "Manual" };
    expect(observed(ended(asked))).toEqual(["lastcall_notice_to_last_pod_seconds 30"]);
  });

  it("are not recorded if pods are left, or without a notice", () => {
    const planned: Departure = { ...noticed, cause: "Planned", noticedAt: undefined };
    expect(observed(ended(planned))).toEqual([]);
    expect(
      observed((one) => one.drainEnded(noticed, { ...done, verdict: "DeadlineReached" })),
    ).toEqual([]);
  });
});
