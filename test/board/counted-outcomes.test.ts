import { expect, it } from "vitest";
import {
  countedDays,
  outcomeQuestions,
  seriesIn,
} from "../../src/board/outcome/counted-outcomes.ts";
import { formatInstant, instant } from "../../src/core/time/time.ts";

const midnight = Date.UTC(2026, 10, 20);
const dayMs = 86_400_000;

it("asks for thirty days, each at its end, and for today as far as it is", () => {
  const [days, today] = outcomeQuestions(instant(midnight + 3_600_000));
  expect(formatInstant(days?.endAt ?? instant(0))).toBe("2026-11-20T00:00:00.000Z");
  expect(((days?.endAt ?? 0) - (days?.startAt ?? 0)) / dayMs + 1).toBe(29);
  expect(days?.query).toContain("[1d]");
  expect(today?.query).toContain("increase(lastcall_departures_total[3600s])");
  expect(today?.startAt).toBe(today?.endAt);
});

it("lays each count to the day that ends then, rounded, and leaves out what is none", () => {
  const point = (at: number, value: number) => [at, value] as const;
  const days = countedDays([
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
  ["a page", "<html>"],
  ["nothing", undefined],
])("takes %s for no series", (_, answer) => {
  expect(seriesIn(answer)).toBeUndefined();
});

it("skips what is no point of a series", () => {
  const values = [[1, "2"], [1], null, ["x", "1"], [2, "NaN"]];
  const data = { resultType: "matrix", result: [{ metric: {}, values }, null, { metric: 1 }] };
  expect(seriesIn({ status: "success", data })).toEqual([{ labels: {}, points: [[1000, 2]] }]);
});
