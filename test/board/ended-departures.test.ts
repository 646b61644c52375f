import { expect, it } from "vitest";
import {
  EndedDepartures,
  historyLine,
  readHistory,
} from "../../src/board/outcome/ended-departures.ts";
import type { PastDeparture } from "../../src/board/stream.ts";
import type { Instant, Millis } from "../../src/core/time/time.ts";

const dayMs = 86_400_000;

function ended(place: number, fields: Partial<PastDeparture> = {}): PastDeparture {
  const endedAt = (Date.UTC(2026, 0, 1) + place * 60_000) as Instant;
  return {
    ...{ id: `uid-${place}`, name: `n${place}-1`, node: `n${place}` },
    ...{ nodeUid: `node-${place}`, policy: "spot" },
    ...{ cause: "Planned", outcome: "Planned", reason: "Released", explain: "" },
    ...{ departAt: null, deadlineAt: null, noticedAt: null, startedAt: null, endedAt },
    ...{ noticeToCordonMs: null, timeLeftMs: null, pods: null, losses: [] },
    ...fields,
  };
}

it("counts each departure once, however often it is added", () => {
  const told: string[] = [];
  const all = new EndedDepartures([ended(1)], ({ id }) => told.push(id));
  for (const place of [1, 2, 2, 3]) all.add(ended(place));
  expect(all.days()).toMatchObject([{ day: "2026-01-01", outcomes: { Planned: 3 } }]);
  expect(told).toEqual(["uid-2", "uid-3"]);
});

it("sums up by day and policy, newest day first", () => {
  const pods = {
    ...{ total: 9, left: 0, evicted: 8, waiting: 0, blocked: 0 },
    ...{ forced: 1, cut: 2, killed: 3, leftBehind: 4 },
  };
  const next = (Date.UTC(2026, 0, 1) + dayMs) as Instant;
  const all = new EndedDepartures([
    ended(1),
    ended(2, { policy: "batch", outcome: "Preempted" }),
    ended(3, { endedAt: next, outcome: "Forced", pods }),
  ]);
  expect(all.days().map(({ day, policy, outcomes }) => [day, policy, outcomes])).toEqual([
    ["2026-01-02", "spot", { Forced: 1 }],
    ["2026-01-01", "spot", { Planned: 1 }],
    ["2026-01-01", "batch", { Preempted: 1 }],
  ]);
  expect(all.days()[0]).toMatchObject({ podsCut: 2, podsForced: 1, podsLost: 7 });
});

it("shows the newest 500 of 100,000 departures, and counts all of them", () => {
  const all = new EndedDepartures();
  for (let place = 0; place < 100_000; place += 1) all.add(ended(place));
  const newest = all.newest();
  expect(newest).toHaveLength(500);
  expect([newest[0]?.id, newest[499]?.id]).toEqual(["uid-99999", "uid-99500"]);
  const counted = all.days().reduce((sum, { outcomes }) => sum + (outcomes.Planned ?? 0), 0);
  expect(counted).toBe(100_000);
});

const whole = { total: 9, left: 0, evicted: 8, forced: 1, waiting: 0, blocked: 0 };

it("reads back the lines it has written, and counts the others", () => {
  const all = [
    ended(1),
    ended(2, {
      ...{ cause: "SpotInterruption", outcome: "Preempted", reason: "NodeGone", policy: null },
      ...{ noticedAt: 5 as Instant, noticeToCordonMs: 1200 as Millis, timeLeftMs: -3 as Millis },
      pods: { ...whole, cut: 2, killed: 1, leftBehind: 0 },
      losses: [{ pod: "shop/web", what: "Killed", why: "grace-cut" }],
    }),
  ];
  expect(readHistory(all.map(historyLine).join(""))).toEqual({
    ...{ departures: all, cut: 0, foreign: 0 },
  });
  const text = `${historyLine(ended(1))}{"id":"cut while\n\n[]\n{"id":"x"}\nkind: Config\n`;
  expect(readHistory(text)).toEqual({ departures: [ended(1)], cut: 1, foreign: 3 });
});

it.each([
  ["an instant without a year", { endedAt: 1e300 }],
  ["an unknown outcome", { outcome: "Vanished" }],
  ["no node", { node: 7 }],
])("a line with %s is not a departure", (_, fields) => {
  const { departures, foreign } = readHistory(JSON.stringify({ ...ended(3), ...fields }));
  expect([departures, foreign]).toEqual([[], 1]);
});

it("a line of another version or a person is read with defaults for what is missing", () => {
  const { id, node, outcome, endedAt } = ended(1);
  const least = readHistory(JSON.stringify({ id, node, outcome, endedAt })).departures;
  expect(least).toEqual([{ ...ended(1), name: node, nodeUid: null, policy: null, reason: null }]);
  const odd = { pods: { total: "9", killed: -1, cut: 2 }, losses: [null, { pod: "a/b" }, "x"] };
  const more = { explain: ["<b>"], startedAt: "now", policy: 3, timeLeftMs: null };
  const [read] = readHistory(JSON.stringify({ ...ended(1), ...odd, ...more })).departures;
  expect(read).toMatchObject({ explain: "", startedAt: null, policy: null, losses: [] });
  expect(read?.pods).toMatchObject({ total: 0, killed: 0, cut: 2 });
});
