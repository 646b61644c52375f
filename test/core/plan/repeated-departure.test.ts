import { describe, expect, it } from "vitest";
import { explainRepeated, repeatedDeparture } from "../../../src/core/plan/repeated-departure.ts";
import { hours, millis, minutes } from "../../../src/core/time/time.ts";
import { aPolicy, at, daily } from "../fleet-builder.ts";

const now = at("2026-11-20T12:00:00Z");

interface Case {
  readonly maxHours: number;
  readonly reserveMinutes?: number;
  readonly minHours?: number;
  readonly window: string;
  readonly type?: "Allow" | "Deny";
}

function found({ maxHours, reserveMinutes = 30, minHours = 0, window, type = "Allow" }: Case) {
  const lifetime = {
    minMs: millis(hours(minHours)),
    maxMs: millis(hours(maxHours)),
    reserveMs: minutes(reserveMinutes),
  };
  return repeatedDeparture(aPolicy({ lifetime, windows: [daily(window, { type })] }), now);
}

describe("replacements that leave again before their windows shut", () => {
  it.each<[string, Case, number | undefined, number]>([
    ["an hour a night, with a day to live", { maxHours: 24, window: "02:00-03:00" }, undefined, 30],
    ["20 minutes a night", { maxHours: 24, window: "02:00-02:20" }, undefined, 0],
    ["half a day to live", { maxHours: 12, window: "22:00-06:00" }, undefined, 0],
    ["office hours", { maxHours: 6, window: "09:00-17:00", type: "Deny" }, 330, 0],
  ])("are told of: %s", (_, one, fromMinutes, toMinutes) => {
    expect(found(one)).toEqual({
      fromMs: fromMinutes === undefined ? undefined : minutes(fromMinutes),
      toMs: minutes(toMinutes),
    });
  });

  it.each<[string, Case]>([
    ["whole nights", { maxHours: 24, window: "22:00-06:00" }],
    ["an hour a night, and a longer life", { maxHours: 48, window: "02:00-03:00" }],
    ["a minimum age", { maxHours: 24, minHours: 1, window: "02:00-03:00" }],
    ["nothing is shut for long", { maxHours: 6, window: "09:00-10:00", type: "Deny" }],
  ])("are not worth a word: %s", (_, one) => {
    expect(found(one)).toBeUndefined();
  });

  it.each([
    [{ fromMs: undefined, toMs: minutes(30) }, "more than 30m before the windows shut"],
    [{ fromMs: undefined, toMs: minutes(0) }, "while the windows are open"],
    [{ fromMs: minutes(330), toMs: minutes(0) }, "less than 5h30m before the windows shut"],
  ])("are explained by when they are launched", (repeated, when) => {
    expect(explainRepeated(repeated)).toBe(
      `a node launched ${when} leaves again before they shut, because they open again only after its deadline`,
    );
  });
});
