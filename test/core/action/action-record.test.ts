import { expect, it } from "vitest";
import {
  begunRecord,
  brokenOffRecord,
  isClaimable,
  mayBreakOff,
} from "../../../src/core/action/action-record.ts";
import type { ActionRecord } from "../../../src/core/departure/departure.ts";
import { at, statusIn } from "../next/departure-scene.ts";

const done: ActionRecord = {
  ...{ name: "isolate", kind: "replaceSecurityGroups", at: "AtNotice", state: "Done" },
  ...{ attempts: 2, startedAt: at(500), undo: { groups: ["sg-1"] } },
};

it("an action that was undone begins anew, even if the roll-back is the phase that is known", () => {
  const status = statusIn(["Preparing", "RollingBack"]);
  const begun = begunRecord({ ...done, state: "Undone" }, { status, now: at(3000) });
  const { name, kind, at: point } = done;
  const started = { state: "Running", attempts: 1, startedAt: at(3000) };
  expect(begun).toEqual({ name, kind, at: point, ...started });
});

it("a run of an earlier process keeps its start and its undo record", () => {
  const status = statusIn(["Preparing"]);
  const begun = begunRecord({ ...done, state: "Running" }, { status, now: at(3000) });
  expect(begun).toEqual({ ...done, state: "Running", attempts: 3 });
});

it.each([
  ["has changed nothing without an undo record", undefined, "Undone"],
  ["is undone by its undo record", { groups: ["sg-1"] }, "Running"],
] as const)("a run that was broken off %s", (_, undo, state) => {
  expect(brokenOffRecord({ ...done, state: "Running", undo }).state).toBe(state);
});

it("a run is broken off unless its receiver is asked for what cannot be undone", () => {
  expect(mayBreakOff(done, true)).toBe(true);
  expect(mayBreakOff({ ...done, undo: undefined }, true)).toBe(false);
  expect(mayBreakOff({ ...done, undo: undefined }, false)).toBe(true);
  expect(mayBreakOff({ ...done, kind: "sns" }, false)).toBe(false);
});

it("an action that another process has ended is not claimed", () => {
  expect(isClaimable(undefined)).toBe(true);
  expect(isClaimable({ ...done, state: "Running" })).toBe(true);
  expect(isClaimable(done)).toBe(false);
});
