import { expect, it } from "vitest";
import {
  countedOutcomes,
  noticeFigures,
  outcomeQuestions,
  seriesIn,
} from "../../src/board/outcome/counted-outcomes.ts";
import { formatInstant, instant, type Millis } from "../../src/core/time/time.ts";

const midnight = Date.UTC(2026, 10, 20);
const dayMs = 86_400_000;

it("asks for thirty days, each at its end, and for the part of today so far", () => {
  const [days, today] = outcomeQuestions(instant(midnight + 3_600_000));
  expect(formatInstant(days?.endAt ?? instant(0))).toBe("2026-11-20T00:00:00.000Z");
  expect(((days?.endAt ?? 0) - (days?.startAt ?? 0)) / dayMs + 1).toBe(29);
  expect(days?.query).toContain("[1d]");
  expect(today?.query).toContain("increase(lastcall_departures_total[3600s])");
  expect(today?.startAt).toBe(today?.endAt);
});

it("assigns each count to the day that ends then, rounded, and drops what is not an outcome", () => {
  const point = (at: number, value: number) => [at, value] as const;
  const { days } = countedOutcomes([
    {
      what: "Outcomes",
      series: [
        {
          labels: { policy: "spot", outcome: "Planned" },
          points: [point(midnight, 2.98), point(midnight - dayMs, 0.2)],
        },
        { labels: { policy: "spot", outcome: "Unheard" }, points: [point(midnight, 4)] },
        { labels: { policy: "batch", outcome: "Failed" }, points: [point(midnight, 1)] },
      ],
    },
    { what: "PodsForced", series: [{ labels: {}, points: [point(midnight - dayMs, 5)] }] },
  ]);
  expect(days).toEqual([
    {
      day: "2026-11-19",
      policies: [
        { policy: "batch", outcomes: { Failed: 1 } },
        { policy: "spot", outcomes: { Planned: 3 } },
      ],
      podsForced: 0,
    },
    { day: "2026-11-18", policies: [], podsForced: 5 },
  ]);
});

it.each([
  ["an error", { status: "error", error: "parse error" }],
  ["a number", { status: "success", data: { resultType: "scalar", result: [1, "2"] } }],
  ["an HTML page", "<html>"],
  ["nothing", undefined],
])("does not take %s for series", (_, answer) => {
  expect(seriesIn(answer)).toBeUndefined();
});

it("skips invalid points of a series", () => {
  const values = [[1, "2"], [1], null, ["x", "1"], [2, "NaN"]];
  const data = { resultType: "matrix", result: [{ metric: {}, values }, null, { metric: 1 }] };
  expect(seriesIn({ status: "success", data })).toEqual([{ labels: {}, points: [[1000, 2]] }]);
});

it("asks about the notices of thirty days, and drops figures without notices", () => {
  const asked = outcomeQuestions(instant(midnight)).filter(({ what }) => typeof what !== "string");
  expect(asked.map(({ query }) => query)).toContain(
    "1000 * histogram_quantile(0.05, sum by (le) (increase(lastcall_deadline_left_seconds_bucket[30d])))",
  );
  const answer = (what: object, value: number) =>
    ({ what, series: [{ labels: {}, points: [[midnight, value]] }] }) as never;
  const { notices } = countedOutcomes([
    answer({ figure: "toCordon", part: "notices" }, 19.8),
    answer({ figure: "toCordon", part: "medianMs" }, 300),
    answer({ figure: "toCordon", part: "worstMs" }, 900),
    // A controller that has received no notice yet.
    answer({ figure: "timeLeft", part: "notices" }, 0),
  ]);
  const toCordon = { notices: 20, medianMs: 300, worstMs: 900 };
  expect(notices).toEqual({ toCordon, timeLeft: null });
});

it("computes the same figures from departures: the median, and the worst of the best 95 %", () => {
  const past = Array.from({ length: 40 }, (_, index) => {
    return { noticeToCordonMs: (index + 1) as Millis, timeLeftMs: (1000 - index) as Millis };
  });
  const planned = { noticeToCordonMs: null, timeLeftMs: null };
  expect(noticeFigures([planned, ...past])).toEqual({
    toCordon: { notices: 40, medianMs: 20, worstMs: 38 },
    timeLeft: { notices: 40, medianMs: 980, worstMs: 962 },
  });
  expect(noticeFigures([planned])).toEqual({ toCordon: null, timeLeft: null });
});
