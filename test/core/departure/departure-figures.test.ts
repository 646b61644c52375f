import { describe, expect, it } from "vitest";
import type {
  DepartureStatus,
  DrainCounts,
  Outcome,
} from "../../../src/core/departure/departure.ts";
import { departureFigures } from "../../../src/core/departure/departure-figures.ts";
import { type PhaseEvent, statusAfter } from "../../../src/core/departure/ledger.ts";
import { minutes, plus } from "../../../src/core/time/time.ts";
import { aDeparture, aNode, at } from "../fleet-builder.ts";

const noon = at("2026-11-20T12:00:00Z");
const none: DrainCounts = {
  ...{ total: 0, left: 0, evicted: 0, forced: 0, waiting: 0, blocked: 0, cut: 0 },
};

/** The status after events that are a minute apart. */
function statusOf(...events: readonly PhaseEvent[]): DepartureStatus {
  const departure = aDeparture(aNode("n1"));
  return events.reduce((status, event, index) => {
    const change = { event, reason: "Started", at: plus(noon, minutes(index)) } as const;
    const after = statusAfter({ ...departure, status }, change);
    if (after === undefined) throw new Error(`${event} changes nothing`);
    return after;
  }, departure.status);
}

describe("the figures of a departure", () => {
  it.each<[string, readonly PhaseEvent[], string | undefined]>([
    ["is drained", ["Due", "Prepared", "Drained", "Released"], "1 min Drained"],
    ["runs out of time", ["Due", "Prepared", "CutShort", "Released"], "1 min CutShort"],
    ["is rolled back", ["Due", "Prepared", "GaveUp", "RolledBack"], "1 min GaveUp"],
    ["loses its node while it drains", ["Due", "Prepared", "NodeGone"], "1 min NodeGone"],
    ["is cancelled before its drain", ["Due", "Cancelled", "RolledBack"], undefined],
    [
      "drains twice, the last time",
      ["Due", "Prepared", "GaveUp", "Noticed", "Prepared", "Drained", "Released"],
      "1 min Drained",
    ],
  ])("say how long the drain took and what ended it if it %s", (_, events, expected) => {
    const { drain } = departureFigures(statusOf(...events));
    expect(drain && `${drain.ms / minutes(1)} min ${drain.reason}`).toBe(expected);
  });

  it("have no drain while it runs", () => {
    expect(departureFigures(statusOf("Due", "Prepared")).drain).toBeUndefined();
  });

  it.each<[Outcome, Partial<DrainCounts>, number]>([
    ["Planned", {}, 0],
    ["Forced", { left: 2, leftBehind: 2 }, 2],
    // The machine ended during the drain.
    ["Expired", { left: 3, leftBehind: 1 }, 3],
    // A pod came back after the drain.
    ["Planned", { left: 0, leftBehind: 1 }, 1],
    ["RolledBack", { left: 3, leftBehind: 1 }, 0],
    ["Cancelled", { left: 3 }, 0],
    ["Failed", { left: 3, leftBehind: 3 }, 0],
  ])("count the pods that end with the machine: %s %o", (outcome, drain, lost) => {
    const status = { ...statusOf("Due", "Prepared"), outcome, drain: { ...none, ...drain } };
    expect(departureFigures(status).podsLost).toBe(lost);
  });

  it("count the killed pods, also of a departure that was rolled back", () => {
    const status = { ...statusOf("Due"), outcome: "RolledBack", drain: { ...none, killed: 4 } };
    expect(departureFigures(status as DepartureStatus).podsKilled).toBe(4);
  });
});
