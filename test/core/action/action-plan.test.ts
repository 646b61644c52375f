import { describe, expect, it } from "vitest";
import {
  actionRecords,
  detachState,
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

describe("whether a departure's actions take its machine out of the group", () => {
  it.each<[string, Partial<Action>, string | undefined]>([
    ["before the release", {}, "Ahead"],
    ["for this cause", { causes: ["Manual", "Planned"] }, "Ahead"],
    ["for another cause", { causes: ["SpotInterruption"] }, undefined],
    ["when all is over", { at: "AtEnd" }, undefined],
    ["never", { how: { kind: "deregisterTargets", wait: false } }, undefined],
  ])("follows from a policy that does it %s", (_, over, expected) => {
    const departure = { cause: "Planned", records: [] } as const;
    expect(detachState([anAction("a", over)], departure)).toBe(expected);
  });

  it.each<[Partial<ActionRecord>, string]>([
    [{ state: "Running" }, "Begun"],
    [{ state: "Done" }, "Begun"],
    [{ state: "Failed", result: "ACTION_TIMEOUT" }, "Begun"],
    [{ state: "Failed", result: "ACTION_INTERRUPTED" }, "Begun"],
    [{ state: "Failed", result: "CLOUD_RIGHT_MISSING" }, "Ahead"],
    [{ state: "Pending" }, "Ahead"],
    [{ state: "Skipped" }, "Ahead"],
    [{ state: "Done", kind: "deregisterTargets" }, "Ahead"],
  ])("follows from the record %j", (over, expected) => {
    const departure = { cause: "Planned", records: [aRecord("a", over)] } as const;
    expect(detachState([anAction("a")], departure)).toBe(expected);
  });
});

it("still follows from a request without a response when the action is due again", () => {
  const records = [
    aRecord("a", { state: "Failed", result: "ACTION_TIMEOUT", startedAt: instant(1000) }),
  ];
  const again = actionRecords([anAction("a")], { ...begun, records, begunAt: instant(2000) });
  expect(again).toEqual([aRecord("a", { state: "Running" })]);
  expect(detachState([anAction("a")], { cause: "Planned", records: again })).toBe("Begun");
});

describe("the action records of a departure", () => {
  it("follow the policy's order, Pending, or Skipped if the action is for another cause", () => {
    const actions = [anAction("b"), anAction("a", { causes: ["Planned"] })];
    expect(actionRecords(actions, { ...begun, records: [] })).toEqual([
      aRecord("b"),
      aRecord("a", {
        ...{ state: "Skipped", result: "CauseExcluded" },
        detail: "not for the cause SpotInterruption",
      }),
    ]);
  });

  it("are skipped or due by the new cause if the cause changes before they start", () => {
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

  it("get a new record after being undone, unless the departure rolls back or has ended", () => {
    const undone = aRecord("a", { state: "Undone", undo: { id: 1 }, attempts: 2, reference: "s" });
    const inPhase = (phase: "Preparing" | "RollingBack" | "Ended") =>
      actionRecords([anAction("a")], { ...begun, phase, records: [undone] });
    expect(inPhase("Preparing")).toEqual([aRecord("a")]);
    expect(inPhase("RollingBack")).toEqual([undone]);
    expect(inPhase("Ended")).toEqual([undone]);
  });

  it("are reset after a failure if the departure starts again, keeping a pending undo", () => {
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

  it("are kept for actions removed from the policy, and the open ones fail", () => {
    const done = aRecord("gone", { state: "Done", undo: {} });
    const open = aRecord("open", { state: "Running" });
    expect(actionRecords([], { ...begun, records: [done, open] })).toMatchObject([
      { name: "gone", state: "Done", undo: {} },
      { name: "open", state: "Failed", result: "ACTION_UNSUPPORTED" },
    ]);
  });

  it("are closed at the end: unreached ones are skipped, interrupted ones fail", () => {
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
    expect(ended[1]?.detail).toMatch(/whether it was carried out is unknown$/);
  });

  it("are undone if the action may have changed something", () => {
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
  ] as const)("in phase %s is due if its point is one of %j", (phase, points) => {
    expect(pointsReached(phase, { drains: true })).toEqual(points);
  });

  it("around a drain is not due if the node is only cordoned", () => {
    expect(pointsReached("Releasing", { drains: false })).toEqual(["AtNotice"]);
  });

  it("starts if its point is reached, it has not ended and it is not already running", () => {
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

  it("still has to be finished after its departure has ended", () => {
    const status = (phase: "Ended" | "Draining", state: ActionRecord["state"]) => ({
      status: { phase, timeline: [], actions: [aRecord("a", { state, at: "AtEnd" })] },
    });
    expect(isToFinish(status("Ended", "Pending"))).toBe(true);
    expect(isToFinish(status("Ended", "Done"))).toBe(false);
    expect(isToFinish(status("Draining", "Pending"))).toBe(false);
  });
});
