import { describe, expect, it } from "vitest";
import type { BoardRow } from "../../src/board/stream.ts";
import { beyondCounts } from "../../src/web/timeline/timeline-lane.tsx";
import { nodeLink, placeOf } from "../../src/web/view-state.ts";

const row = (departAt: number | null, fields: object = {}) =>
  ({ state: "Scheduled", startedAt: null, departAt, ...fields }) as BoardRow;

describe("the drawing of a timeline", () => {
  it("counts the departures that it does not reach, on either side", () => {
    const begun = row(5, { state: "Leaving", startedAt: 50 });
    const rows = [row(9), row(10), row(100), row(101), row(300), row(null), begun];
    expect(beyondCounts(rows, { fromAt: 10, toAt: 100 })).toEqual({ earlier: 1, later: 2 });
    expect(beyondCounts([], { fromAt: 10, toAt: 100 })).toEqual({ earlier: 0, later: 0 });
  });
});

describe("an address of the page", () => {
  it.each([
    ["n1.example", undefined],
    ["n1", "uid-7"],
    ["a/b", "c/d"],
  ])("names the node %s and its departure %s", (name, departure) => {
    expect(placeOf(nodeLink(name, departure))).toEqual({ page: "Node", name, departure });
  });

  it.each([
    ["", "Departures"],
    ["#/timeline", "Timeline"],
    ["#/outcomes", "Outcomes"],
    ["#/node/", "Departures"],
  ])("%s shows %s", (hash, page) => {
    expect(placeOf(hash).page).toBe(page);
  });
});
