import { expect, it } from "vitest";
import { showSilences } from "../../src/cli/commands/run.ts";
import { seconds } from "../../src/core/time/time.ts";

it("the silence of a watch is a metric in seconds, by kind", () => {
  const shown: unknown[] = [];
  const metrics = { set: (...series: readonly unknown[]) => void shown.push(series) };
  showSilences({ silences: () => [{ kind: "policies", ms: seconds(5) }] }, metrics);
  expect(shown).toEqual([
    ["lastcall_watch_silence_seconds", [{ labels: { kind: "policies" }, value: 5 }]],
  ]);
});
