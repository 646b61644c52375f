import { expect, it } from "vitest";
import {
  EndedDepartures,
  historyLine,
  readHistory,
} from "../../src/board/outcome/ended-departures.ts";
import type { PastDeparture } from "../../src/board/stream.ts";
import type { Instant } from "../../src/core/time/time.ts";

const dayMs = 86_400_000;

function ended(place: number, fields: Partial<PastDeparture> = {}): PastDeparture {
  const endedAt = (Date.UTC(2026, 0, 1) + place * 60_000) as Instant;
  return {
    ...{ id: `uid-${place}`, name: `n${place}-1`, node: `n${place}`, policy: "spot" },
    ...{ cause: "Planned", outcome: "Planned", reason: "Released", explain: "" },
    ...{ departAt: null, deadlineAt: null, noticedAt: null, startedAt: null, endedAt },
    ...{ noticeToCordonMs: null, timeLeftMs: null, pods: null, losses: [] },
    ...fields,
  };
}

it("counts each departure once, however often it is seen", () => {
  const told: string[] = [];
  const all = new EndedDepartures([ended(1)], ({ id }) => told.push(id));
  for (const place of [1, 2, 2, 3]) all.add(ended(place));
  expect(all.days()).toMatchObject([{ day: "2026-01-01", outcomes: { Planned: 3 } }]);
  expect(told).toEqual(["uid-2", "uid-3"]);
});

it("sums up by day and policy, the newest day first", () => {
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

it("shows the newest five hundred of a hundred thousand, and counts them all", () => {
  const all = new EndedDepartures();
  for (let place = 0; place < 100_000; place += 1) all.add(ended(place));
  const newest = all.newest();
  expect(newest).toHaveLength(500);
  expect([newest[0]?.id, newest[499]?.id]).toEqual(["uid-99999", "uid-99500"]);
  const counted = all.days().reduce((sum, { outcomes }) => sum + (outcomes.Planned ?? 0), 0);
  expect(counted).toBe(100_000);
});

it("reads its own lines back, and skips what is none of them", () => {
  const text = `${historyLine(ended(1))}{"id":"cut while\n\n[]\n{"id":"x"}\n${historyLine(ended(2))}`;
  expect(readHistory(text)).toEqual([ended(1), ended(2)]);
  const odd = JSON.stringify({ ...ended(3), endedAt: 1e300 });
  expect(readHistory(odd)).toEqual([]);
});
