import { describe, expect, it } from "vitest";
import { type BoardNotice, type Story, storyText } from "../../src/board/demo-picture.ts";
import { spanText } from "../../src/cli/command-line/terminal.ts";
import { type StoryFacts, storyOf } from "../../src/cli/demo/fleet-picture.ts";
import { hours, instant, minus, minutes, plus, seconds } from "../../src/core/time/time.ts";

const now = instant(Date.UTC(2026, 10, 20, 2));
const limitAt = plus(now, hours(3));
const none = { lostAtLimit: 0, lostAtOnce: 0, podsKilled: 0, replacements: 0 };
const start: StoryFacts = {
  ...{ now, nodes: 18, nodesLeft: 18, nodesLeftWithout: 18, limitAt, departures: 0 },
  ...{ notice: undefined, withLastcall: none, without: none },
};
const pods = [{ name: "web" }, { name: "worker" }];
const notice: BoardNotice = {
  ...{ node: "spot-1", noticedAt: minus(now, minutes(2)), deadlineAt: now, pods },
  twinPods: [{ name: "web" }, { name: "worker", isKilled: true }],
};
const goneAt = (span: number): BoardNotice => ({ ...notice, goneAt: minus(now, seconds(span)) });
const atLimit = { now: limitAt, nodesLeft: 0 };

describe("The story of the demo", () => {
  it.each<[Story["kind"], string, Partial<StoryFacts>]>([
    ["Together", "before anything has happened", {}],
    ["Notice", "while a notice runs on both fleets", { notice }],
    ["NoticeOver", "while the line is read, after the machine is gone", { notice: goneAt(80) }],
    ["Together", "but no longer", { notice: goneAt(81) }],
    ["OneByOne", "once a node has left as planned", { departures: 1, nodesLeft: 17 }],
    [
      "OneByOne",
      "while a notice runs on only one fleet",
      { departures: 1, notice: { ...notice, twinPods: undefined } },
    ],
    ["Limit", "from 24 hours on, whatever else happens", { ...atLimit, notice }],
    [
      "Result",
      "once the last node of the other fleet is gone",
      { ...atLimit, nodesLeftWithout: 0 },
    ],
  ])("is %s %s", (kind, _, facts) => {
    expect(storyOf({ ...start, ...facts }).kind).toBe(kind);
  });

  it.each<[string, Partial<StoryFacts>]>([
    ["At 24 h, in 3h00m, the cloud interrupts those left; with Lastcall ", {}],
    ["Without Lastcall 1 pod was killed; with Lastcall both had ", { notice: goneAt(1) }],
    ["with Lastcall it had no pods.", { notice: { ...goneAt(1), pods: [], twinPods: [] } }],
    [
      "with Lastcall its pod had terminated in time.",
      { notice: { ...goneAt(1), pods: [pods[0] ?? { name: "" }] } },
    ],
    [
      "with Lastcall 1 pod was killed.",
      { notice: { ...goneAt(1), pods: [{ name: "web", isKilled: true }] } },
    ],
    ["6 of 18 are still to go.", { departures: 12, nodesLeft: 6 }],
    ["1 of 18 is still to go.", { departures: 17, nodesLeft: 1 }],
    ["With Lastcall all 18 nodes have left one by one, ", { departures: 18, nodesLeft: 0 }],
    [
      "node after node, 9 within one hour so far. With Lastcall all had left before.",
      { ...atLimit, without: { ...none, lostAtOnce: 9 } },
    ],
    ["With Lastcall 2 had not left yet.", { ...atLimit, nodesLeft: 2 }],
    [
      "Without Lastcall 17 nodes were lost at 24 h (up to 19 within one hour, including early ones), and 51 pods were killed. With Lastcall no node reached 24 h (up to 3 within one hour were interrupted early), and no pod was killed.",
      {
        ...{ ...atLimit, nodesLeftWithout: 0 },
        without: { lostAtLimit: 17, lostAtOnce: 19, podsKilled: 51, replacements: 18 },
        withLastcall: { lostAtLimit: 0, lostAtOnce: 3, podsKilled: 0, replacements: 20 },
      },
    ],
    [
      "Without Lastcall 1 node was lost at 24 h (up to 1 within one hour), and no pod was killed. With Lastcall no node was lost, and 1 pod was killed.",
      {
        ...{ ...atLimit, nodesLeftWithout: 0 },
        without: { ...none, lostAtLimit: 1, lostAtOnce: 1 },
        withLastcall: { ...none, podsKilled: 1 },
      },
    ],
  ])("says: … %s", (text, facts) => {
    expect(storyText(storyOf({ ...start, ...facts }), now, spanText)).toContain(text);
  });
});
