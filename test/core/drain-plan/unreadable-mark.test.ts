import { expect, it } from "vitest";
import type { PodFacts } from "../../../src/core/cluster/pod.ts";
import { disturbanceMark } from "../../../src/core/drain-plan/pod-obstacle.ts";
import { translated } from "../../../src/web/words/translated.ts";
import { at } from "../fleet-builder.ts";

const now = at("2026-11-20T12:00:00Z");

it.each([
  ["true", ""],
  ["2h", ""],
  ["2 hours", ', which cannot be read ("2h"? expected "true" or "2h")'],
  ["yes", ', which cannot be read ("true"? expected "true" or "2h")'],
  ["later", ', which cannot be read (expected "true" or "2h")'],
])("do-not-disturb: %j holds the pod, and says if it cannot be read", (value, said) => {
  const annotations = { "lastcall.dev/do-not-disturb": value };
  const mark = disturbanceMark({ annotations, startedAt: now } as unknown as PodFacts, now);
  expect(mark?.detail).toBe(`lastcall.dev/do-not-disturb: "${value}"${said}`);
  const text = translated(`is not evicted, because it has ${mark?.detail}`, "ja");
  expect(text.includes("読み取れません")).toBe(said !== "");
});
