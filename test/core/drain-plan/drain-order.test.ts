import { expect, it } from "vitest";
import { type Rng, seededRng } from "../../../src/core/chance/chance.ts";
import {
  layWaves,
  type WaveEnd,
  type WavePod,
  type WaveSlot,
} from "../../../src/core/drain-plan/drain-order.ts";
import { type Millis, millis, plus, seconds } from "../../../src/core/time/time.ts";
import { startAt } from "../drain/drain-scene.ts";

function endIn(leftMs: Millis | undefined): WaveEnd {
  const at = startAt;
  if (leftMs === undefined) return { limit: { kind: "None" }, at };
  const deadlineAt = plus(at, leftMs);
  return { limit: { kind: "Deadline", at: deadlineAt, noticeMs: leftMs, budgetShare: 0.5 }, at };
}

/** Takes `tier:wanted` pairs and returns `start+grace`, all in seconds. */
function waves(pods: string, leftSeconds: number | undefined): string {
  const wave = pods.split(" ").map((text): WavePod => {
    const [tier, wanted] = text.split(":").map(Number) as [number, number];
    return { tier, wantedSeconds: wanted };
  });
  const leftMs = leftSeconds === undefined ? undefined : seconds(leftSeconds);
  return layWaves(wave, endIn(leftMs))
    .map((slot) => `${slot.startMs / 1000}+${slot.graceSeconds}`)
    .join(" ");
}

it.each<[string, string, number | undefined, string]>([
  [
    "planned: each tier after the full grace of the previous one",
    "0:30 0:60 1:30 3:10",
    undefined,
    "0+30 0+60 60+30 90+10",
  ],
  ["planned: a tier without pods takes no time", "1:30", undefined, "0+30"],
  ["planned: long graces are never cut", "0:3600 1:30", undefined, "0+3600 3600+30"],
  ["enough time: as planned, no later than needed", "0:30 1:30", 120, "0+30 30+30"],
  [
    "short: the critical pod starts 2 s before its last moment, and tiers overlap",
    "0:60 1:30",
    60,
    "0+60 28+30",
  ],
  ["short: critical pods overlap with the controller", "0:60 1:30 3:20", 60, "0+60 28+30 38+20"],
  ["too short for either: all start at once with the time left", "0:60 1:60", 30, "0+30 0+30"],
  [
    "too short for one critical pod only: the other keeps the order",
    "0:10 1:600 1:10",
    60,
    "0+10 0+60 10+10",
  ],
  [
    "a higher tier that must start at once starts the lower ones too",
    "0:10 1:10 3:600",
    60,
    "0+10 0+10 0+60",
  ],
  ["fits exactly: not cut", "0:30", 30, "0+30"],
  ["nothing left: one second, the shortest grace", "0:30 1:5", 0, "0+1 0+1"],
])("lays out waves: %s", (_, pods, left, expected) => {
  expect(waves(pods, left)).toBe(expected);
});

it("holds up the next tier for a terminating pod only until that pod is gone", () => {
  const leaving: WavePod = { tier: 0, wantedSeconds: 60, leavingMs: seconds(7) };
  const critical: WavePod = { tier: 1, wantedSeconds: 30 };
  expect(layWaves([leaving, critical], endIn(seconds(120)))[1]?.startMs).toBe(7000);
  expect(layWaves([leaving, critical], endIn(undefined))[1]?.startMs).toBe(7000);
});

/** Written independently of the planner: lists what is wrong with `slots`. */
function faults(pods: readonly WavePod[], slots: readonly WaveSlot[], leftMs: Millis): string[] {
  const found: string[] = [];
  pods.forEach((pod, i) => {
    const slot = slots[i] as WaveSlot;
    const endMs = slot.startMs + slot.graceSeconds * 1000;
    if (slot.graceSeconds < 1) found.push(`${i}: grace under a second`);
    if (slot.graceSeconds > pod.wantedSeconds) found.push(`${i}: grace lengthened`);
    if (slot.startMs < 0) found.push(`${i}: starts before the drain`);
    if (leftMs >= 1000 && endMs > leftMs) found.push(`${i}: ends after the deadline`);
    if (slot.graceSeconds < pod.wantedSeconds && pod.wantedSeconds * 1000 <= leftMs) {
      found.push(`${i}: cut although it fits`);
    }
    if (slot.graceSeconds < pod.wantedSeconds && slot.startMs > 0) {
      found.push(`${i}: cut although it could start earlier`);
    }
    pods.forEach((other, j) => {
      const otherSlot = slots[j] as WaveSlot;
      if (other.tier > pod.tier && otherSlot.startMs < slot.startMs) {
        found.push(`${i}: starts after ${j} of a higher tier`);
      }
    });
    if (startsNeedlesslyEarly(i, { pods, slots, leftMs }))
      found.push(`${i}: starts needlessly early`);
  });
  return found;
}

/**
 * Starting one second later, it would overlap no lower tier, and neither it nor a higher pod would
 * lose grace.
 */
function startsNeedlesslyEarly(
  i: number,
  about: {
    readonly pods: readonly WavePod[];
    readonly slots: readonly WaveSlot[];
    readonly leftMs: Millis;
  },
): boolean {
  const pod = about.pods[i] as WavePod;
  const start = (about.slots[i] as WaveSlot).startMs;
  const overlapsBelow = about.pods.some((other, j) => {
    const slot = about.slots[j] as WaveSlot;
    return other.tier < pod.tier && slot.startMs + slot.graceSeconds * 1000 > start;
  });
  const spare = (one: WavePod) => about.leftMs - 2000 - one.wantedSeconds * 1000 - start;
  const pressedByHigher = about.pods.some((other) => other.tier > pod.tier && spare(other) <= 0);
  return overlapsBelow && spare(pod) > 0 && !pressedByHigher;
}

function randomPods(rng: Rng): readonly WavePod[] {
  const wanted = [1, 5, 10, 30, 30, 60, 90, 600];
  return Array.from({ length: 1 + Math.floor(rng() * 20) }, () => ({
    tier: Math.floor(rng() * 4),
    wantedSeconds: wanted[Math.floor(rng() * wanted.length)] as number,
    waitMs: rng() < 0.1 ? millis(Math.floor(rng() * 100_000)) : undefined,
  }));
}

it("in 1500 random drains no pod is cut for another, and none starts needlessly early", () => {
  for (let seed = 1; seed <= 1500; seed++) {
    const rng = seededRng(seed);
    const pods = randomPods(rng);
    const leftMs = millis(Math.floor(rng() * 180_000));
    const slots = layWaves(pods, endIn(leftMs));
    expect(faults(pods, slots, leftMs), `seed ${seed}`).toEqual([]);
  }
});

it("in 500 random drains without a deadline no pod is cut, and no tier overlaps the next", () => {
  for (let seed = 1; seed <= 500; seed++) {
    const pods = randomPods(seededRng(seed));
    const slots = layWaves(pods, endIn(undefined));
    pods.forEach((pod, i) => {
      expect(slots[i]?.graceSeconds, `seed ${seed}`).toBe(pod.wantedSeconds);
      pods.forEach((other, j) => {
        if (other.tier <= pod.tier) return;
        const end = (slots[i]?.startMs ?? 0) + pod.wantedSeconds * 1000;
        expect(slots[j]?.startMs, `seed ${seed}`).toBeGreaterThanOrEqual(end);
      });
    });
  }
});
