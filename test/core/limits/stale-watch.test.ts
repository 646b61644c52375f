import { describe, expect, it } from "vitest";
import { staleWatch, unheardOf } from "../../../src/core/limits/stale-watch.ts";
import { type Millis, minutes, seconds } from "../../../src/core/time/time.ts";

describe("a silent watch", () => {
  it("is not stale for three minutes: bookmarks come each minute, one may be missed", () => {
    const silences = [
      { kind: "nodes", ms: seconds(2) },
      { kind: "departures", ms: minutes(3) },
    ];
    expect(staleWatch(silences)).toBe(undefined);
  });

  it("is named with its duration after that, the longest of all", () => {
    const silences = [
      { kind: "nodes", ms: seconds(200) },
      { kind: "departures", ms: seconds(240) },
      { kind: "policies", ms: seconds(5) },
    ];
    expect(staleWatch(silences)).toBe(
      "the watch of departures has received nothing from the API server for 240 s, expected at most 180 s",
    );
  });

  it("holds departures with the same words for as long as it is silent", () => {
    const silent = (ms: Millis) => unheardOf([{ kind: "policies", ms }]);
    expect(silent(minutes(3))).toBe(undefined);
    const why = "the API server has sent nothing about policies for more than 3m";
    expect([silent(minutes(4)), silent(minutes(90))]).toEqual([why, why]);
  });
});
