import { describe, expect, it } from "vitest";
import type { BoardNode, NodeActivity } from "../../src/board/demo-picture.ts";
import {
  ansiFrame,
  cell,
  clipped,
  plainText,
  shareBar,
  widthOf,
} from "../../src/cli/command-line/terminal.ts";
import { nodeRow, rowWidths } from "../../src/cli/demo/board-row.ts";
import { type BoardState, board } from "../../src/cli/demo/demo-screen.ts";
import type { WindowState } from "../../src/core/limits/windows.ts";
import { hours, instant, millis, minus, minutes, plus, seconds } from "../../src/core/time/time.ts";

const now = instant(Date.UTC(2026, 10, 20, 6, 0, 0));

function node(index: number, doing: NodeActivity): BoardNode {
  const zone = `europe-west1-${"bcd"[index % 3]}`;
  const twin = { bornAt: minus(now, hours(20)), doing: "Working" } as const;
  return { name: `spot-${index}`, zone, bornAt: minus(now, hours(index)), doing, twin };
}

function leavingIn(hoursAhead: number): NodeActivity {
  const departAt = plus(now, hours(hoursAhead));
  return { kind: "Scheduled", departAt, deadlineAt: departAt, why: "Spaced" };
}

function stateOf(nodes: readonly BoardNode[]): BoardState {
  return {
    ...{ now, startedAt: minus(now, hours(6)), seed: 7, speed: 60, kubeconfig: "/tmp/k" },
    policies: [
      {
        ...{ name: "spot", forecast: "All 18 departures are on schedule" },
        windows: { state: "Open", until: plus(now, hours(5)), window: "settlement" },
      },
    ],
    nodes,
    news: Array.from({ length: 9 }, (_, index) => ({
      ...{ at: minus(now, minutes(index)), node: `spot-${index}` },
      ...{ what: "Planned", message: `spot-${index} has left.` },
    })),
    ...{ moment: "Quiet", paused: false, isReading: false },
    story: { kind: "OneByOne", nodes: 18, nodesLeft: 6, limitAt: plus(now, hours(4)) },
    withLastcall: { lostAtLimit: 0, lostAtOnce: 2, podsKilled: 0, replacements: 15 },
    without: { lostAtLimit: 8, lostAtOnce: 9, podsKilled: 20, replacements: 14 },
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

  it.each([80, 120])(
    "keeps the line of a broken policy on %i columns, and names the field",
    (columns) => {
      const problem =
        'spec.windows[0].timeZone: found "Local", expected an IANA time zone such as Asia/Tokyo';
      const broken = {
        ...{ name: "spot", problem, windows: { state: "Shut" as const } },
        forecast: "Cannot be read: it holds back 18 nodes",
      } as const;
      const text = textOf({ ...fleet, policies: [broken] }, { columns, rows: 24 });
      expect(text).toContain(" policy spot  spec.windows[0].timeZone: found");
      expect(text.replaceAll(/\s+/g, " ")).toContain("such as Asia/Tokyo");
      expect(text).toContain("Cannot be read: it holds back 18 nodes");
    },
  );

  it.each([
    [{ paused: true, isReading: false }, /PAUSED$/m],
    [{ paused: true, isReading: true }, /PAUSED while a node's page is open$/m],
  ])("says that it is paused, and why: %o", (state, expected) => {
    expect(textOf({ ...fleet, ...state }, { columns: 100, rows: 24 })).toMatch(expected);
  });

  it("shows window, forecast, figures, events and keys on an 80x24 terminal", () => {
    const text = textOf({ ...fleet, hasKeys: true }, { columns: 80, rows: 24 });
    expect(text).toContain("KUBECONFIG=/tmp/k");
    expect(text).toContain(" policy spot  open for departures until 11:00");
    expect(text).toContain("All 18 departures are on schedule");
    expect(text).toMatch(/without it +\S+ +8 +9 +20 +14$/m);
    expect(text).toMatch(/with Lastcall +\S+ +0 +2 +0 +15$/m);
    expect(text.split("\n").filter((line) => line.includes("has left."))).toHaveLength(3);
    expect(text.split("\n").at(-1)).toMatch(/space pause .* q quit/);
    expect(text).not.toContain("…");
  });

  it("shows the figures, the next departure with its reason, and all keys on 40 columns", () => {
    const text = textOf({ ...fleet, hasKeys: true }, { columns: 40, rows: 24 });
    expect(text).toMatch(/^ {9}24 H {2}AT ONCE {2}KILLED {2}REPLACED$/m);
    expect(text).toMatch(/^ without +8 +9 +20 +14$/m);
    expect(text).toMatch(/^ with +0 +2 +0 +15$/m);
    expect(text).toMatch(/^ spot-17 in 3h00m {3}Spaced from its nei…$/m);
    for (const key of ["pause", "speed", "next event", "interrupt", "sort", "quit"])
      expect(text).toContain(` ${key}`);
  });

  it("shows whole addresses on 40, 60 and 80 columns", () => {
    const address = "http://127.0.0.1:8087/pXk3v0_Jm8Q2c-Yt/?token=ZzsDNM2jIl_a4Pj8";
    const kubeconfig = "/tmp/lastcall-demo-5bce-3512-cGekH5/config";
    const state = { ...fleet, address, kubeconfig };
    for (const columns of [40, 60, 80]) {
      const text = textOf(state, { columns, rows: 24 }).replaceAll("\n", "");
      expect(text).toContain(address);
      expect(text).toContain(`KUBECONFIG=${kubeconfig}`);
    }
    expect(textOf(state, { columns: 80, rows: 24 })).toContain(`${address} in a browser`);
  });

  it("tells the story on as many lines as it needs", () => {
    const text = textOf(fleet, { columns: 80, rows: 24 });
    expect(text.split("\n").slice(1, 3)).toEqual([
      " With Lastcall nodes leave one by one, drained and replaced: 6 of 18 are still",
      " to go. Without, those left wait for their 24 h, in 4h00m.",
    ]);
  });

  it("says whether the clock is paused, how fast it runs, and why", () => {
    const size = { columns: 100, rows: 24 };
    expect(textOf({ ...fleet, paused: true }, size)).toContain("PAUSED");
    expect(textOf({ ...fleet, speed: 10, moment: "Notice" }, size)).toContain(
      " 10x (notice running)",
    );
    expect(textOf({ ...fleet, speed: 0.25 }, size)).toContain(" 0.3x");
  });

  it("sorts nodes by departure, those under way first, or by name", () => {
    const draining: NodeActivity = { kind: "Draining", podsLeft: 2, podsTotal: 5, blocked: 0 };
    const state = { ...fleet, nodes: [...fleet.nodes.slice(1), node(0, draining)] };
    const order = (sort: "Leaving" | "Name") =>
      [...textOf({ ...state, sort }, { columns: 100, rows: 50 }).matchAll(/^ (spot-\d+)/gm)].map(
        ([, name]) => name,
      );
    // Node N leaves in 20 - N hours.
    expect(order("Leaving").slice(0, 3)).toEqual(["spot-0", "spot-17", "spot-16"]);
    expect(order("Name").slice(0, 3)).toEqual(["spot-0", "spot-1", "spot-2"]);
  });

  it("shows every pod of a notice on 80x24, and what happens to them without Lastcall", () => {
    const terminatingAt = minus(now, seconds(30));
    const pods = ["api", "checkout", "web", "worker"].map((name) => ({ name, terminatingAt }));
    const notice = {
      ...{ node: "spot-0", noticedAt: terminatingAt, deadlineAt: plus(now, seconds(90)) },
      ...{ pods, twinPods: pods.map(({ name }) => ({ name })) },
    };
    const state = { ...fleet, notice, hasKeys: true, address: "http://127.0.0.1:8087/" };
    const text = textOf(state, { columns: 80, rows: 24 });
    for (const { name } of pods) expect(text).toMatch(new RegExp(`^ +${name} .*terminating`, "m"));
    expect(text).toContain("without Lastcall: 4 pods keep running");
    expect(text).toContain("All 18 departures are on schedule");
    expect(text).toContain("spot-17 ");
    expect(text).toContain("has left.");
    expect(text.split("\n").at(-1)).toMatch(/space pause .* q quit/);
  });

  it("cuts an event between words, since half a number is another number", () => {
    const message = "spot-d-v4kf is drained: 4 pods in 90 s, planned within 120 s.";
    const news = [{ at: now, node: "spot-d-v4kf", what: "Drained", message }];
    const text = textOf({ ...fleet, news }, { columns: 80, rows: 24 });
    expect(text).toContain("4 pods in 90 s, planned within …");
    expect(textOf({ ...fleet, news }, { columns: 100, rows: 24 })).toContain(message);
  });

  it("shows the newest event first", () => {
    const text = textOf(fleet, { columns: 120, rows: 50 });
    expect(text.indexOf("spot-0 has left")).toBeGreaterThan(0);
    expect(text.indexOf("spot-1 has left")).toBeGreaterThan(text.indexOf("spot-0 has left"));
  });

  it("says how many more nodes there are if not all fit", () => {
    // 13 rows: 4 of header, 3 of totals, 1 of column heads, 4 nodes, and 1 that counts the rest.
    const text = textOf(fleet, { columns: 100, rows: 13 });
    expect(text).toContain("and 14 more");
    for (const next of [17, 16, 15, 14]) expect(text).toContain(`spot-${next} `);
    expect(text).not.toContain("spot-13 ");
  });

  it("has a mark for each node of both fleets, as high as the node's age", () => {
    const twin = { bornAt: minus(now, hours(24)), doing: "Working" } as const;
    const taken: NodeActivity = { kind: "Taken", deadlineAt: plus(now, minutes(1)) };
    const nodes = [
      { ...node(0, { kind: "Working" }), twin },
      { ...node(1, taken), twin: { ...twin, doing: "Taken" } as const },
      { ...node(12, { kind: "Releasing" }), twin: { ...twin, doing: "Booting" } as const },
    ];
    const text = textOf({ ...fleet, nodes }, { columns: 80, rows: 24 });
    // 12 hours would be the fourth or fifth of eight levels; spot-12 shows that it leaves instead.
    expect(text).toMatch(/without it +█×· /);
    expect(text).toMatch(/with Lastcall +▁×↓ /);
  });

  it.each<[WindowState, string]>([
    [{ state: "Open" }, "open for departures at any time"],
    [{ state: "Open", until: plus(now, hours(1)) }, "open for departures until 07:00, in 1h00m"],
    [
      { state: "Shut", until: plus(now, hours(1)), window: "sale" },
      "closed for departures until 07:00, in 1h00m (window sale)",
    ],
    [{ state: "Shut" }, "closed for departures"],
  ])("describes the window state %j as: %s", (windows, expected) => {
    const policies = [{ name: "spot", forecast: "", windows }];
    const lines = textOf({ ...fleet, policies }, { columns: 120, rows: 30 }).split("\n");
    expect(lines).toContain(` policy spot  ${expected}`);
  });

  it("shows the audit's result once there is one", () => {
    const audit = "5 of 7 workloads ask for more than the 15 s that gke gives.";
    const windows = { state: "Open" } as const;
    const policies = [{ name: "spot", forecast: "All are on schedule", windows, audit }];
    const text = textOf({ ...fleet, policies }, { columns: 120, rows: 40 });
    expect(text).toContain(audit);
    expect(textOf(fleet, { columns: 120, rows: 40 })).not.toContain("workloads");
  });
});

describe("A node's row", () => {
  const widths = { name: 6, bar: 8, what: 42 };
  const inHours = (count: number) => plus(now, hours(count));

  it.each<[string, NodeActivity, string]>([
    ["no departure yet", { kind: "Working" }, "not planned yet"],
    [
      "its deadline as the planned time",
      leavingIn(3),
      "in 3h00m   Spaced from its neighbours, at deadline",
    ],
    [
      "a planned time before its deadline",
      { kind: "Scheduled", departAt: inHours(1), deadlineAt: inHours(3), why: "Spaced" },
      "in 1h00m   Spaced from its neighbours, 2h00m early",
    ],
    [
      "a planned time that has passed",
      { kind: "Scheduled", departAt: now, deadlineAt: now, why: "Overdue" },
      "due        Was past its deadline when planned",
    ],
    [
      "something that holds it",
      { kind: "Held", why: "BudgetSpent" },
      "held       Waits for the budget",
    ],
    [
      "terminating pods",
      { kind: "Draining", podsLeft: 2, podsTotal: 5, blocked: 0 },
      "now        2 of 5 pods still there",
    ],
    [
      "pods that a budget blocks",
      { kind: "Draining", podsLeft: 2, podsTotal: 5, blocked: 1 },
      "2 of 5 pods still there, 1 blocked by a budget",
    ],
    [
      "its only pod terminating",
      { kind: "Draining", podsLeft: 1, podsTotal: 1, blocked: 0 },
      "now        1 of 1 pod still there",
    ],
    ["no pods left", { kind: "Releasing" }, "drained, releasing"],
    ["been cancelled", { kind: "RollingBack" }, "stays      uncordoned"],
    [
      "a notice with 18.5 s left",
      { kind: "Taken", deadlineAt: plus(now, millis(18_500)), podsLeft: 3 },
      "NOTICE     in 19 s, 3 pods still there",
    ],
    [
      "a notice, and one pod that needs the whole time",
      { kind: "Taken", deadlineAt: plus(now, seconds(2)), podsLeft: 1 },
      "NOTICE     in 2 s, 1 pod still there",
    ],
    [
      "a notice that left enough time",
      { kind: "Taken", deadlineAt: now, podsLeft: 0 },
      "NOTICE     shut down, drained",
    ],
    ["no machine", { kind: "Gone" }, "gone       being replaced"],
    ["a machine that is starting", { kind: "Booting" }, "new machine booting"],
  ])("says what happens to a node that has %s", (_, doing, expected) => {
    const row = nodeRow(node(2, doing), { now, widths });
    expect(plainText(row)).toContain(expected);
  });

  it.each<[NonNullable<BoardNode["twin"]>["doing"], string]>([
    ["Working", " spot-2 ██████▋· 20h00m │"],
    ["Taken", " spot-2 NOTICE          │"],
    ["Gone", " spot-2 lost            │"],
    ["Booting", " spot-2 new one booting │"],
  ])("shows next to it that the machine without Lastcall is %s", (doing, expected) => {
    const twin = { bornAt: minus(now, hours(20)), doing };
    const row = nodeRow({ ...node(2, { kind: "Working" }), twin }, { now, widths });
    // On eight columns, 2 of 24 hours are 5 eighths of a column, and 20 hours are 53.
    expect(plainText(row)).toContain(expected);
  });

  it("shows the whole reason on 80 columns, and how early the departure is on 120", () => {
    const doing: NodeActivity = {
      ...{ kind: "Scheduled", departAt: inHours(1), deadlineAt: inHours(3), why: "Spaced" },
    };
    const at = (columns: number) => {
      const one = node(17, doing);
      return plainText(nodeRow(one, { now, widths: rowWidths([one], columns) })).trimEnd();
    };
    expect(at(80)).toMatch(/ in 1h00m {3}Spaced from its neighbours$/);
    expect(at(80).length).toBeLessThanOrEqual(80);
    expect(at(120)).toMatch(/Spaced from its neighbours, 2h00m early$/);
    expect(at(120).length).toBeLessThanOrEqual(120);
  });

  it("shows the machine's age, except while it boots", () => {
    const age = (doing: NodeActivity) => plainText(nodeRow(node(12, doing), { now, widths }));
    expect(age({ kind: "Working" })).toContain("████···· 12h00m  ");
    expect(age({ kind: "Booting" })).toContain("········         ");
  });

  it.each([
    [-1, "····"],
    [0, "····"],
    [0.25, "█···"],
    // Half of 4 columns and an eighth: 17 of 32 eighths.
    [17 / 32, "██▏·"],
    [31 / 32, "███▉"],
    [1, "████"],
    [2, "████"],
  ])("draws a share of %d as %s", (share, expected) => {
    expect(plainText(shareBar(share, { width: 4, tone: "good" }))).toBe(expected);
  });
});

describe("A frame", () => {
  const line = [
    { text: "ab", tone: "plain" },
    { text: "cd", tone: "bad" },
  ] as const;

  it("has colours only if they are enabled", () => {
    expect(ansiFrame([line], { colour: false })).toContain("abcd\u001b[K");
    expect(ansiFrame([line], { colour: true })).toContain("ab\u001b[31;1mcd\u001b[0m\u001b[K");
  });

  it.each([
    ["Japanese letters", "予算の空きを待機", 16, 7, "予算の…"],
    ["an emoji", "🚆🚆🚆", 6, 4, "🚆…"],
    ["a letter with a combining accent", "cafe\u0301s", 5, 4, "caf…"],
    ["half of a wide letter, which does not exist", "a予b", 4, 3, "a…"],
  ])("has the width at which a terminal shows %s", (_, text, width, columns, clippedText) => {
    expect(widthOf([cell(text)])).toBe(width);
    expect(clipped([cell(text)], width)).toEqual([cell(text)]);
    const short = clipped([cell(text)], columns);
    expect(plainText(short)).toBe(clippedText);
    expect(widthOf(short)).toBeLessThanOrEqual(columns);
  });

  it("replaces control characters and characters that change the text's order", () => {
    const hostile = "a\u001b[2Jb\u009bc\u202ed\u2066e\nf";
    expect(ansiFrame([[cell(hostile)]], { colour: false })).toContain(
      "a\ufffd[2Jb\ufffdc\ufffdd\ufffde\ufffdf\u001b[K",
    );
  });

  it("clears the rest of the screen only after it has written all lines", () => {
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
