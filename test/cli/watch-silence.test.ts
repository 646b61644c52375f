import { describe, expect, it } from "vitest";
import { showSilences, staleWatch } from "../../src/cli/commands/run.ts";
import type { WatchSilence } from "../../src/contracts/fleet.ts";
import { minutes, seconds } from "../../src/core/time/time.ts";

function fleetOf(...silences: readonly WatchSilence[]) {
  return { silences: () => silences };
}

describe("a watch that is silent", () => {
  it("is no news for three minutes, since bookmarks come each minute and may fail to once", () => {
    const fleet = fleetOf(
      { kind: "nodes", ms: seconds(2) },
      { kind: "departures", ms: minutes(3) },
    );
    expect(staleWatch(fleet)).toBe(undefined);
  });

  it("is named with its silence when it is older, the oldest of all", () => {
    const fleet = fleetOf(
      { kind: "nodes", ms: seconds(200) },
      { kind: "departures", ms: seconds(240) },
      { kind: "policies", ms: seconds(5) },
    );
    expect(staleWatch(fleet)).toBe(
      "the watch of departures has received nothing from the API server for 240 s, expected at most 180 s",
    );
  });

  it("is shown as a metric in seconds, by what is watched", () => {
    const shown: unknown[] = [];
    const metrics = { set: (...series: readonly unknown[]) => void shown.push(series) };
    showSilences(fleetOf({ kind: "policies", ms: seconds(5) }), metrics);
    expect(shown).toEqual([
      ["lastcall_watch_silence_seconds", [{ labels: { kind: "policies" }, value: 5 }]],
    ]);
  });
});
