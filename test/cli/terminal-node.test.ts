import { describe, expect, it } from "vitest";
import { terminalBoard } from "../../src/cli/board/terminal-board.ts";
import { plainText } from "../../src/cli/command-line/terminal.ts";
import { minus, minutes } from "../../src/core/time/time.ts";
import {
  blocked,
  now,
  past,
  pictureOf,
  podsLeft,
  policy,
  row,
  small,
  textOf,
} from "./terminal-picture.ts";

const timeline = [
  { at: minus(now, minutes(3)), step: "Preparing", result: "Due: n1 starts to leave" },
  { at: minus(now, minutes(2)), step: "Draining", result: "Prepared: n1 is draining" },
];
const departureNamed = (name: string) => ({
  ...{ name, uid: name, cause: "Planned", isLive: true, steps: timeline },
  ...{ actions: [], past: null, record: null },
});
const departuresOf = (node: string) => ({
  departures: [departureNamed(`${node}-1`)],
  earlier: [departureNamed(`${node}-0`)],
});

describe("A node that is described", () => {
  const node = { mode: "Node", cursor: 0, departuresOf } as const;

  it.each([80, 120, 200])(
    "shows its departure, the reason and the steps on %i columns",
    (columns) => {
      const rows = [
        row("n1", {
          ...{ state: "Leaving", phase: "Draining", reason: "DrainBlocked", departure: "n1-1" },
          ...{ pods: { ...podsLeft(3, 4), blocked: 2 }, explain: blocked },
        }),
      ];
      const text = textOf(pictureOf({ rows }), { ...node, columns });
      expect(text).toMatch(/^ n1$/m);
      expect(text).toMatch(/^ Departure +n1-1$/m);
      expect(text).toMatch(/^ Phase +Draining$/m);
      expect(text).toMatch(/^ Deadline +11-20 10:00 UTC, in 4h00m$/m);
      expect(text).toMatch(/^ Pods +3 of 4 still there, 2 blocked$/m);
      // The whole sentence, on as many lines as it takes.
      expect(text.replaceAll(/\s+/g, " ")).toContain(`has 2 currently; and 1 more pod`);
      expect(text).toMatch(/^ Steps of n1-1\n 11-20 05:57 {2}Preparing: Due: n1 starts to leave$/m);
      expect(text).toMatch(/Esc back .*q quit/);
      expect(text).not.toContain("NODE ");
    },
  );

  it("shows what has departed of its own machine, and below that of earlier ones", () => {
    const pasts = [
      { ...past, id: "1", node: "n1", nodeUid: "n1", explain: "n1 was rolled back." },
      { ...past, id: "2", node: "n1", nodeUid: "other", explain: "an earlier one." },
    ];
    const text = textOf(pictureOf({ past: pasts }), { ...node, rows: 50 });
    const headings = text.split("\n").filter((line) => /^ (Steps|Departed|Earlier)/.test(line));
    expect(headings).toEqual([
      ...[" Steps of n1-1", " Departed", " Earlier machines of this name"],
      ...[" Steps of n1-0", " Departed"],
    ]);
    const [own = "", earlier = ""] = text.split("Earlier machines of this name");
    expect(own).toContain("n1 was rolled back.");
    expect(own).not.toContain("an earlier one.");
    expect(earlier).toContain("an earlier one.");
  });

  it("says that a dry run does not carry its departure out", () => {
    const policies = [{ ...policy, isDryRun: true }];
    expect(textOf(pictureOf({ policies }), node)).toMatch(/^ Policy +spot \(dry run: it does not/m);
  });

  it("scrolls to its last line and no further", () => {
    const steps = Array.from({ length: 60 }, (_, index) => ({
      ...{ at: now, result: "", step: `S${index}` },
    }));
    const of = () => ({ departures: [{ ...departureNamed("n1-1"), steps }], earlier: [] });
    const look = { ...small, ...node, departuresOf: of };
    expect(terminalBoard(pictureOf(), now, look).nodeScroll).toBe(0);
    const last = terminalBoard(pictureOf(), now, { ...look, nodeScroll: 999 });
    expect(last.lines.map(plainText).join("\n")).toContain("S59");
    expect(last.lines.map(plainText).join("\n")).not.toMatch(/S1$/m);
  });

  it("leads back to the list, and to no other node, once it is gone", () => {
    expect(textOf(pictureOf({ rows: [] }), node)).toContain("NODE");
    const look = { ...small, ...node, selected: "gone" };
    const { lines, mode } = terminalBoard(pictureOf(), now, look);
    expect(mode).toBe("List");
    expect(lines.map(plainText).join("\n")).toMatch(/NODE[\s\S]*Enter describe/);
  });

  it("stays, although the filter does not show it any more", () => {
    const look = { ...small, ...node, selected: "n2", filter: "n1" };
    const { lines, mode, selected } = terminalBoard(pictureOf(), now, look);
    expect([mode, selected]).toEqual(["Node", "n2"]);
    expect(lines.map(plainText).join("\n")).toMatch(/^ n2$/m);
  });
});
