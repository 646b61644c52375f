import { expect, it } from "vitest";
import { longestPause, longestRecordPause } from "../../../src/core/next/retry-pause.ts";
import { seconds } from "../../../src/core/time/time.ts";
import { aDeparture } from "../fleet-builder.ts";
import { at, theNode } from "./departure-scene.ts";

const notice = { cause: "SpotInterruption", noticedAt: at(0) } as const;

it.each([
  { what: "a planned departure", over: {}, ms: 1000, pause: seconds(10) },
  {
    what: "a notice before its deadline",
    over: { ...notice, deadlineAt: at(30_000) },
    ms: 29_000,
    pause: seconds(1),
  },
  {
    what: "a notice after its deadline",
    over: { ...notice, deadlineAt: at(30_000) },
    ms: 30_000,
    pause: seconds(10),
  },
  { what: "a notice without a deadline", over: notice, ms: 300_000, pause: seconds(1) },
  { what: "one that has stood for long", over: notice, ms: 660_000, pause: seconds(4) },
  {
    what: "a notice of a planned departure, past the deadline of its plan and before its own",
    over: { cause: "Planned" as const, noticedAt: at(0), deadlineAt: at(30_000) },
    ms: 1000,
    pause: seconds(1),
  },
])("what failed for $what rests $pause ms at most", ({ over, ms, pause }) => {
  expect(longestPause(aDeparture(theNode, over), at(ms))).toBe(pause);
});

it.each([
  { what: "a notice, at first", over: notice, failingMs: 14_000, pause: seconds(1) },
  { what: "a notice, after a while", over: notice, failingMs: 15_000, pause: seconds(4) },
  { what: "a planned departure", over: {}, failingMs: 15_000, pause: seconds(10) },
])("the record of $what rests $pause ms at most", ({ over, failingMs, pause }) => {
  expect(longestRecordPause(aDeparture(theNode, over), { now: at(20_000), failingMs })).toBe(pause);
});
