import { describe, expect, it } from "vitest";
import { next } from "../../src/core/next/next.ts";
import type { Action } from "../../src/core/policy/action.ts";
import { millis } from "../../src/core/time/time.ts";
import { isLongRun } from "../support/long-run.ts";
import { departureSpace } from "./departure-space.ts";
import type { DepartureLimits } from "./departure-world.ts";
import { explore } from "./state-space.ts";

const common = { name: "isolate", timeoutMs: millis(10_000), retries: 3, required: false } as const;
const isolates = { kind: "replaceSecurityGroups", groupIds: [] } as const;
const atNotice: Action = { ...common, at: "AtNotice", how: isolates };
const required: Action = { ...common, at: "BeforeDrain", required: true, how: isolates };
const lasting: Action = { ...common, at: "AtNotice", how: { kind: "lambda", functionName: "f" } };

const actions = [
  ["one that can be undone", atNotice],
  ["a required one before the drain", required],
  ["one that cannot be undone", lasting],
] as const;

/** What goes wrong or is changed, each at any moment. */
const few: readonly Partial<DepartureLimits>[] = [
  { losses: 1 },
  { refusals: 1 },
  { holds: 1 },
  { kills: 1 },
];
const many: readonly Partial<DepartureLimits>[] = [
  { notices: 1 },
  { pods: 1, holds: 1 },
  { kills: 1, holds: 1 },
  { kills: 1, notices: 1 },
  { losses: 1, holds: 1 },
  { refusals: 1, holds: 1 },
  { notices: 1, holds: 1 },
  { notices: 1, withdrawals: 1 },
];

const worlds = actions.flatMap(([what, action]) =>
  [...few, ...(isLongRun ? many : [])].map((changes) => {
    const text = Object.entries(changes).map(([name, count]) => `${count} ${name}`);
    return { what, with: text.join(", "), action, changes };
  }),
);

const none = { pods: 0, kills: 0, losses: 0 };

describe("every order of events in a departure with an action", () => {
  it.each(worlds)("keeps the rules: $what, $with", { timeout: 300_000 }, (one) => {
    const { states, transitions, ends, found } = explore(
      departureSpace({ ...none, ...one.changes, action: one.action }),
    );
    console.log(`${states} states, ${transitions} transitions, ${ends} ends`);
    expect(found).toBeUndefined();
    expect(ends).toBeGreaterThan(0);
  });

  it("shows the shortest way to a change without its record, if nothing waits for that", () => {
    const { found } = explore(departureSpace({ ...none, action: atNotice, isUndoUnwritten: true }));
    expect(found).toEqual({
      rule: "an action is applied without its undo record in the cluster",
      path: [
        ...["Preparing is written", "Cordon arrives", "Draining is written"],
        ...["isolate begins", "isolate is looked up", "isolate is applied"],
      ],
    });
  });

  it("shows the shortest way to an uncordon before the undo, if nothing is undone", () => {
    const { found } = explore(
      departureSpace({
        ...{ ...none, action: atNotice, holds: 1 },
        next: (scene, ...args) => next({ ...scene, actions: [] }, ...args),
      }),
    );
    expect(found?.rule).toBe("a node is uncordoned while the action is in effect");
    expect(found?.path.slice(-3)).toEqual([
      "a person holds it",
      "RollingBack is written",
      "Uncordon arrives",
    ]);
  });

  it("shows the shortest way to a roll-back without end, if nothing asks for the undo", () => {
    const { found } = explore(
      departureSpace({
        ...{ ...none, action: atNotice, holds: 1 },
        next: (...args) => {
          const out = next(...args);
          return { ...out, requests: out.requests.filter(({ kind }) => kind !== "UndoAction") };
        },
      }),
    );
    expect(found?.rule).toBe("nothing will ever happen again");
    expect(found?.path).toContain("RollingBack is written");
  });
});
