import { describe, expect, it } from "vitest";
import {
  neededTime,
  TerminationMemory,
  type TerminationRecord,
  withTermination,
} from "../../../src/core/drain/drain-time.ts";
import { millis, seconds } from "../../../src/core/time/time.ts";

function recordOf(...took: readonly (number | "Killed")[]): TerminationRecord | undefined {
  return took.reduce<TerminationRecord | undefined>(
    (record, one) => withTermination(record, one === "Killed" ? one : seconds(one)),
    undefined,
  );
}

describe("the time that a pod is expected to need", () => {
  it.each<[string, readonly (number | "Killed")[], number | undefined]>([
    ["nothing was observed", [], undefined],
    ["one pod: four times as long", [3], 12],
    ["three pods: twice the longest", [1, 3, 2], 6],
    ["many pods: the longest and 3 s", Array(30).fill(3), 6],
    ["quick pods: at least 3 s", [0, 0, 0.5], 3.5],
    ["one that was killed: unknown", [3, "Killed", 3], undefined],
    ["one that was killed first", ["Killed", 3, 3, 3], undefined],
  ])("after %s", (_, took, needed) => {
    expect(neededTime(recordOf(...took))).toBe(needed && seconds(needed));
  });
});

describe("the memory of termination times", () => {
  it("keeps the 4,096 workloads whose pods ended last", () => {
    const memory = new TerminationMemory();
    memory.remember({ workload: "old", took: millis(1) });
    memory.remember({ workload: "busy", took: millis(1) });
    for (let at = 0; at < 4095; at += 1) memory.remember({ workload: `w${at}`, took: millis(1) });
    memory.remember({ workload: "busy", took: millis(2) });
    expect(memory.records.size).toBe(4096);
    expect(memory.records.has("old")).toBe(false);
    memory.remember({ workload: "new", took: millis(1) });
    expect([memory.records.size, memory.records.has("w0")]).toEqual([4096, false]);
    expect(memory.records.get("busy")).toEqual({ longest: 2, pods: 2 });
  });
});
