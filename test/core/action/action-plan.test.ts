import { describe, expect, it } from "vitest";
import {
  actionRecords,
  dueActions,
  isToFinish,
  pointsReached,
  recordsAtEnd,
  undoableRecords,
} from "../../../src/core/action/action-plan.ts";
import type { ActionRecord } from "../../../src/core/departure/departure.ts";
import type { Action } from "../../../src/core/policy/action.ts";
import { instant, seconds } from "../../../src/core/time/time.ts";

function anAction(name: string, over: Partial<Action> = {}): Action {
  return {
    ...{ name, at: "AtNotice", timeoutMs: seconds(10), retries: 3, required: false },
    how: { kind: "detach", decrementDesiredCapacity: false },
    ...over,
  };
}

function aRecord(name: string, over: Partial<ActionRecord> = {}): ActionRecord {
  return { name, kind: "detach", at: "AtNotice", state: "Pending", attempts: 0, ...over };
}

const begun = { cause: "SpotInterruption", phase: "Preparing" } as const;
const never = () => false;

describe("the records of a departure's actions", () => {
  it("stand in the policy's order, pending, and skipped where the cause is another", () => {
    const actions = [anAction("b"), anAction("a", { causes: ["Planned"] })];
    expect(actionRecords(actions, { ...begun, records: [] })).toEqual([
      aRecord("b"),
      aRecord("a", {
        ...{ state: "Skipped", result: "CauseExcluded" },
        detail: "not for the cause SpotInterruption",
      }),
    ]);
  });

  it("are judged again by another cause as long as they have not begun", () => {
    const actions = [
      anAction("a", { causes: ["Planned"] }),
      anAction("b", { causes: ["Planned"] }),
    ];
    const excluded = aRecord("a", { state: "Skipped", result: "CauseExcluded" });
    const done = aRecord("b", { state: "Done" });
    const at = (cause: "Planned" | "SpotInterruption") =>
      actionRecords(actions, { ...begun, cause, records: [excluded, done] }).map((r) => r.state);
    expect(at("Planned")).toEqual(["Pending", "Done"]);
    expect(at("SpotInterruption")).toEqual(["Skipped", "Done"]);
  });

  it("that were undone are due again, by a record of their own, where the departure goes on", () => {
    const undone = aRecord("a", { state: "Undone", undo: { id: 1 }, attempts: 2, reference: "s" });
    const inPhase = (phase: "Preparing" | "RollingBack" | "Ended") =>
      actionRecords([anAction("a")], { ...begun, phase, records: [undone] });
    expect(inPhase("Preparing")).toEqual([aRecord("a")]);
    expect(inPhase("RollingBack")).toEqual([undone]);
    expect(inPhase("Ended")).toEqual([undone]);
  });

  it("that had failed are due again where the departure begins once more, by what they know", () => {
    const at = (second: number) => instant(Date.UTC(2026, 10, 20, 12, 0, second));
    const failed = { state: "Failed", result: "ACTION_REFUSED", attempts: 2 } as const;
    const records = [
      aRecord("before", { ...failed, startedAt: at(1) }),
      aRecord("not undone", { ...failed, startedAt: at(1), undo: { id: 1 } }),
      aRecord("now", { ...failed, startedAt: at(5) }),
      aRecord("sent", { state: "Done", startedAt: at(1) }),
    ];
    const actions = records.map(({ name }) => anAction(name));
    const again = (phase: "Preparing" | "RollingBack") =>
      actionRecords(actions, { ...begun, phase, begunAt: at(5), records });
    expect(again("Preparing")).toEqual([
      aRecord("before"),
      aRecord("not undone", { state: "Running", undo: { id: 1 } }),
      ...records.slice(2),
    ]);
    expect(again("RollingBack")).toEqual(records);
  });

  it("of actions that the policy has no more stay, and end where they were open", () => {
    const done = aRecord("gone", { state: "Done", undo: {} });
    const open = aRecord("open", { state: "Running" });
    expect(actionRecords([], { ...begun, records: [done, open] })).toMatchObject([
      { name: "gone", state: "Done", undo: {} },
      { name: "open", state: "Failed", result: "ACTION_UNSUPPORTED" },
    ]);
  });

  it("that have not been reached at the end are skipped, and what was cut off has failed", () => {
    const records = [
      aRecord("a", { at: "AfterDrain" }),
      aRecord("b", { state: "Running" }),
      aRecord("c", { state: "Running" }),
      aRecord("d", { at: "AtEnd" }),
      aRecord("e", { state: "Done" }),
    ];
    const ended = recordsAtEnd(records, (name) => name === "c");
    const states = ended.map(({ state }) => state);
    expect(states).toEqual(["Skipped", "Failed", "Running", "Pending", "Done"]);
    expect(ended[1]?.detail).toMatch(/whether it was done is not known$/);
  });

  it("are undone where they may have changed something", () => {
    const undo = { id: "x" };
    const records = [
      aRecord("pending", { undo }),
      aRecord("running", { state: "Running", undo }),
      aRecord("message", { state: "Done" }),
      aRecord("done", { state: "Done", undo }),
      aRecord("failed", { state: "Failed", undo }),
      aRecord("undone", { state: "Undone", undo }),
    ];
    expect(undoableRecords(records).map(({ name }) => name)).toEqual(["running", "done", "failed"]);
  });
});

describe("an action", () => {
  it.each([
    ["Scheduled", []],
    ["Held", []],
    ["Preparing", ["AtNotice"]],
    ["Draining", ["AtNotice", "BeforeDrain"]],
    ["Releasing", ["AtNotice", "BeforeDrain", "AfterDrain"]],
    ["RollingBack", []],
    ["Ended", ["AtEnd"]],
  ] as const)("in the phase %s is due at %j", (phase, points) => {
    expect(pointsReached(phase, { drains: true })).toEqual(points);
  });

  it("around a drain is not due where the node is only cordoned", () => {
    expect(pointsReached("Releasing", { drains: false })).toEqual(["AtNotice"]);
  });

  it("is begun where its point is reached, it has not ended, and nobody is at it", () => {
    const actions = ["new", "resumed", "here", "done"].map((name) => anAction(name));
    const due = dueActions([...actions, anAction("later", { at: "AtEnd" })], {
      records: [
        ...[aRecord("new"), aRecord("resumed", { state: "Running" })],
        ...[aRecord("here", { state: "Running" }), aRecord("done", { state: "Done" })],
        aRecord("later", { at: "AtEnd" }),
      ],
      reached: ["AtNotice"],
      underWay: (name) => name === "here",
    });
    expect(due.map(({ name }) => name)).toEqual(["new", "resumed"]);
    expect(dueActions(actions, { records: [], reached: ["AtNotice"], underWay: never })).toEqual(
      [],
    );
  });

  it("is to be finished of a departure that has ended", () => {
    const status = (phase: "Ended" | "Draining", state: ActionRecord["state"]) => ({
      status: { phase, timeline: [], actions: [aRecord("a", { state, at: "AtEnd" })] },
    });
    expect(isToFinish(status("Ended", "Pending"))).toBe(true);
    expect(isToFinish(status("Ended", "Done"))).toBe(false);
    expect(isToFinish(status("Draining", "Pending"))).toBe(false);
  });
});
