import { expect, it } from "vitest";
import { type BoardRow, noRights } from "../../src/board/stream.ts";
import { instant } from "../../src/core/time/time.ts";
import { nodeActs } from "../../src/web/act/act-buttons.tsx";

const every = {
  ...{ patchNodes: true, createDepartures: true, patchDepartures: true },
  ...{ deleteDepartures: true, patchPolicies: true },
};
const row = {
  ...{ state: "Scheduled", cause: "Planned", phase: "Scheduled", departure: "n1-1" },
  ...{ noticedAt: null, hold: null },
} as unknown as BoardRow;

it("a viewer without permissions gets no acts", () => {
  expect(nodeActs(row, noRights)).toEqual([]);
});

it("a planned node can be held or made to depart", () => {
  expect(nodeActs(row, every)).toEqual(["Hold", "Depart"]);
  expect(nodeActs(row, { ...noRights, patchNodes: true })).toEqual(["Hold"]);
});

it("a hold of Lastcall can be released, others cannot", () => {
  const hold = { mark: "lastcall.dev/hold", untilAt: null, isOurs: true, by: null, sinceAt: null };
  expect(nodeActs({ ...row, hold }, every)).toEqual(["ReleaseHold", "Depart"]);
  expect(nodeActs({ ...row, hold: { ...hold, isOurs: false } }, every)).toEqual(["Depart"]);
});

it("a hold of Lastcall with an end can be given another end, even after it", () => {
  const untilAt = instant(Date.UTC(2026, 10, 20, 9));
  const hold = { mark: "lastcall.dev/hold", untilAt, isOurs: true, by: null, sinceAt: null };
  expect(nodeActs({ ...row, hold }, every)).toEqual(["Hold", "ReleaseHold", "Depart"]);
  expect(nodeActs({ ...row, hold: { ...hold, isOurs: false } }, every)).toEqual(["Depart"]);
});

it("a running departure can be cancelled until the cloud takes the node", () => {
  const leaving = { ...row, state: "Leaving", phase: "Draining" } as BoardRow;
  expect(nodeActs(leaving, every)).toEqual(["Withdraw"]);
  expect(nodeActs({ ...leaving, noticedAt: 1 as never }, every)).toEqual([]);
  expect(nodeActs({ ...leaving, phase: "Releasing" }, every)).toEqual([]);
});
