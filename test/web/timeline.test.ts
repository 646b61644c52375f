import { describe, expect, it } from "vitest";
import type { BoardRow, PolicyCard } from "../../src/board/stream.ts";
import {
  beyondCounts,
  firstSpan,
  laneName,
  standingWord,
} from "../../src/web/timeline/timeline-lane.tsx";
import { nodeLink, placeOf } from "../../src/web/view-state.ts";
import { english } from "../../src/web/words/words-english.ts";

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

describe("the hours that a timeline shows at first", () => {
  const inHours = (hours: number) => row(hours * 3_600_000);
  it.each([
    ["are 12 if nothing leaves later", [1, 12], 12],
    ["are 24 if something leaves in them, whatever leaves later", [1, 23, 60], 24],
    ["are 48 if nothing leaves before", [25, 60], 48],
    ["are 24 if nothing leaves", [], 24],
    ["are 24 if all are held past their time", [-1], 24],
  ])("%s", (_, hours, shown) => {
    expect(firstSpan([row(null), ...hours.map(inHours)], 0)).toBe(shown);
  });
});

it.each([
  ["ip-10-0-12-34.eu-west-1.compute.internal", "ip-10-0-12-34"],
  ["gke-prod-spot-pool-n2d-standard-8-3f9ac21b-x7km", "3f9ac21b-x7km"],
])("the lane of %s keeps what tells it from its neighbours, %s", (name, unique) => {
  expect(laneName(name, 190)).toContain(unique);
  expect(laneName(name, 190).length).toBeLessThan(26);
});

describe("a policy's card", () => {
  it.each<[string, Partial<PolicyCard>, string]>([
    ["that is kept", { standing: "InTime" }, "On schedule"],
    ["with a held departure", { standing: "InTime", held: 1 }, "1 held back"],
    ["with late ones, too", { standing: "Late", held: 1 }, "Not on schedule"],
    ["with late departures", { standing: "Late" }, "Not on schedule"],
    ["in an unhealthy fleet", { standing: "FleetUnhealthy" }, "Not on schedule"],
    ["that selects nothing", { standing: "NoNodes" }, "Selects no node"],
    ["that is paused", { standing: "Paused" }, "Paused"],
    ["that only tries", { standing: "InTime", isDryRun: true }, "Dry run"],
    ["that tries in vain", { standing: "Late", isDryRun: true }, "Dry run"],
    ["that is paused and only tries", { standing: "Paused", isDryRun: true }, "Paused"],
    ["that cannot be read", { problem: "spec.x: found y" }, "Cannot be read"],
  ])("says of a policy %s what it is", (_, fields, word) => {
    const card = { problem: null, isDryRun: false, held: 0, ...fields } as PolicyCard;
    expect(standingWord(card, english)).toBe(word);
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
