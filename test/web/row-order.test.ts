import { describe, expect, it } from "vitest";
import { filteredPast, filteredRows } from "../../src/board/row-filter.ts";
import type { BoardRow, PastDeparture } from "../../src/board/stream.ts";
import {
  heldRows,
  laneRows,
  nextRows,
  rowGroups,
  type SortKeys,
  sortedRows,
  stayingRows,
} from "../../src/web/row-list.tsx";
import { languages } from "../../src/web/view-state.ts";

const hold = { mark: "lastcall.dev/hold", untilAt: null, isOurs: true, by: null, sinceAt: null };

function row(node: string, fields: Partial<BoardRow>): BoardRow {
  return { node, state: "Stays", reason: "NoPolicy", hold: null, ...fields } as BoardRow;
}

const rows = [
  row("held-b", { reason: "OnHold", hold }),
  row("held-a", { reason: "OnHold", hold }),
  // A hold without effect, since nothing is planned for this node anyway.
  row("marked", { reason: "NoPolicy", hold }),
  row("plain", {}),
  row("held-until", {
    state: "Scheduled",
    reason: "Spaced",
    hold: { ...hold, untilAt: 9 as never },
  }),
  // Its Departure has a time, at which it will not leave.
  row("held-c", { state: "Held", reason: "OnHold", hold }),
  row("waits", { state: "Held", reason: "BudgetSpent" }),
  row("leaves", { state: "Leaving", reason: "OnHold", hold }),
];
const names = (of: readonly BoardRow[]) => of.map(({ node }) => node);

describe("each node is listed once", () => {
  it.each([
    ["on hold: nodes on hold indefinitely", heldRows, ["held-a", "held-b", "held-c"]],
    ["not planned: nodes without a hold", stayingRows, ["marked", "plain"]],
    ["next: nodes with a planned time, or that are due", nextRows, ["held-until", "waits"]],
  ])("%s", (_, of, expected) => {
    expect(names(of(rows))).toEqual(expected);
  });
});

it.each([
  ["kubectl", "09:00", "12:00", "Held by kubectl since 09:00, until 12:00"],
  ["kubectl", "09:00", null, "Held by kubectl since 09:00, until released"],
  ["kubectl", null, null, "Held by kubectl, until released"],
  [null, null, null, "Held until released"],
])("holder, start and end of a hold: %s, %s, %s", (by, since, until, english) => {
  expect(languages.en.heldBy(by, since, until)).toBe(english);
  const japanese = languages.ja.heldBy(by, since, until);
  for (const known of [by, since, until]) expect(japanese).toContain(known ?? "");
  expect(japanese.replaceAll("kubectl", "")).not.toMatch(/[A-Za-z]/);
});

describe("the lanes of a timeline", () => {
  const lanes = [
    row("b1", { zone: "b", departAt: 3 as never }),
    row("a2", { zone: "a", departAt: 9 as never }),
    row("a1", { zone: "a", departAt: 1 as never }),
    row("stays", { zone: "a", departAt: null, deadlineAt: null }),
  ];

  it("are grouped by zone, with the earliest departures on top", () => {
    expect(names(laneRows(lanes, 9))).toEqual(["a1", "a2", "stays", "b1"]);
  });

  it("are the earliest departures of a large fleet, whatever their zones", () => {
    expect(names(laneRows(lanes, 2))).toEqual(["a1", "b1"]);
  });
});

describe("a filter", () => {
  const spot = row("n7", { zone: "zone-a", pool: "web", policy: "spot" });
  const past = [
    { node: "n7", policy: "spot" },
    { node: "n8", policy: null },
  ] as unknown as readonly PastDeparture[];

  it.each<[string, readonly string[], readonly string[]]>([
    ["", ["n7"], ["n7", "n8"]],
    ["  ", ["n7"], ["n7", "n8"]],
    ["N7", ["n7"], ["n7"]],
    ["spot n", ["n7"], ["n7"]],
    ["web zone", ["n7"], []],
    ["n8", [], ["n8"]],
  ])("%j matches the same nodes among those present and past", (text, here, gone) => {
    expect(names(filteredRows([spot], text))).toEqual(here);
    expect(filteredPast(past, text).map(({ node }) => node)).toEqual(gone);
  });
});

describe("the next departures", () => {
  const [a, b, c] = [
    row("n1", { zone: "z", pool: "web" }),
    row("n2", { zone: "", pool: "db" }),
    row("n3", { zone: "a", pool: "web" }),
  ];
  const keys = { time: undefined, pool: ({ pool }) => pool } as Partial<SortKeys> as SortKeys;

  it.each([
    ["time", false, ["n1", "n2", "n3"]],
    ["time", true, ["n3", "n2", "n1"]],
    ["pool", false, ["n2", "n1", "n3"]],
    ["pool", true, ["n1", "n3", "n2"]],
  ] as const)(
    "sorted by %s, descending: %s, keep equal rows in order",
    (sort, isDescending, is) => {
      expect(names(sortedRows([a, b, c], { sort, isDescending }, keys))).toEqual(is);
    },
  );

  it("are one group if they are not grouped, otherwise one by name for each value", () => {
    const groupsOf = (group: "pool" | "zone" | undefined) =>
      rowGroups([a, b, c], group).map(({ name, rows: of }) => [name, ...names(of)]);
    expect(groupsOf(undefined)).toEqual([[undefined, "n1", "n2", "n3"]]);
    expect(groupsOf("pool")).toEqual([
      ["db", "n2"],
      ["web", "n1", "n3"],
    ]);
    expect(groupsOf("zone")).toEqual([
      ["", "n2"],
      ["a", "n3"],
      ["z", "n1"],
    ]);
  });
});
