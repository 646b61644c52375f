import { describe, expect, it } from "vitest";
import { staleWatch } from "../../../src/core/limits/stale-watch.ts";
import { minutes, seconds } from "../../../src/core/time/time.ts";

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
});
