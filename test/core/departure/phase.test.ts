import { describe, expect, it } from "vitest";
import type { Phase } from "../../../src/core/departure/departure.ts";
import {
  type Effect,
  type PhaseEvent,
  phaseEvents,
  transition,
} from "../../../src/core/departure/phase.ts";

const phases: readonly Phase[] = [
  "Scheduled",
  "Held",
  "Preparing",
  "Draining",
  "Releasing",
  "RollingBack",
  "Ended",
];

/** Every phase that can be reached from `from`, each with one shortest way there. */
function waysFrom(from: Phase): Map<Phase, PhaseEvent[]> {
  const ways = new Map<Phase, PhaseEvent[]>([[from, []]]);
  const queue = [from];
  for (let phase = queue.shift(); phase !== undefined; phase = queue.shift()) {
    for (const event of phaseEvents) {
      const to = transition(phase, event)?.to;
      if (to === undefined || ways.has(to)) continue;
      ways.set(to, [...(ways.get(phase) ?? []), event]);
      queue.push(to);
    }
  }
  return ways;
}

/** Every path without a loop, as phases and effects in order. */
function* paths(phase: Phase, seen: readonly Phase[] = []): Generator<Step[]> {
  if (seen.includes(phase)) return;
  const steps = phaseEvents.flatMap((event) => {
    const next = transition(phase, event);
    return next === undefined ? [] : [{ event, ...next }];
  });
  if (steps.length === 0) yield [];
  for (const step of steps) {
    for (const rest of paths(step.to, [...seen, phase])) yield [step, ...rest];
  }
}

interface Step {
  readonly event: PhaseEvent;
  readonly to: Phase;
  readonly effects: readonly Effect[];
}

describe("the phases of a departure", () => {
  it.each(phases.filter((phase) => phase !== "Ended"))("lead from %s to Ended", (phase) => {
    expect(waysFrom(phase).has("Ended")).toBe(true);
  });

  it("are left by nothing once it has ended", () => {
    for (const event of phaseEvents) expect(transition("Ended", event)).toBeUndefined();
  });

  it("end from everywhere when the node is gone", () => {
    for (const phase of phases) {
      if (phase === "Ended") continue;
      expect(transition(phase, "NodeGone")?.to).toBe("Ended");
    }
  });

  it("begin at once when the cloud has spoken, whatever held the departure", () => {
    for (const phase of ["Scheduled", "Held", "RollingBack"] as const) {
      expect(transition(phase, "Noticed")).toEqual({ to: "Preparing", effects: ["MarkNode"] });
    }
  });

  it("mark the node before its pods are asked, and drain before the machine goes, on every path", () => {
    let walked = 0;
    for (const path of paths("Scheduled")) {
      walked += 1;
      const effects = path.flatMap((step) => step.effects);
      const first = (effect: Effect) => effects.indexOf(effect);
      if (first("DrainPods") >= 0) expect(first("MarkNode")).toBeLessThan(first("DrainPods"));
      if (first("ReleaseMachine") >= 0) {
        expect(first("DrainPods")).toBeGreaterThanOrEqual(0);
        expect(first("DrainPods")).toBeLessThan(first("ReleaseMachine"));
      }
      if (first("RemoveNode") >= 0) {
        expect(first("ReleaseMachine")).toBeLessThan(first("RemoveNode"));
      }
    }
    expect(walked).toBeGreaterThan(20);
  });

  it("never leave a marked node behind: it is unmarked, removed, or gone by itself", () => {
    for (const path of paths("Scheduled")) {
      const effects = path.flatMap((step) => step.effects);
      if (!effects.includes("MarkNode")) continue;
      const last = path.at(-1);
      const freed = effects.includes("UnmarkNode") || effects.includes("RemoveNode");
      expect(freed || last?.event === "NodeGone").toBe(true);
    }
  });

  it("close the ledger exactly once", () => {
    for (const path of paths("Scheduled")) {
      const closings = path.flatMap((step) => step.effects).filter((one) => one === "CloseLedger");
      expect(closings).toHaveLength(1);
    }
  });

  it("ignore a cancel once the machine is being released", () => {
    expect(transition("Releasing", "Cancelled")).toBeUndefined();
  });

  it("heed a notice that is taken back while the cloud's taking of the machine is waited for", () => {
    expect(transition("Releasing", "Withdrawn")?.to).toBe("RollingBack");
  });
});
