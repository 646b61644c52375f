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

describe("the metrics of a departure that has ended", () => {
  const drain = { killed: 2, left: 1, leftBehind: 1 };
  const draining = { ...noticed, cause: "Planned", policy: "spot", noticedAt: undefined };
  const entry = (step: string, event: string, after: number) => ({
    ...{ at: plus(now, seconds(after)), step, result: `${event}: n1` },
  });
  const timeline = [
    entry("Draining", "Prepared", 0),
    entry("Releasing", "CutShort", 300),
    entry("Ended", "Released", 330),
  ];
  const ended = { ...draining, status: { phase: "Ended", outcome: "Forced", drain, timeline } };

  /** What is counted and observed when the departure ends. */
  function told(departure: unknown): readonly string[] {
    const lines: string[] = [];
    const of = (labels: object = {}) => Object.values(labels).join(" ");
    const metrics = {
      count: (name: string, labels: object, by = 1) =>
        void lines.push(`${name} ${of(labels)} ${by}`),
      observe: (name: string, value: number, labels: object) =>
        void lines.push(`${name} ${of(labels)} ${value}`),
    };
    const tools = { metrics, log: { info: () => {} }, events: { emit: () => {} } };
    const telemetry = new DepartureTelemetry(tools as unknown as Telemetry, clock);
    telemetry.phaseChanged(draining as Departure, departure as Departure);
    return lines;
  }

  it("are its pods that were killed and lost, and the seconds of a drain without a notice", () => {
    expect(told(ended)).toEqual([
      "lastcall_departures_total spot Planned Forced 1",
      "lastcall_pods_killed_total spot Planned 2",
      "lastcall_pods_lost_total spot Planned 1",
      "lastcall_planned_drain_seconds Forced CutShort 300",
    ]);
  });

  it("leave the drain of a notice to the histograms of notices", () => {
    const { noticedAt } = noticed;
    expect(told({ ...ended, noticedAt }).filter((line) => line.includes("drain"))).toEqual([]);
  });

  it("count no pods of a departure whose pods all ended in time", () => {
    const status = { ...ended.status, outcome: "Planned", drain: undefined };
    expect(told({ ...ended, status }).filter((line) => line.includes("pods"))).toEqual([]);
  });
});
