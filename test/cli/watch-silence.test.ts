import { describe, expect, it } from "vitest";
import { showSilences, staleWatch } from "../../src/cli/commands/run.ts";
import type { WatchSilence } from "../../src/contracts/cluster.ts";
import { minutes, seconds } from "../../src/core/time/time.ts";

function fleetOf(...silences: readonly WatchSilence[]) {
  return { silences: () => silences };
}

describe("a silent watch", () => {
  it("is not reported for three minutes: bookmarks come each minute, one may be missed", () => {
    const fleet = fleetOf(
      { kind: "nodes", ms: seconds(2) },
      { kind: "departures", ms: minutes(3) },
    );
    expect(staleWatch(fleet)).toBe(undefined);
  });

  it("is reported with its duration after that, the longest of all", () => {
    const fleet = fleetOf(
      { kind: "nodes", ms: seconds(200) },
      { kind: "departures", ms: seconds(240) },
      { kind: "policies", ms: seconds(5) },
    );
    expect(staleWatch(fleet)).toBe(
      "the watch of departures has received nothing from the API server for 240 s, expected at most 180 s",
    );
  });

  it("is exported as a metric in seconds, by kind", () => {
    const shown: unknown[] = [];
    const metrics = { set: (...series: readonly unknown[]) => void shown.push(series) };
    showSilences(fleetOf({ kind: "policies", ms: seconds(5) }), metrics);
    expect(shown).toEqual([
      ["lastcall_watch_silence_seconds", [{ labels: { kind: "policies" }, value: 5 }]],
    ]);
  });
});
