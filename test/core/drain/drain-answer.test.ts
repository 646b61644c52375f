import { expect, it } from "vitest";
import { seededRng } from "../../../src/core/chance/chance.ts";
import type { PodFacts } from "../../../src/core/cluster/pod.ts";
import {
  type EvictionAnswer,
  recordAnswer,
  recordSending,
  retryPause,
} from "../../../src/core/drain/drain-answer.ts";
import type {
  DrainAct,
  DrainProgress,
  PodProgress,
} from "../../../src/core/drain/drain-progress.ts";
import { nextDrainActs } from "../../../src/core/drain/drain-step.ts";
import type { TerminationRecords } from "../../../src/core/drain/drain-time.ts";
import { planDrain } from "../../../src/core/drain-plan/drain-plan.ts";
import {
  hours,
  type Instant,
  type Millis,
  millis,
  plus,
  seconds,
} from "../../../src/core/time/time.ts";
import { node, pod, rule, startAt } from "./drain-scene.ts";

const rng = seededRng(7);

function step(
  pods: readonly PodFacts[],
  about: {
    progress?: DrainProgress;
    now?: Instant;
    notice?: Millis;
    known?: TerminationRecords;
  } = {},
) {
  const deadlineAt = about.notice && plus(startAt, about.notice);
  const asked = { node: node(), pods, budgets: [], rule: rule(), now: startAt };
  const plan = planDrain({ ...asked, deadlineAt });
  const { progress = {}, now = startAt, known } = about;
  const common = { plan, startedAt: startAt, livePods: pods, rule: rule() };
  return nextDrainActs({ ...common, progress, known, now });
}

function answered(answer: EvictionAnswer): PodProgress {
  const first = step([pod("a")]);
  const act = first.acts[0] as DrainAct;
  const after = recordAnswer({ progress: first.progress, act, answer, now: startAt, rng });
  return after["uid-a"] as PodProgress;
}

const budgetSays = { budget: "web", message: "needs 2 healthy pods and has 2 currently" };

it.each<[string, EvictionAnswer, string, string | undefined]>([
  ["201", { kind: "Accepted" }, "Leaving", undefined],
  ["404", { kind: "Gone" }, "Gone", undefined],
  ["409, another uid", { kind: "Replaced" }, "Gone", undefined],
  ["429 of a budget", { kind: "Blocked", stale: false, ...budgetSays }, "Blocked", "BudgetHolds"],
  [
    "429 of a stale budget",
    { kind: "Blocked", stale: true, retryAfterMs: seconds(10), ...budgetSays },
    "Blocked",
    "BudgetStale",
  ],
  [
    "429 as plain text",
    { kind: "Overloaded", message: "busy", retryAfterMs: seconds(1) },
    "Waiting",
    "ApiOverloaded",
  ],
  [
    "201 with a Failure body",
    { kind: "MultipleBudgets", message: "more than one" },
    "Blocked",
    "MultipleBudgets",
  ],
  [
    "403 of a terminating namespace",
    { kind: "NamespaceTerminating" },
    "Blocked",
    "NamespaceTerminating",
  ],
  [
    "403 of a webhook",
    { kind: "Refused", status: 403, message: "denied" },
    "Blocked",
    "EvictionRefused",
  ],
  [
    "transient 500",
    { kind: "Failed", retryable: true, message: "internal" },
    "Waiting",
    "EvictionFailed",
  ],
  [
    "permanent 400",
    { kind: "Failed", retryable: false, message: "bad" },
    "Blocked",
    "EvictionFailed",
  ],
  ["no response", { kind: "NoAnswer", message: "reset" }, "Waiting", "AnswerLost"],
])("the response %s sets the pod's progress", (_, answer, kind, reason) => {
  const state = answered(answer);
  expect(state.kind).toBe(kind);
  expect("trouble" in state ? state.trouble?.reason : undefined).toBe(reason);
});

it("the budget's name and message reach the list of blocked pods", () => {
  const first = step([pod("a")]);
  const answer: EvictionAnswer = { kind: "Blocked", stale: false, ...budgetSays };
  const act = first.acts[0] as DrainAct;
  const progress = recordAnswer({ progress: first.progress, act, answer, now: startAt, rng });
  const second = step([pod("a")], { progress });
  expect(second.acts).toEqual([]);
  expect(second.blocked).toMatchObject([
    { pod: { name: "a" }, reason: "BudgetHolds", ...budgetSays },
  ]);
  expect(second.counts.blocked).toBe(1);
});

it("an accepted pod has until the end of its grace", () => {
  expect(answered({ kind: "Accepted" })).toMatchObject({
    kind: "Leaving",
    deadlineAt: plus(startAt, seconds(30)),
    by: "Eviction",
  });
});

it("pauses double from 0.1-0.2 s to 5-10 s, with jitter", () => {
  const low = () => 0;
  const high = () => 0.999_999;
  const pauses = (rng: () => number, leftMs?: Millis) =>
    [1, 2, 3, 4, 5, 6, 7, 100].map((n) => retryPause(n, { rng, leftMs }));
  expect(pauses(low)).toEqual([100, 200, 400, 800, 1600, 3200, 5000, 5000]);
  expect(pauses(high)).toEqual([200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
  // Under a notice at most a tenth of the time left, or 2 s.
  expect(pauses(high, seconds(30))).toEqual([200, 400, 800, 1600, 3000, 3000, 3000, 3000]);
  expect(pauses(high, seconds(4))).toEqual([200, 400, 800, 1600, 2000, 2000, 2000, 2000]);
  expect(pauses(high, seconds(300)).at(-1)).toBe(10_000);
});

it("Retry-After is honored if it is longer than the pause", () => {
  const state = answered({
    kind: "Blocked",
    stale: true,
    retryAfterMs: seconds(10),
    ...budgetSays,
  });
  expect(state).toMatchObject({ nextTryAt: plus(startAt, seconds(10)) });
});

it("an eviction whose response was lost counts as accepted once the pod is terminating", () => {
  const first = step([pod("a")]);
  const act = first.acts[0] as DrainAct;
  const answer: EvictionAnswer = { kind: "NoAnswer", message: "reset" };
  const progress = recordAnswer({ progress: first.progress, act, answer, now: startAt, rng });
  const seen = step([pod("a", { deletionAt: plus(startAt, seconds(30)) })], { progress });
  expect(seen.counts).toMatchObject({ evicted: 1, waiting: 1 });
});

it("a response changes nothing if the watch was quicker", () => {
  const first = step([pod("a")]);
  const act = first.acts[0] as DrainAct;
  const seen = step([pod("a", { deletionAt: plus(startAt, seconds(30)) })], {
    progress: first.progress,
  });
  expect(seen.progress["uid-a"]).toMatchObject({ kind: "Leaving", by: "Eviction" });
  const answer: EvictionAnswer = { kind: "Accepted" };
  expect(recordAnswer({ progress: seen.progress, act, answer, now: startAt, rng })).toBe(
    seen.progress,
  );
});

it("under a notice a hanging eviction does not delay the deletion", () => {
  const pods = [pod("a")];
  const notice = seconds(40);
  const first = step(pods, { notice });
  expect(first.askAgainAt).toBe(plus(startAt, seconds(40)));
  const act = first.acts[0] as DrainAct;
  const { progress } = recordSending({ ...first, act, now: startAt });
  const waiting = step(pods, { notice, progress });
  // Half of the 40 s, less the margin of 2 s: whether a budget blocks the pod is unknown.
  expect([waiting.acts, waiting.askAgainAt]).toEqual([[], plus(startAt, seconds(18))]);
  const now = plus(startAt, seconds(18));
  const forced = step(pods, { notice, progress, now });
  expect(forced.acts).toMatchObject([{ kind: "Delete", graceSeconds: 22 }]);
  // The late response to the eviction is not taken for that of the deletion.
  const answer: EvictionAnswer = { kind: "Blocked", stale: false, ...budgetSays };
  expect(recordAnswer({ progress: forced.progress, act, answer, now, rng })).toBe(forced.progress);
});

it.each([
  ["Overloaded", { kind: "Overloaded", message: "busy" }, "Evict"],
  ["an exhausted budget", { kind: "Blocked", stale: false, ...budgetSays }, "Delete"],
] as const)(
  "past the budget's share of a notice, the last response decides the next request: %s",
  (_, answer, kind) => {
    const notice = seconds(30);
    const first = step([pod("a")], { notice });
    const act = first.acts[0] as DrainAct;
    const progress = recordAnswer({ progress: first.progress, act, answer, now: startAt, rng });
    const second = step([pod("a")], { notice, progress, now: plus(startAt, seconds(13)) });
    expect(second.acts).toMatchObject([{ kind }]);
  },
);

it("under a notice an eviction that has not been sent yet is no reason to delete", () => {
  const pods = [pod("a")];
  const notice = seconds(40);
  const { progress } = step(pods, { notice });
  const waiting = step(pods, { notice, progress, now: plus(startAt, seconds(20)) });
  expect([waiting.acts, waiting.askAgainAt]).toEqual([[], plus(startAt, notice)]);
});

it.each([
  ["at once: the pod's full grace", 0, undefined, false],
  ["while its grace still fits", 10, undefined, false],
  ["later: the time that is left", 25, 15, true],
  ["past the deadline: one second", 50, 1, true],
])("a request sent late gets less grace: %s", (_, afterSeconds, graceSeconds, cut) => {
  const first = step([pod("a")], { notice: seconds(40) });
  const act = first.acts[0] as DrainAct;
  const now = plus(startAt, seconds(afterSeconds));
  const sent = recordSending({ ...first, act, now });
  expect(sent.graceSeconds).toBe(graceSeconds);
  expect(sent.progress["uid-a"]).toMatchObject({ kind: "InFlight", sentAt: now, cut });
  // After a 401 it is sent a second time.
  expect(recordSending({ ...first, ...sent, act, now })).toEqual(sent);
});

it("a request sent without a deadline keeps its original grace", () => {
  const first = step([pod("a")]);
  const act = first.acts[0] as DrainAct;
  const sent = recordSending({ ...first, act, now: plus(startAt, hours(1)) });
  expect(sent.graceSeconds).toBeUndefined();
});

it("a request sent while its pod is already terminating changes no progress", () => {
  const first = step([pod("a")], { notice: seconds(40) });
  const act = first.acts[0] as DrainAct;
  const leaving = [pod("a", { deletionAt: plus(startAt, seconds(30)) })];
  const seen = step(leaving, { notice: seconds(40), progress: first.progress });
  expect(recordSending({ ...seen, act, now: startAt }).progress).toBe(seen.progress);
});

it("under a notice a pod is deleted earlier by as much as the last response was late", () => {
  const seen = { longest: seconds(2), pods: 3 } as const;
  const about = { notice: seconds(60), known: new Map([["rs", seen]]) };
  const first = step([pod("a")], about);
  const act = first.acts[0] as DrainAct;
  const answer: EvictionAnswer = { kind: "Blocked", stale: false, ...budgetSays };
  const actsAt = (answeredAt: Instant, now: Instant) => {
    const progress = recordAnswer({ ...first, act, answer, now: answeredAt, rng });
    return step([pod("a")], { ...about, progress, now }).acts;
  };
  // 60 s, less the 5 s that its workload is expected to need and the margin of 2 s.
  const [atOnce, late] = [startAt, plus(startAt, seconds(4))];
  expect(actsAt(atOnce, plus(startAt, millis(52_999)))).toMatchObject([{ kind: "Evict" }]);
  expect(actsAt(atOnce, plus(startAt, seconds(53)))).toMatchObject([{ kind: "Delete" }]);
  expect(actsAt(late, plus(startAt, millis(48_999)))).toMatchObject([{ kind: "Evict" }]);
  expect(actsAt(late, plus(startAt, seconds(49)))).toMatchObject([{ kind: "Delete" }]);
});

it("under a notice a pod in a terminating namespace is deleted at once", () => {
  const notice = seconds(120);
  const first = step([pod("a")], { notice });
  const act = first.acts[0] as DrainAct;
  const answer: EvictionAnswer = { kind: "NamespaceTerminating" };
  const progress = recordAnswer({ progress: first.progress, act, answer, now: startAt, rng });
  const second = step([pod("a")], { notice, progress });
  expect(second.acts).toMatchObject([{ kind: "Delete", reason: "NamespaceTerminating" }]);
});
