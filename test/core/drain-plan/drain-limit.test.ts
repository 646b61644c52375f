import { expect, it } from "vitest";
import { forceTime } from "../../../src/core/drain-plan/drain-limit.ts";
import { plus, seconds } from "../../../src/core/time/time.ts";
import { startAt } from "../drain/drain-scene.ts";

/** All in seconds: notice, share, wanted grace, known need, and when the pod is deleted. */
it.each<[string, number, number, number, number | undefined, number]>([
  ["a grace that fits after the share: as late as it fits", 120, 0.5, 60, undefined, 58],
  ["a short grace in a long notice", 120, 0.5, 30, undefined, 88],
  ["a grace as long as the notice: after the share", 30, 0.5, 30, undefined, 13],
  ["a grace longer than the notice: after the share", 120, 0.5, 600, undefined, 58],
  ["a larger share", 30, 0.8, 30, undefined, 22],
  ["a share of 100 %: the margin is left", 30, 1, 30, undefined, 28],
  ["no share: at once if the grace does not fit", 30, 0, 30, undefined, -2],
  ["no share: with the full grace if it fits", 30, 0, 10, undefined, 18],
  ["a workload that is known to terminate quickly", 30, 0.5, 30, 6, 22],
  [
    "a workload that is known to terminate quickly, whose grace would fit too",
    120,
    0.5,
    30,
    6,
    112,
  ],
  ["a workload that is known to need more than the share leaves", 30, 0.5, 30, 20, 13],
  ["never earlier than the wanted grace demands", 120, 0.5, 10, 40, 108],
  ["no share: known times do not count", 30, 0, 10, 5, 18],
])("deletes a held pod: %s", (_, notice, budgetShare, wantedSeconds, needed, forcedAt) => {
  const neededMs = needed === undefined ? undefined : seconds(needed);
  const noticeMs = seconds(notice);
  const at = plus(startAt, noticeMs);
  const limit = { kind: "Deadline", at, noticeMs, budgetShare } as const;
  const dueAt = forceTime({ wantedSeconds, neededMs }, limit) ?? 0;
  expect((dueAt - startAt) / 1000).toBe(forcedAt);
});
