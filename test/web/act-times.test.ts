import { describe, expect, it } from "vitest";
import { chosenIn, mornings, wholeTimes } from "../../src/web/act/act-buttons.tsx";
import { languages } from "../../src/web/view-state.ts";

const words = languages.en;
/** In the viewer's own time zone, as in the browser. */
const local = (...parts: readonly [number, number, number, number, number?]): number =>
  new Date(...parts).getTime();

describe("the suggested times", () => {
  it.each([
    ["at three in the night", local(2026, 10, 20, 3), "Today 09:00", local(2026, 10, 20, 9)],
    ["at nine sharp", local(2026, 10, 20, 9), "Tomorrow 09:00", local(2026, 10, 21, 9)],
    ["in the evening", local(2026, 10, 20, 22), "Tomorrow 09:00", local(2026, 10, 21, 9)],
  ])("are named by their day: %s", (_, now, name, at) => {
    expect(mornings(now, words)[0]).toEqual([name, at]);
  });

  it("include the same day on a Monday morning", () => {
    const monday = local(2026, 10, 23, 8);
    expect(mornings(monday, words)[1]).toEqual(["Monday 09:00", local(2026, 10, 23, 9)]);
  });
});

describe("a typed time", () => {
  const field = (value: string, badInput = false) => ({ value, validity: { badInput } });

  it("is unfinished while incomplete, and does not count as now or forever", () => {
    expect(chosenIn(field("", true))).toBe("Unfinished");
    expect(chosenIn(field(""))).toBeNull();
    expect(chosenIn(field("2026-11-20T09:00"))).toBe(local(2026, 10, 20, 9));
    for (const kind of ["Hold", "Depart", "Freeze"] as const) {
      expect(wholeTimes(kind, { at: "Unfinished", by: null })).toBeUndefined();
    }
    expect(wholeTimes("Depart", { at: null, by: "Unfinished" })).toBeUndefined();
  });

  it("is required to freeze a policy, but not to hold a node or make it depart", () => {
    const none = { at: null, by: null };
    expect(wholeTimes("Freeze", none)).toBeUndefined();
    for (const kind of ["Hold", "Depart", "Thaw"] as const) {
      expect(wholeTimes(kind, none)).toEqual(none);
    }
  });
});
