import { expect, it } from "vitest";
import { languages } from "../../src/web/view-state.ts";
import {
  countdown,
  isolated,
  relativeText,
  secondsText,
  spanText,
} from "../../src/web/words/time-text.ts";

it.each([
  [0, "0 s", "0秒"],
  [45_000, "45 s", "45秒"],
  [125_000, "2 min 5 s", "2分 5秒"],
  [754_000, "13 min", "13分"],
  [7_500_000, "2 h 5 min", "2時間 5分"],
  // Rounded to the last part shown: spans one second apart get the same text.
  [4_799_400, "1 h 20 min", "1時間 20分"],
  [4_800_600, "1 h 20 min", "1時間 20分"],
  [3_599_900, "1 h", "1時間"],
  [86_399_000, "1 d", "1日"],
  [959_350, "16 min", "16分"],
  [86_400_000, "1 d", "1日"],
  [100_800_000, "1 d 4 h", "1日 4時間"],
])("a span of %i ms is shown in its two largest units", (ms, english, japanese) => {
  expect(spanText(ms, "en")).toBe(english);
  expect(spanText(ms, "ja")).toBe(japanese);
});

it.each([
  [102_000, "1:42"],
  [3_723_000, "1:02:03"],
  [-5, "0:00"],
])("a countdown of %i ms is shown like a clock, and never negative", (ms, shown) => {
  expect(countdown(ms)).toBe(shown);
});

it("seconds have the unit of the language", () => {
  expect([secondsText(30, "en"), secondsText(30, "ja")]).toEqual(["30 s", "30秒"]);
  expect([secondsText(1.25, "en"), secondsText(0, "ja")]).toEqual(["1.3 s", "0秒"]);
});

it("times ahead and past times are worded differently", () => {
  const about = { words: languages.en, language: "en" } as const;
  expect(relativeText(60_000, 0, about)).toBe("in 1 min");
  expect(relativeText(0, 60_000, about)).toBe("1 min ago");
  expect(relativeText(0, 10, about)).toBe("now");
});

it("foreign text in a sentence does not reverse the text after it", () => {
  expect(isolated("kubectl-annotate")).toBe("kubectl-annotate");
  expect(isolated("\u202etxt")).toBe("\u2068\u202etxt\u2069");
});
