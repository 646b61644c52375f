import { describe, expect, it } from "vitest";
import type { BoardNode } from "../../src/board/demo-picture.ts";
import { boardPicture } from "../../src/board/picture.ts";
import type { BoardPicture } from "../../src/board/stream.ts";
import { terminalBoard } from "../../src/cli/board/terminal-board.ts";
import { firstPlace } from "../../src/cli/board/terminal-keys.ts";
import { plainText, widthOf } from "../../src/cli/command-line/terminal.ts";
import { type BandFacts, demoBand } from "../../src/cli/demo/demo-band.ts";
import { hours, minus, minutes, plus, seconds } from "../../src/core/time/time.ts";
import { aNode, aPolicy } from "../core/fleet-builder.ts";
import { now, past, pictureOf, row } from "./terminal-picture.ts";

const nodes = Array.from({ length: 18 }, (_, index): BoardNode => {
  const twin = { bornAt: minus(now, hours(20)), doing: "Working" } as const;
  return { name: `spot-${index}`, bornAt: minus(now, hours(index)), doing: "Working", twin };
});

const facts: BandFacts = {
  ...{ now, startedAt: minus(now, hours(6)), seed: 7, speed: 60, kubeconfig: "/tmp/k" },
  ...{ moment: "Quiet", paused: false, isReading: false, nodes, audits: [] },
  story: { kind: "OneByOne", nodes: 18, nodesLeft: 6, limitAt: plus(now, hours(4)) },
  withLastcall: { lostAtLimit: 0, lostAtOnce: 2, podsKilled: 0, replacements: 15 },
  without: { lostAtLimit: 8, lostAtOnce: 9, podsKilled: 20, replacements: 14 },
};

// Node N leaves in 20 - N hours.
const rows = nodes.map(({ name }, index) =>
  row(name, { departAt: plus(now, hours(20 - index)), deadlineAt: plus(now, hours(24)) }),
);
const pasts = Array.from({ length: 9 }, (_, index) => ({
  ...{ ...past, id: `p${index}`, node: `spot-${index}`, endedAt: minus(now, minutes(index)) },
  explain: `spot-${index} has left.`,
}));
const picture = pictureOf({ rows, past: pasts }, { cluster: "demo", isDemo: true });

interface Size {
  readonly columns: number;
  readonly rows: number;
}

function linesOf(more: Partial<BandFacts>, size: Size, on: BoardPicture = picture) {
  const band = demoBand({ ...facts, ...more }, size);
  return terminalBoard(on, now, { ...firstPlace, ...size, band }).lines;
}

function textOf(more: Partial<BandFacts>, size: Size, on?: BoardPicture): string {
  return linesOf(more, size, on).map(plainText).join("\n");
}

const pods = ["api", "checkout", "web", "worker"].map((name) => ({
  ...{ name, terminatingAt: minus(now, seconds(30)) },
}));
const notice = {
  ...{ node: "spot-0", noticedAt: minus(now, seconds(30)), deadlineAt: plus(now, seconds(90)) },
  ...{ pods, twinPods: pods.map(({ name }) => ({ name })) },
};

const everyKey = [
  ...["pause", "speed", "next event", "interrupt a node"],
  ...["move", "describe", "filter", "sort", "quit"],
];

describe("The terminal demo", () => {
  it.each([
    { columns: 80, rows: 24 },
    { columns: 120, rows: 50 },
    { columns: 60, rows: 24 },
    { columns: 40, rows: 10 },
    { columns: 10, rows: 3 },
    { columns: 1, rows: 1 },
  ])("is never larger than a terminal of $columns columns and $rows rows", (size) => {
    for (const more of [{}, { notice }, { audits: ["spot: ".repeat(40)] }]) {
      const lines = linesOf(more, size);
      expect(lines.length).toBeLessThanOrEqual(size.rows);
      for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(size.columns);
    }
  });

  it.each([80, 120])(
    "keeps the line of a broken policy on %i columns, and names the field",
    (columns) => {
      const problem =
        'spec.windows[0].timeZone: found "Local", expected an IANA time zone such as Asia/Tokyo';
      const view = {
        ...{ nodes: nodes.map(({ name }) => aNode(name)), departures: [] },
        policies: [aPolicy({ name: "batch" })],
        badPolicies: [{ name: "spot", problem, weight: 9 }],
      };
      const broken = boardPicture(view, { now, state: picture.fleet });
      const text = textOf({}, { columns, rows: 24 }, broken);
      expect(text).toMatch(/^ spot +It cannot be read, and its 18 nodes stay: spec/m);
      expect(text.replaceAll(/\s+/g, " ")).toContain(
        'stay: spec.windows[0].timeZone: found "Local", expected an IANA time zone such as Asia/Tokyo',
      );
      expect(text).toMatch(/^ batch /m);
      for (const key of everyKey) expect(text).toContain(` ${key}`);
    },
  );

  it("names the field of a broken policy on 40 columns, and says that more is cut", () => {
    const problem = 'spec.windows[0].timeZone: found "Local", expected an IANA time zone';
    const broken = boardPicture(
      {
        ...{ nodes: [aNode("n1"), aNode("n2")], departures: [], policies: [] },
        badPolicies: [{ name: "spot", problem, weight: 9 }],
      },
      { now, state: picture.fleet },
    );
    const text = textOf({}, { columns: 40, rows: 30 }, broken);
    expect(text).toMatch(/ spec\.windows\[0\]\.timeZone: .*…$/m);
  });

  it.each([
    [{ paused: true, isReading: false }, /PAUSED$/m],
    [{ paused: true, isReading: true }, /PAUSED while a node is open$/m],
  ])("says that it is paused, and why: %o", (state, expected) => {
    expect(textOf(state, { columns: 100, rows: 24 })).toMatch(expected);
  });

  it("says how fast the clock runs, and why", () => {
    const size = { columns: 100, rows: 24 };
    expect(textOf({}, size)).toMatch(/2026-11-20 06:00:00 UTC {3}seed 7 {3}60x$/m);
    expect(textOf({ speed: 10, moment: "Notice" }, size)).toContain(" 10x (notice running)");
    expect(textOf({ speed: 0.25 }, size)).toContain(" 0.3x");
  });

  it("shows policy, figures, nodes, past departures and all keys on an 80x24 terminal", () => {
    const text = textOf({}, { columns: 80, rows: 24 });
    expect(text).toContain("KUBECONFIG=/tmp/k");
    expect(text).toContain(" spot  All 3 departures are on schedule");
    expect(text).toMatch(/without it +\S+ +8 +9 +20 +14$/m);
    expect(text).toMatch(/with Lastcall +\S+ +0 +2 +0 +15$/m);
    expect(text).toMatch(/^>spot-17 +20h00m {2}in 3h00m +Spaced from its neighbours$/m);
    expect(text.split("\n").filter((line) => line.includes("has left."))).toHaveLength(3);
    for (const key of everyKey) expect(text).toContain(` ${key}`);
    expect(text).not.toContain("…");
  });

  it("shows the figures, the next departure with its reason, and all keys on 40 columns", () => {
    const text = textOf({}, { columns: 40, rows: 24 });
    expect(text).toMatch(/^ {9}24 H {2}AT ONCE {2}KILLED {2}REPLACED$/m);
    expect(text).toMatch(/^ without +8 +9 +20 +14$/m);
    expect(text).toMatch(/^ with +0 +2 +0 +15$/m);
    expect(text).toMatch(/^>spot-17 +in 3h00m +Spaced from its n/m);
    for (const key of everyKey) expect(text).toContain(` ${key}`);
  });

  it("shows whole addresses on 40, 60 and 80 columns", () => {
    const address = "http://127.0.0.1:8087/pXk3v0_Jm8Q2c-Yt/?token=ZzsDNM2jIl_a4Pj8";
    const kubeconfig = "/tmp/lastcall-demo-5bce-3512-cGekH5/config";
    for (const columns of [40, 60, 80]) {
      const text = textOf({ address, kubeconfig }, { columns, rows: 24 }).replaceAll("\n", "");
      expect(text).toContain(address);
      expect(text).toContain(`KUBECONFIG=${kubeconfig}`);
    }
    const text = textOf({ address, kubeconfig }, { columns: 80, rows: 24 });
    expect(text).toContain(`${address} in a browser`);
  });

  it("tells the story on as many lines as it needs", () => {
    expect(textOf({}, { columns: 80, rows: 24 }).split("\n").slice(1, 3)).toEqual([
      " With Lastcall nodes leave one by one, drained and replaced: 6 of 18 are still",
      " to go. Without, those left wait for their 24 h, in 4h00m.",
    ]);
  });

  it("shows every pod of a notice on 80x24, and what happens to them without Lastcall", () => {
    const address = "http://127.0.0.1:8087/";
    const taken = row("spot-0", { state: "Leaving", noticedAt: now, pods: null });
    const on = { ...picture, rows: [taken, ...rows.slice(1)] };
    const text = textOf({ notice, address }, { columns: 80, rows: 24 }, on);
    for (const { name } of pods) expect(text).toMatch(new RegExp(`^ +${name} .*terminating`, "m"));
    expect(text).toContain("without Lastcall: 4 pods keep running");
    expect(text).toContain("All 3 departures are on schedule");
    expect(text).toMatch(/^>spot-0 +\S+ +NOTICE/m);
    expect(text).toMatch(/^ spot-17 /m);
    for (const key of everyKey) expect(text).toContain(` ${key}`);
  });

  it("gives the pods of a notice precedence over nodes, and counts what does not fit", () => {
    const many = Array.from({ length: 30 }, (_, index) => ({ name: `pod-${index}` }));
    const crowded = { ...notice, pods: many, twinPods: undefined };
    const text = textOf({ notice: crowded }, { columns: 80, rows: 24 });
    expect(text).toContain("NOTICE  spot-0 shuts down in 90 s");
    expect(text).toMatch(/pod-5 .*running$/m);
    expect(text).toMatch(/^ {3}and \d\d more$/m);
    expect(text).toMatch(/^>spot-17 /m);
    expect(text).toMatch(/^ \d+ more below$/m);
    expect(text.split("\n").at(-1)).toContain("q quit");
  });

  it("says how many more nodes there are if not all fit", () => {
    const text = textOf({}, { columns: 100, rows: 13 });
    expect(text).toContain("more below");
    for (const next of [17, 16]) expect(text).toContain(`spot-${next} `);
    expect(text).not.toContain("spot-13 ");
  });

  it("has a mark for each node of both fleets, as high as the node's age", () => {
    const old = { bornAt: minus(now, hours(24)), doing: "Working" } as const;
    const first = { name: "spot-0", bornAt: now, doing: "Working", twin: old } as const;
    const marked: readonly BoardNode[] = [
      first,
      { ...first, name: "spot-1", doing: "Taken", twin: { ...old, doing: "Taken" } },
      { ...first, name: "spot-2", doing: "Leaving", twin: { ...old, doing: "Booting" } },
      { ...first, name: "spot-3", doing: "Gone", twin: { ...old, doing: "Gone" } },
      { ...first, name: "spot-4", doing: "Booting", twin: undefined },
    ];
    const text = textOf({ nodes: marked }, { columns: 80, rows: 24 });
    expect(text).toMatch(/without it +█×·× {2}/);
    expect(text).toMatch(/with Lastcall +▁×↓·· /);
  });

  it("shows the audit's result once there is one, but not in place of a node", () => {
    const audits = ["spot: 5 of 7 workloads ask for more than the 15 s that gke gives."];
    expect(textOf({ audits }, { columns: 120, rows: 40 })).toContain(audits[0]);
    expect(textOf({}, { columns: 120, rows: 40 })).not.toContain("workloads");
    expect(textOf({ audits }, { columns: 120, rows: 24 })).not.toContain("workloads");
  });

  it("gives the description of a node the space of the fleets, below the demo's clock", () => {
    const size = { columns: 80, rows: 24 };
    const band = demoBand({ ...facts, notice, paused: true, isReading: true }, size);
    const look = { ...firstPlace, ...size, band, mode: "Node", selected: "spot-3" } as const;
    const text = terminalBoard(picture, now, look).lines.map(plainText).join("\n");
    expect(text).toMatch(/^ Lastcall demo .*PAUSED while a node is open$/m);
    expect(text).toMatch(/^ spot-3$/m);
    expect(text).not.toContain("with Lastcall");
    expect(text).toMatch(/space pause .*Esc back .*q quit$/ms);
  });

  it("lists only the filter's keys while one is typed, which are letters of it otherwise", () => {
    const size = { columns: 80, rows: 24 };
    const look = { ...firstPlace, ...size, band: demoBand(facts, size), mode: "Filter" } as const;
    const last = terminalBoard(picture, now, look).lines.map(plainText).at(-1);
    expect(last).toMatch(/^ \/_ +Enter keep +Esc clear *$/);
  });
});
