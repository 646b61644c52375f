import { describe, expect, it } from "vitest";
import { countDrain, goneFrom, type PodProgress } from "../../../src/core/drain/drain-progress.ts";
import { instant, plus, seconds } from "../../../src/core/time/time.ts";

const at = instant(Date.UTC(2026, 10, 20));
const pod = { namespace: "shop", name: "web-0", uid: "u" };
const tried = { pod, attempts: 3 };
const leaving = (cut: boolean): Unfinished => ({
  ...{ kind: "Leaving", pod, sinceAt: at, deadlineAt: plus(at, seconds(15)) },
  ...{ by: "Eviction", cut },
});
const troubled = (reason: "MultipleBudgets" | "BudgetHolds"): Unfinished => ({
  ...{ ...tried, kind: "Blocked", sinceAt: at },
  trouble: { reason, message: "no" },
});

type Unfinished = Exclude<PodProgress, { kind: "Gone" }>;
const cases: readonly {
  readonly what: string;
  readonly state: Unfinished;
  /** Absent: gone by the end of its grace; given: still there when the drain ended. */
  readonly how?: "LeftBehind";
  readonly rule?: string;
}[] = [
  { what: "cut, and killed at the end of it", state: leaving(true), rule: "grace-cut" },
  { what: "uncut, and killed at the end of it", state: leaving(false), rule: "exec-sigterm-lost" },
  { what: "cut, and still there", state: leaving(true), how: "LeftBehind", rule: "grace-cut" },
  { what: "uncut, and evicted too late", state: leaving(false), how: "LeftBehind" },
  {
    what: "selected by two budgets",
    state: troubled("MultipleBudgets"),
    ...{ how: "LeftBehind", rule: "two-pdbs" },
  },
  {
    what: "held by its budget",
    state: troubled("BudgetHolds"),
    ...{ how: "LeftBehind", rule: "pdb-blocks-forever" },
  },
  { what: "never evicted", state: { ...tried, kind: "Waiting" }, how: "LeftBehind" },
];

describe("a pod that did not leave cleanly", () => {
  it.each(cases)("is listed with its audit rule if it was $what: $rule", ({ state, how, rule }) => {
    const gone = goneFrom(state, { at: plus(at, seconds(15)), how });

    expect(countDrain({ u: gone }).notClean).toMatchObject([{ name: "web-0", rule }]);
  });

  it("is not listed if it left in time", () => {
    const gone = goneFrom(leaving(true), { at: plus(at, seconds(14)) });

    expect(countDrain({ u: gone }).notClean).toEqual([]);
  });
});
