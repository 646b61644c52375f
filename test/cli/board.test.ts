import { describe, expect, it } from "vitest";
import { ansiFrame } from "../../src/cli/demo/ansi-frame.ts";
import { board } from "../../src/cli/demo/board.ts";
import { ageBar, nodeRow, spanText } from "../../src/cli/demo/board-row.ts";
import type { BoardNode, BoardState, Doing } from "../../src/cli/demo/board-state.ts";
import { clipped, plainText, widthOf } from "../../src/cli/demo/styled-line.ts";
import type { WindowState } from "../../src/core/limits/window-state.ts";
import { hours, instant, minus, minutes, plus, seconds } from "../../src/core/time/time.ts";

const now = instant(Date.UTC(2026, 10, 20, 6, 0, 0));
const noCounts = {
  ...{ plannedDepartures: 0, preempted: 0, forced: 0, expired: 0 },
  ...{ podsCut: 0, podsLost: 0, replacements: 0, largestLossIn60s: 0 },
};

function node(index: number, doing: Doing): BoardNode {
  const zone = `europe-west1-${"bcd"[index % 3]}`;
  return { name: `spot-${index}`, zone, bornAt: minus(now, hours(index)), doing };
}

function leavingIn(hoursAhead: number): Doing {
  const departAt = plus(now, hours(hoursAhead));
  return { kind: "Scheduled", departAt, deadlineAt: departAt, why: "Spaced" };
}

function stateOf(nodes: readonly BoardNode[]): BoardState {
  return {
    ...{ now, startedAt: minus(now, hours(6)), seed: 7, speed: 60, kubeconfig: "/tmp/k" },
    policies: [
      {
        ...{ name: "spot", forecast: "All 18 departures can be kept" },
        windows: { state: "Open", until: plus(now, hours(5)), window: "settlement" },
      },
    ],
    nodes: nodes.toSorted((a, b) => (a.zone < b.zone ? -1 : 1)),
    news: Array.from({ length: 9 }, (_, index) => ({
      ...{ at: minus(now, minutes(index)), node: `spot-${index}` },
      ...{ what: "Planned", message: `spot-${index} has left.` },
    })),
    withLastcall: { ...noCounts, plannedDepartures: 12, preempted: 3 },
    without: { ...noCounts, preempted: 14, podsLost: 20 },
  };
}

const fleet = stateOf(Array.from({ length: 18 }, (_, index) => node(index, leavingIn(20 - index))));

function textOf(state: BoardState, size: { columns: number; rows: number }): string {
  return board(state, size).map(plainText).join("\n");
}

describe("The board", () => {
  it.each([
    { columns: 80, rows: 24 },
    { columns: 120, rows: 50 },
    { columns: 40, rows: 10 },
    { columns: 10, rows: 3 },
    { columns: 1, rows: 1 },
  ])("is never larger than a terminal of $columns columns and $rows rows", (size) => {
    const lines = board(fleet, size);
    expect(lines.length).toBeLessThanOrEqual(size.rows);
    for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(size.columns);
  });

  it("shows all 18 nodes, the totals and the way in on a terminal of 80 by 24", () => {
    const text = textOf(fleet, { columns: 80, rows: 24 });
    for (const { name } of fleet.nodes) expect(text).toContain(` ${name} `);
    expect(text).toContain("KUBECONFIG=/tmp/k");
    expect(text).toMatch(/with Lastcall +12 +3 +0/);
    expect(text).toMatch(/without it +0 +14 +0 +20/);
    expect(text).not.toContain("…");
  });

  it("names each zone once, over its nodes", () => {
    const text = textOf(fleet, { columns: 120, rows: 40 });
    for (const zone of ["b", "c", "d"]) {
      expect(text.split(`europe-west1-${zone}`)).toHaveLength(2);
    }
  });

  it("shows the news, the newest first, where there is room", () => {
    const text = textOf(fleet, { columns: 120, rows: 40 });
    expect(text.indexOf("spot-0 has left")).toBeGreaterThan(0);
    expect(text.indexOf("spot-1 has left")).toBeGreaterThan(text.indexOf("spot-0 has left"));
    expect(textOf(fleet, { columns: 120, rows: 24 })).not.toContain("has left");
  });

  it("shows each policy's windows and forecast, where that costs no node its line", () => {
    const text = textOf(fleet, { columns: 120, rows: 26 });
    expect(text).toContain(
      " spot  open for departures until 11:00, 5h00m from now (window settlement)",
    );
    expect(text).toContain("All 18 departures can be kept");
    for (const { name } of fleet.nodes) expect(text).toContain(` ${name} `);
    expect(textOf(fleet, { columns: 120, rows: 25 })).not.toContain("open for departures");
  });

  it.each<[WindowState, string]>([
    [{ state: "Open" }, "open for departures at any time"],
    [
      { state: "Open", until: plus(now, hours(1)) },
      "open for departures until 07:00, 1h00m from now",
    ],
    [
      { state: "Shut", until: plus(now, hours(1)), window: "sale" },
      "shut for departures until 07:00, 1h00m from now (window sale)",
    ],
    [{ state: "Shut" }, "shut for departures"],
  ])("says of %j: %s", (windows, expected) => {
    const policies = [{ name: "spot", forecast: "", windows }];
    const lines = textOf({ ...fleet, policies }, { columns: 120, rows: 30 }).split("\n");
    expect(lines).toContain(` spot  ${expected}`);
  });

  it("says what the audit found, as soon as there is one", () => {
    const audit = "5 of 7 workloads are cut at 15 s on gke.";
    const windows = { state: "Open" } as const;
    const policies = [{ name: "spot", forecast: "All can be kept", windows, audit }];
    const text = textOf({ ...fleet, policies }, { columns: 120, rows: 30 });
    expect(text).toContain(`All can be kept\n       ${audit}`);
    expect(textOf(fleet, { columns: 120, rows: 30 })).not.toContain("workloads");
  });

  it("shows who is under way and who leaves next where not all nodes fit", () => {
    const draining: Doing = { kind: "Draining", podsLeft: 2, podsTotal: 5, blocked: 0 };
    const state = { ...fleet, nodes: [node(0, draining), ...fleet.nodes.slice(1)] };
    // 12 rows: 2 of head, 3 of totals, 1 of heads, 5 nodes and how many more there are.
    const text = textOf(state, { columns: 100, rows: 12 });
    expect(text).toContain("spot-0 ");
    expect(text).toContain("and 13 more");
    // They leave in 20 hours less their number, so the highest numbers leave next.
    for (const next of [17, 16, 15, 14]) expect(text).toContain(`spot-${next} `);
    expect(text).not.toContain("spot-13 ");
  });
});

describe("A node's row", () => {
  const widths = { zone: 4, name: 6, bar: 8 };
  const inHours = (count: number) => plus(now, hours(count));

  it.each<[string, Doing, string]>([
    ["no departure yet", { kind: "Working" }, "not planned yet"],
    ["its deadline as its instant", leavingIn(3), "in 3h00m   Spaced, at its latest"],
    [
      "an instant before its deadline",
      { kind: "Scheduled", departAt: inHours(1), deadlineAt: inHours(3), why: "Spaced" },
      "in 1h00m   Spaced, 2h00m early",
    ],
    [
      "an instant that has come",
      { kind: "Scheduled", departAt: now, deadlineAt: now, why: "Overdue" },
      "due        Overdue, at its latest",
    ],
    ["something in its way", { kind: "Held", why: "BudgetSpent" }, "held       BudgetSpent"],
    [
      "pods that leave",
      { kind: "Draining", podsLeft: 2, podsTotal: 5, blocked: 0 },
      "now        2 of 5 pods left",
    ],
    [
      "pods that a budget holds",
      { kind: "Draining", podsLeft: 2, podsTotal: 5, blocked: 1 },
      "2 of 5 pods left, 1 held by a budget",
    ],
    ["no pods left", { kind: "Releasing" }, "drained, releasing"],
    ["been let off", { kind: "RollingBack" }, "stays      is put back to work"],
    [
      "a notice of 30 s, 12 s ago",
      { kind: "Taken", noticedAt: minus(now, seconds(12)) },
      "TAKEN      the cloud: gone in 18s",
    ],
    ["no machine", { kind: "Gone" }, "gone       another is being made"],
    ["a machine that comes up", { kind: "Booting" }, "a new machine boots"],
  ])("says what goes on where it has %s", (_, doing, expected) => {
    const row = nodeRow(node(2, doing), { now, widths, zone: "z" });
    expect(plainText(row)).toContain(expected);
  });

  it("shows how old the machine is, but not before it is there", () => {
    const age = (doing: Doing) => plainText(nodeRow(node(12, doing), { now, widths, zone: "z" }));
    expect(age({ kind: "Working" })).toContain("████···· 12h00m  ");
    expect(age({ kind: "Booting" })).toContain("········         ");
  });

  it.each([
    [-1, "····"],
    [0, "····"],
    [0.25, "█···"],
    // 0.5 of 4 columns and an eighth: 17 of 32 eighths.
    [17 / 32, "██▏·"],
    [31 / 32, "███▉"],
    [1, "████"],
    [2, "████"],
  ])("draws a share of %d as %s", (share, expected) => {
    expect(plainText(ageBar(share, { width: 4, tone: "good" }))).toBe(expected);
  });

  it.each([
    [0, "0s"],
    [59_999, "59s"],
    [60_000, "1m"],
    [3_599_999, "59m"],
    [3_600_000, "1h00m"],
    [84_540_000, "23h29m"],
  ])("writes %d ms as %s", (spanMs, expected) => {
    expect(spanText(spanMs)).toBe(expected);
  });
});

describe("A frame", () => {
  const line = [
    { text: "ab", tone: "plain" },
    { text: "cd", tone: "bad" },
  ] as const;

  it("has no colour where none is wanted", () => {
    expect(ansiFrame([line], { colour: false })).toContain("abcd\u001b[K");
    expect(ansiFrame([line], { colour: true })).toContain("ab\u001b[31;1mcd\u001b[0m\u001b[K");
  });

  it("clears nothing before it has written what comes there", () => {
    const frame = ansiFrame([line, line], { colour: false });
    expect(frame).not.toContain("\u001b[2J");
    expect(frame.indexOf("\u001b[J")).toBeGreaterThan(frame.lastIndexOf("abcd"));
  });

  it.each([
    [4, "abcd"],
    [3, "ab…"],
    [1, "…"],
    [0, ""],
  ])("cut to %d columns is %s", (columns, expected) => {
    expect(plainText(clipped(line, columns))).toBe(expected);
  });
});
