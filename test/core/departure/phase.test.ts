import { describe, expect, it } from "vitest";
import type { Phase } from "../../../src/core/departure/departure.ts";
import { type PhaseEvent, phaseAfter, phaseEvents } from "../../../src/core/departure/ledger.ts";

const phases: readonly Phase[] = [
  "Scheduled",
  "Held",
  "Preparing",
  "Draining",
  "Releasing",
  "RollingBack",
  "Ended",
];

/** Every phase that is reachable from `from`, each with a shortest path. */
function waysFrom(from: Phase): Map<Phase, PhaseEvent[]> {
  const ways = new Map<Phase, PhaseEvent[]>([[from, []]]);
  const queue = [from];
  for (let phase = queue.shift(); phase !== undefined; phase = queue.shift()) {
    for (const event of phaseEvents) {
      const to = phaseAfter(phase, event);
      if (to === undefined || ways.has(to)) continue;
      ways.set(to, [...(ways.get(phase) ?? []), event]);
      queue.push(to);
    }
  }
  return ways;
}

/** Every path without a cycle, as events and the phases that they lead to. */
function* paths(phase: Phase, seen: readonly Phase[] = []): Generator<Step[]> {
  if (seen.includes(phase)) return;
  const steps = phaseEvents.flatMap((event) => {
    const to = phaseAfter(phase, event);
    return to === undefined ? [] : [{ event, to }];
  });
  if (steps.length === 0) yield [];
  for (const step of steps) {
    for (const rest of paths(step.to, [...seen, phase])) yield [step, ...rest];
  }
}

interface Step {
  readonly event: PhaseEvent;
  readonly to: Phase;
}

describe("the phases of a departure", () => {
  it.each(phases.filter((phase) => phase !== "Ended"))("lead from %s to Ended", (phase) => {
    expect(waysFrom(phase).has("Ended")).toBe(true);
  });

  it("have no transition out of Ended", () => {
    for (const event of phaseEvents) expect(phaseAfter("Ended", event)).toBeUndefined();
  });

  it("all lead to Ended if the node is gone", () => {
    for (const phase of phases) {
      if (phase === "Ended") continue;
      expect(phaseAfter(phase, "NodeGone")).toBe("Ended");
    }
  });

  it("move to Preparing on a notice, whatever held the departure", () => {
    for (const phase of ["Scheduled", "Held", "RollingBack"] as const) {
      expect(phaseAfter(phase, "Noticed")).toBe("Preparing");
    }
  });

  it("prepare the node before the drain, and drain before the release, on every path", () => {
    let walked = 0;
    for (const path of paths("Scheduled")) {
      walked += 1;
      const entered = path.map(({ to }) => to);
      const first = (phase: Phase) => entered.indexOf(phase);
      if (first("Draining") >= 0) {
        expect(first("Preparing")).toBeGreaterThanOrEqual(0);
        expect(first("Preparing")).toBeLessThan(first("Draining"));
      }
      if (first("Releasing") >= 0) {
        expect(first("Draining")).toBeGreaterThanOrEqual(0);
        expect(first("Draining")).toBeLessThan(first("Releasing"));
      }
      const released = path.findIndex(({ event }) => event === "Released");
      if (released >= 0) expect(first("Releasing")).toBeLessThan(released);
    }
    expect(walked).toBeGreaterThan(20);
  });

  it("never leave a cordon: the node is uncordoned, released, gone or another machine's", () => {
    for (const path of paths("Scheduled")) {
      const entered = path.map(({ to }) => to);
      if (!entered.includes("Preparing")) continue;
      const last = path.at(-1)?.event;
      // A departure that is held again has been rolled back first.
      const isHeldAgain = entered.indexOf("Held") > entered.indexOf("Preparing");
      const isFreed = entered.includes("RollingBack") || isHeldAgain || last === "Released";
      // The node of the new machine is uncordoned as an orphan, because no departure owns it.
      const isAnothers = entered.at(-2) === "Releasing" && last === "MachineReplaced";
      expect(isFreed || isAnothers || last === "NodeGone").toBe(true);
    }
  });

  it("reach Ended exactly once, and last", () => {
    for (const path of paths("Scheduled")) {
      const entered = path.map(({ to }) => to);
      expect(entered.filter((phase) => phase === "Ended")).toHaveLength(1);
      expect(entered.at(-1)).toBe("Ended");
    }
  });

  it.each(["Withdrawn", "Cancelled"] as const)(
    "roll back when %s while waiting for the cloud to take the machine",
    (event) => {
      expect(phaseAfter("Releasing", event)).toBe("RollingBack");
    },
  );
});
