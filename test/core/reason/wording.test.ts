import { describe, expect, it } from "vitest";
import { drainReasons } from "../../../src/core/departure/drain-reason.ts";
import { english, inEnglish } from "../../../src/core/reason/english.ts";
import { factText } from "../../../src/core/reason/fact.ts";
import { reasons } from "../../../src/core/reason/reason.ts";
import { worded } from "../../../src/core/reason/wording.ts";
import { instant, minutes } from "../../../src/core/time/time.ts";

const writing = {
  fact: factText,
  saying: (value: unknown) => `<${value}>`,
  unknown: (kind: string) => `no ${kind}`,
};
const word = (sentence: string, facts: object): string => worded(sentence, { ...facts }, writing);

describe("a sentence", () => {
  it.each([
    ["{node} leaves", { node: "n1" }, "n1 leaves"],
    ["{node} leaves", {}, "no Word leaves"],
    ["{node=it} leaves", {}, "it leaves"],
    ["{node} leaves[ at {at}]", { node: "n1" }, "n1 leaves"],
    ["waits for its [turn at {policy}|time]", {}, "waits for its time"],
    ["waits for its [turn at {policy}|time]", { policy: "p" }, "waits for its turn at p"],
    ["because[: {detail}]", { detail: "a" }, "because: <a>"],
    ["a[ of {left}[, {more} more]]", { left: 1 }, "a of 1"],
    ["a[ of {left}[, {more} more]]", { left: 1, more: 2 }, "a of 1, 2 more"],
    ["a[, cut to {left}|[ with {more}]]", { more: 2 }, "a with 2"],
  ])("%s with %j is %s", (sentence, facts, text) => {
    expect(word(sentence, facts)).toBe(text);
  });

  it.each([
    [0, "All 0 nodes are"],
    [1, "The node is"],
    [2, "Both nodes are"],
    [3, "All 3 nodes are"],
  ])("has the form for %i", (nodes, text) => {
    const forms = "{nodes?The node is|Both nodes are|All {nodes} {nodes?node|nodes} are}";
    expect(word(forms, { nodes })).toBe(text);
  });

  it("has instants to the millisecond, as people write them, and spans", () => {
    const at = instant(Date.UTC(2026, 10, 20));
    expect(
      word("{departAt}, {leaveTime}, {waitMs}", {
        departAt: at,
        leaveTime: at,
        waitMs: minutes(5),
      }),
    ).toBe("2026-11-20T00:00:00.000Z, 2026-11-20T00:00:00Z, 5m");
  });

  it("may have other sentences as facts", () => {
    const who = { says: "limit.Waves" } as const;
    const cures = [
      ["2 an hour", { says: "limit.CurePerHour", perHour: 3 }],
      "1 node at once",
    ] as const;
    expect(inEnglish({ says: "fleet.HeldPastDeadline", who, departures: 1, cures })).toBe(
      "waves hold back 1 departure past the deadline: 2 an hour; 3 an hour would hold none back, 1 node at once",
    );
  });
});

it("there is a sentence for every reason, and for nothing else", () => {
  expect(Object.keys(english.node).toSorted()).toEqual([...reasons].toSorted());
  expect(Object.keys(english.pod).toSorted()).toEqual([...drainReasons].toSorted());
});
