import { describe, expect, it } from "vitest";
import { seededRng } from "../../src/core/chance/chance.ts";
import { FaultSchedule } from "./fault-schedule.ts";

function scheduleOf(share: number, nowMs: () => number = () => 0): FaultSchedule {
  return new FaultSchedule({ rng: seededRng(7), share, nowMs });
}

describe("FaultSchedule", () => {
  it("is the same for the same seed", () => {
    const [one, other] = [scheduleOf(0.2), scheduleOf(0.2)];
    for (let call = 0; call < 500; call += 1) expect(one.next()).toEqual(other.next());
  });

  it("has no faults with a share of 0, and every kind with one of 0.1", () => {
    const none = scheduleOf(0);
    expect(Array.from({ length: 100 }, () => none.next()).every((one) => one === undefined)).toBe(
      true,
    );
    const some = scheduleOf(0.1);
    for (let call = 0; call < 3_000; call += 1) some.next();
    const kinds = ["429", "500", "502", "503", "504", "Delay", "Hole", "LostAnswer", "Reset"];
    expect([...some.counts.keys()].toSorted()).toEqual(kinds);
  });

  it("keeps holes at least a minute apart", () => {
    let nowMs = 0;
    const schedule = scheduleOf(1, () => nowMs);
    for (; nowMs < 390_000; nowMs += 100) schedule.next();
    expect(schedule.counts.get("Hole")).toBeGreaterThanOrEqual(3);
    expect(schedule.counts.get("Hole")).toBeLessThanOrEqual(6);
  });
});
