import { describe, expect, it } from "vitest";
import type { DepartureStatus } from "../../../src/core/departure/departure.ts";
import { conditionsOf } from "../../../src/core/departure/departure-conditions.ts";
import {
  type PhaseEvent,
  phaseAfter,
  phaseEvents,
  statusAfter,
  statusWithReason,
  wasDrained,
} from "../../../src/core/departure/ledger.ts";
import type { Reason } from "../../../src/core/reason/reason.ts";
import { formatInstant, minutes, plus } from "../../../src/core/time/time.ts";
import { aDeparture, aNode, at } from "../fleet-builder.ts";

const noon = at("2026-11-20T12:00:00Z");

type Happening = readonly [event: PhaseEvent, reason: Reason];

/** The status after events that are a minute apart, the first at noon. */
function statusOf(...happenings: readonly Happening[]): DepartureStatus {
  const departure = aDeparture(aNode("n1"));
  return happenings.reduce((status, [event, reason], index) => {
    const change = { event, reason, at: plus(noon, minutes(index)) };
    const after = statusAfter({ ...departure, status }, change);
    if (after === undefined) throw new Error(`${event} changes nothing`);
    return after;
  }, departure.status);
}

/** `TYPE since HH:MM` of the conditions that are True. */
function trueOf(status: DepartureStatus): readonly string[] {
  return conditionsOf(status).flatMap(({ type, status: holds, lastTransitionTime: since }) =>
    holds === "True" ? `${type} ${since && formatInstant(since).slice(11, 16)}` : [],
  );
}

const held: Happening = ["Blocked", "OutsideWindow"];
const free: Happening = ["Unblocked", "NotYet"];
const due: Happening = ["Due", "Started"];
const noticed: Happening = ["Noticed", "Noticed"];
const prepared: Happening = ["Prepared", "DrainRunning"];
const drained: Happening = ["Drained", "DrainDone"];
const cutShort: Happening = ["CutShort", "DeadlineReached"];
const gaveUp: Happening = ["GaveUp", "DrainTimeout"];
const rolledBack: Happening = ["RolledBack", "RolledBackByRule"];
const released: Happening = ["Released", "Released"];
const nodeGone: Happening = ["NodeGone", "NodeGone"];

const idle = aDeparture(aNode("n1")).status;

/** The reasons that change what an event leads to; the reason of another does not matter. */
const reasonsOf: Partial<Record<PhaseEvent, readonly Reason[]>> = {
  GaveUp: ["DrainTimeout", "ReleaseFailed"],
  Cancelled: ["CancelledByPerson"],
  Withdrawn: ["NoticeWithdrawn"],
  MachineReplaced: ["MachineReplaced", "MachineRebooted"],
};

describe("the conditions of a departure", () => {
  it.each<[string, readonly Happening[], readonly string[]]>([
    ["is held", [held], ["Held 12:00"]],
    ["was held and waits again", [held, free], ["Scheduled 12:01"]],
    ["is held a second time", [held, free, held], ["Held 12:02"]],
    ["is being prepared", [held, due], []],
    ["is draining", [due, prepared], ["Draining 12:01"]],
    ["is drained", [due, prepared, drained], ["Drained 12:02"]],
    ["was not drained in time", [due, prepared, cutShort], []],
    [
      "has ended",
      [due, prepared, drained, released],
      ["Drained 12:02", "Released 12:03", "Ended 12:03"],
    ],
    [
      "has ended with pods left",
      [due, prepared, cutShort, released],
      ["Released 12:03", "Ended 12:03"],
    ],
    [
      "lost its node after the drain",
      [noticed, prepared, drained, nodeGone],
      ["Drained 12:02", "Released 12:03", "Ended 12:03"],
    ],
    ["lost its node during the drain", [noticed, prepared, nodeGone], ["Ended 12:02"]],
    ["was rolled back", [due, prepared, gaveUp, rolledBack], ["Ended 12:03"]],
    ["was drained and rolled back", [due, prepared, drained, gaveUp, rolledBack], ["Ended 12:04"]],
    [
      "is noticed during a roll-back",
      [due, prepared, gaveUp, noticed, prepared],
      ["Draining 12:04"],
    ],
    ["was cancelled before it started", [["Cancelled", "PlanChanged"]], ["Ended 12:00"]],
  ])("are these if it %s", (_, happenings, expected) => {
    expect(trueOf(statusOf(...happenings))).toEqual(expected);
  });

  it("all have a status and a reason, and False ones the time since when", () => {
    const conditions = conditionsOf(statusOf(held, due, prepared));
    const byType = Object.fromEntries(conditions.map(({ type, ...rest }) => [type, rest]));
    const message = expect.stringContaining("n1");
    const present = { reason: "DrainRunning", message };
    const since = (minute: number) => plus(noon, minutes(minute));
    expect(byType).toEqual({
      Scheduled: { status: "False", ...present, lastTransitionTime: since(0) },
      Held: { status: "False", ...present, lastTransitionTime: since(1) },
      Draining: { status: "True", ...present, lastTransitionTime: since(2) },
      Drained: { status: "False", ...present, lastTransitionTime: since(0) },
      Released: { status: "False", ...present, lastTransitionTime: since(0) },
      Ended: { status: "False", ...present, lastTransitionTime: since(0) },
    });
  });

  it.each<[Happening, string]>([
    [drained, "Drained"],
    [cutShort, "CutShort"],
  ])("say how the drain ended after the departure has: %s", (end, reason) => {
    const conditions = conditionsOf(statusOf(due, prepared, end, released));
    expect(conditions.find(({ type }) => type === "Drained")).toMatchObject({ reason });
    expect(conditions.find(({ type }) => type === "Ended")).toMatchObject({ reason: "Released" });
  });

  it("say that the machine stays if it was rebooted after the drain", () => {
    const rebooted: Happening = ["MachineReplaced", "MachineRebooted"];
    const conditions = conditionsOf(statusOf(due, prepared, drained, rebooted));
    for (const type of ["Drained", "Released"]) {
      const reason = "MachineRebooted";
      expect(conditions.find((one) => one.type === type)).toMatchObject({
        status: "False",
        reason,
      });
    }
  });

  it("keep their times when a full timeline loses its oldest entries", () => {
    const departure = aDeparture(aNode("n1"));
    let status = statusOf(
      held,
      free,
      held,
      free,
      held,
      free,
      held,
      free,
      held,
      due,
      prepared,
      drained,
    );
    for (let tries = 1; tries <= 100; tries += 1) {
      const found = { reason: "ReleaseRetried", detail: `try ${tries}` } as const;
      const retriedAt = plus(noon, minutes(20 + tries));
      status = statusWithReason({ ...departure, status }, { ...found, at: retriedAt }) ?? status;
    }
    expect(status.timeline).toHaveLength(60);
    expect(trueOf(status)).toEqual(["Drained 12:11"]);
    const change = { event: "Released", reason: "Released", at: plus(noon, minutes(170)) } as const;
    const ended = statusAfter({ ...departure, status }, change) ?? status;
    expect(trueOf(ended)).toEqual(["Drained 12:11", "Released 14:50", "Ended 14:50"]);
  });

  it("agree with phase and outcome on every path of events", () => {
    const outcomes = new Set<string>();
    const walk = (happenings: readonly Happening[], left: number): void => {
      const status = happenings.length === 0 ? idle : statusOf(...happenings);
      const found = new Set(trueOf(status).map((one) => one.split(" ")[0]));
      const isTrue = (type: string) => found.has(type);
      for (const phase of ["Scheduled", "Held", "Draining", "Ended"]) {
        expect(isTrue(phase)).toBe(status.phase === phase);
      }
      const { outcome } = status;
      if (outcome !== undefined) outcomes.add(outcome);
      if (outcome === "Planned" || outcome === "Forced") expect(isTrue("Released")).toBe(true);
      if (outcome === "RolledBack" || outcome === "Cancelled" || outcome === "Failed") {
        expect([isTrue("Released"), isTrue("Drained")]).toEqual([false, false]);
      }
      if (status.phase === "Releasing") expect(isTrue("Drained")).toBe(wasDrained(status));
      if (left === 0) return;
      for (const event of phaseEvents) {
        if (phaseAfter(status.phase, event) === undefined) continue;
        for (const reason of reasonsOf[event] ?? (["Started"] as const)) {
          walk([...happenings, [event, reason]], left - 1);
        }
      }
    };
    walk([], 6);
    expect(outcomes).toEqual(
      new Set(["Planned", "Preempted", "RolledBack", "Cancelled", "Failed"]),
    );
  });

  it.each([
    ["has no timeline", [], undefined],
    ["has a timeline without its phase", [{ at: noon, step: "Noticed", result: "" }], noon],
  ])("show the phase of a status that %s", (_, timeline, since) => {
    const conditions = conditionsOf({ phase: "Draining", timeline });
    expect(conditions.filter(({ status }) => status === "True")).toEqual([
      {
        type: "Draining",
        status: "True",
        reason: "Draining",
        message: "",
        lastTransitionTime: since,
      },
    ]);
  });
});
