import { expect, it } from "vitest";
import { type Rng, seededRng } from "../../../src/core/chance/chance.ts";
import type { PodFacts } from "../../../src/core/cluster/pod.ts";
import { type Millis, millis, seconds } from "../../../src/core/time/time.ts";
import { type DrainRecord, type DrainRun, type ModelPod, runDrain } from "./drain-model.ts";
import { budget, pod, rule } from "./drain-scene.ts";

/** Seeded random drains on the model, and checkers that do not know how a drain is run. */
const apps = ["web", "shop", "mail"] as const;

function pick<T>(rng: Rng, from: readonly T[]): T {
  return from[Math.floor(rng() * from.length)] as T;
}

function randomPod(rng: Rng, i: number): ModelPod {
  const critical = rng() < 0.2;
  const graceSeconds = pick(rng, [1, 5, 10, 30, 30, 60, 300]);
  const app = pick(rng, apps);
  const facts: Partial<PodFacts> = {
    labels: { app },
    controller: { kind: "ReplicaSet", name: app, uid: `rs-${app}` },
    priority: critical ? 2_000_000_000 : pick(rng, [0, 1000, -10]),
    graceSeconds,
    ready: rng() < 0.9,
    annotations: rng() < 0.1 ? { "lastcall.dev/do-not-disturb": "true" } : {},
  };
  const exitMs = rng() < 0.2 ? undefined : millis(Math.floor(rng() * graceSeconds * 1000));
  return { facts: pod(`p${i}`, facts), exitMs };
}

function randomRun(seed: number, about: { readonly notice: "No" | "Yes" | "Late" }): DrainRun {
  const rng = seededRng(seed);
  const leftMs: Millis = seconds(1 + Math.floor(rng() * 150));
  const budgets = apps
    .filter(() => rng() < 0.5)
    .map((app) => ({
      facts: budget(app, {
        selector: { matchLabels: { app } },
        disruptionsAllowed: Math.floor(rng() * 3),
      }),
      recoversMs: rng() < 0.5 ? seconds(1 + Math.floor(rng() * 60)) : undefined,
    }));
  const onTimeout = pick(rng, ["RollBack", "RollBack", "Proceed"] as const);
  const trouble = rng() < 0.3 ? seededRng(seed + 1) : undefined;
  return {
    seed,
    pods: Array.from({ length: 1 + Math.floor(rng() * 15) }, (_, i) => randomPod(rng, i)),
    budgets,
    rule: rule({ onTimeout, budgetShare: pick(rng, [0, 0.2, 0.5, 0.5, 0.9, 1]) }),
    notice: about.notice === "Yes" ? leftMs : undefined,
    lateNotice:
      about.notice === "Late"
        ? { afterMs: millis(Math.floor(rng() * 100_000)), leftMs }
        : undefined,
    restartAfterMs: rng() < 0.2 ? millis(Math.floor(rng() * 60_000)) : undefined,
    api:
      trouble &&
      ((act) =>
        act.kind === "Evict" && trouble() < 0.2
          ? { kind: "NoAnswer", message: "reset" }
          : undefined),
  };
}

function endOfTime(run: DrainRun): number {
  if (run.notice !== undefined) return run.notice;
  if (run.lateNotice !== undefined) return run.lateNotice.afterMs + run.lateNotice.leftMs;
  return run.rule.timeoutMs;
}

/** A terminating pod cannot be rolled back, but gets all its grace. */
function longestGrace({ rule: { onTimeout }, notice, lateNotice, pods }: DrainRun): number {
  if (notice !== undefined || lateNotice !== undefined || onTimeout !== "RollBack") return 0;
  return Math.max(0, ...pods.map(({ facts }) => facts.graceSeconds * 1000));
}

/** Holds in every drain, whatever the policy and the time. */
function faults(run: DrainRun, record: DrainRecord): string[] {
  const found: string[] = [];
  const endMs = endOfTime(run);
  const lastMs = endMs + longestGrace(run);
  if (record.endedMs > lastMs) found.push(`ended at ${record.endedMs}, after ${lastMs}`);
  for (const { act, afterMs } of record.sent) {
    const facts = run.pods.find((one) => one.facts.uid === act.pod.uid)?.facts as PodFacts;
    const grace = "graceSeconds" in act ? (act.graceSeconds ?? facts.graceSeconds) : 0;
    if (afterMs >= endMs) found.push(`${act.pod.name}: asked after the end`);
    if (grace < 1 || grace > facts.graceSeconds) found.push(`${act.pod.name}: grace ${grace}`);
  }
  const states = Object.values(record.end.progress);
  if (states.some((state) => state.kind !== "Gone")) found.push("a pod without an outcome");
  const behind = states.filter((state) => state.kind === "Gone" && state.how === "LeftBehind");
  if (record.end.verdict === "Done" && behind.length > 0) found.push("done with pods left");
  if (record.end.counts.left !== behind.length) found.push("left is not the pods left behind");
  return found;
}

/** Complements `faults`: what is wrong with the pods that were deleted despite a budget. */
function forcedFaults(
  run: DrainRun,
  about: { readonly record: DrainRecord; readonly noticedMs: number; readonly endMs: number },
): string[] {
  const { record, noticedMs, endMs } = about;
  const { budgetShare } = run.rule;
  return record.sent.flatMap(({ act, afterMs }) => {
    if (act.kind !== "Delete" || afterMs < noticedMs) return [];
    const { facts } = run.pods.find((one) => one.facts.uid === act.pod.uid) as ModelPod;
    const wantedMs = facts.graceSeconds * 1000;
    const shareEndMs = noticedMs + budgetShare * (endMs - noticedMs);
    // A grace that does not fit after the share starts when the share ends; any other starts as
    // late as it still fits.
    const dueMs = Math.max(endMs - wantedMs, shareEndMs) - 2000;
    const found =
      afterMs < Math.floor(dueMs) ? [`${facts.name}: deleted at ${afterMs}, too early`] : [];
    const lateMs = endMs - 2000 - Math.min(wantedMs, slowest(run, { record, facts, afterMs }));
    const isLate = budgetShare > 0 && afterMs > Math.max(noticedMs, Math.ceil(dueMs), lateMs);
    return isLate ? [...found, `${facts.name}: deleted at ${afterMs}, too late`] : found;
  });
}

/**
 * The expected need of a pod: the longest time that a pod of the same app has taken so far, as far
 * as the current controller saw it, plus three times that divided by their number, at least 3 s.
 * Infinity if none was seen.
 */
function slowest(
  run: DrainRun,
  about: { readonly record: DrainRecord; readonly facts: PodFacts; readonly afterMs: number },
): number {
  const { record, facts, afterMs } = about;
  const restartedMs = run.restartAfterMs ?? Number.POSITIVE_INFINITY;
  const took = record.sent.flatMap(({ act, answer, afterMs: askedMs }) => {
    const { facts: other, exitMs } = run.pods.find(
      (one) => one.facts.uid === act.pod.uid,
    ) as ModelPod;
    const isTold = answer === "Accepted" && other.ready && other.labels.app === facts.labels.app;
    if (!isTold || exitMs === undefined || askedMs + exitMs >= afterMs) return [];
    if (afterMs >= restartedMs && askedMs < restartedMs) return [];
    return "graceSeconds" in act && exitMs < (act.graceSeconds ?? other.graceSeconds) * 1000
      ? [exitMs]
      : [];
  });
  const longest = Math.max(...took);
  if (took.length === 0) return Number.POSITIVE_INFINITY;
  return longest + Math.max(Math.ceil((3 * longest) / took.length), 3000);
}

function asksAccepted(record: DrainRecord, name: string) {
  return record.sent.filter((one) => one.act.pod.name === name && one.answer === "Accepted");
}

it("200 random planned drains keep tiers, budgets and annotated pods", () => {
  for (let seed = 1; seed <= 200; seed++) {
    const run = randomRun(seed, { notice: "No" });
    const record = runDrain(run);
    const found = faults(run, record);
    for (const { act, there, afterMs } of record.sent) {
      const { facts } = run.pods.find((one) => one.facts.uid === act.pod.uid) as ModelPod;
      if (act.kind === "Delete" && run.rule.onTimeout !== "Proceed") found.push("deleted");
      if (facts.annotations["lastcall.dev/do-not-disturb"]) found.push("disturbed");
      const lower = run.pods.filter(
        (one) => one.facts.priority < 2e9 && there.includes(one.facts.name),
      );
      const early = facts.priority >= 2e9 && lower.length > 0;
      const pressed = run.rule.onTimeout === "Proceed" && afterMs >= run.rule.timeoutMs / 2;
      if (early && !pressed) found.push(`${act.pod.name}: asked before a lower tier had gone`);
    }
    expect(found, `seed ${seed}`).toEqual([]);
  }
});

it("200 random notices: all are told to leave in time, only budgets cut a grace that fits", () => {
  for (let seed = 1; seed <= 200; seed++) {
    const run = randomRun(seed, { notice: "Yes" });
    const record = runDrain(run);
    const endMs = run.notice ?? 0;
    const found = [...faults(run, record), ...forcedFaults(run, { record, noticedMs: 0, endMs })];
    for (const { facts } of run.pods) {
      const [accepted] = asksAccepted(record, facts.name);
      if (accepted === undefined) found.push(`${facts.name}: never asked to leave`);
      if (accepted === undefined || !("graceSeconds" in accepted.act)) continue;
      const granted = accepted.act.graceSeconds ?? facts.graceSeconds;
      const left = Math.max(1, Math.floor((endMs - accepted.afterMs) / 1000));
      if (granted !== Math.min(left, facts.graceSeconds)) found.push(`${facts.name}: ${granted} s`);
      const fits = facts.graceSeconds * 1000 + 2000 <= endMs;
      const held = record.sent.some(
        ({ act, answer }) => act.pod.name === facts.name && answer !== "Accepted",
      );
      if (fits && granted < facts.graceSeconds && !held)
        found.push(`${facts.name}: cut though free`);
      const isGraceFirst = run.rule.budgetShare === 0;
      if (fits && granted < facts.graceSeconds && isGraceFirst) found.push(`${facts.name}: cut`);
    }
    expect(found, `seed ${seed}`).toEqual([]);
  }
});

it("200 random drains with a notice midway: each remaining pod is told to leave in time", () => {
  for (let seed = 1; seed <= 200; seed++) {
    const run = randomRun(seed, { notice: "Late" });
    const record = runDrain(run);
    const noticedMs = run.lateNotice?.afterMs ?? 0;
    const timedOut = record.end.verdict === "TimedOut";
    const endMs = endOfTime(run);
    const found = [...faults(run, record), ...forcedFaults(run, { record, noticedMs, endMs })];
    for (const { facts } of run.pods) {
      if (asksAccepted(record, facts.name).length === 0) found.push(`${facts.name}: never asked`);
      const early = record.sent.some(
        (one) =>
          one.act.pod.name === facts.name &&
          one.act.kind === "Delete" &&
          one.afterMs < noticedMs &&
          run.rule.onTimeout !== "Proceed",
      );
      if (early) found.push(`${facts.name}: deleted before the notice`);
    }
    if (timedOut) found.push("timed out although a deadline was known");
    expect(found, `seed ${seed}`).toEqual([]);
  }
});

it("a random drain with the same seed is the same", () => {
  for (let seed = 1; seed <= 20; seed++) {
    const run = () => runDrain(randomRun(seed, { notice: "Late" })).timeline;
    expect(run(), `seed ${seed}`).toEqual(run());
  }
});
