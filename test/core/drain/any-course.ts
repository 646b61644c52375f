import fc from "fast-check";
import type { EvictionAnswer } from "../../../src/core/drain/drain-answer.ts";
import type { DrainRule } from "../../../src/core/policy/policy.ts";
import { millis, minutes, plus, seconds } from "../../../src/core/time/time.ts";
import { type CourseEvent, type DrainCourse, named, type UnnamedPod } from "./drain-course.ts";
import { budget, pod, rule, startAt } from "./drain-scene.ts";

const workloads = ["web", "shop", "job", "gone"] as const;

const unnamedPod: fc.Arbitrary<UnnamedPod> = fc
  .record({
    app: fc.constantFrom(...workloads),
    graceSeconds: fc.constantFrom(0, 1, 5, 10, 30, 60),
    priority: fc.constantFrom(0, 0, 0, 1000, 2_000_000_000),
    ready: fc.boolean(),
    mark: fc.constantFrom(undefined, undefined, undefined, "true", "61m", "62m"),
    isLoose: fc.constantFrom(false, false, false, true),
    startedMinutes: fc.constantFrom(1, 60),
  })
  .map(({ app, mark, isLoose, startedMinutes, ...rest }) => ({
    ...pod("unnamed", { ...rest, labels: { app } }),
    controller: { kind: "ReplicaSet", name: app, uid: `rs-${app}` },
    startedAt: plus(startAt, minutes(-startedMinutes)),
    ...(mark && { annotations: { "lastcall.dev/do-not-disturb": mark } }),
    ...(isLoose && { tolerations: [{ operator: "Exists" as const }] }),
  }));

const budgets = fc.subarray(["web", "shop", "shop-too"]).chain((names) =>
  fc.tuple(
    ...names.map((name) =>
      fc.constantFrom(0, 1, 2).map((disruptionsAllowed) =>
        budget(name, {
          ...{ disruptionsAllowed, expectedPods: disruptionsAllowed + 1 },
          selector: { matchLabels: { app: name.replace("-too", "") } },
        }),
      ),
    ),
  ),
);

const anyRule: fc.Arbitrary<DrainRule> = fc
  .record({
    timeoutMs: fc.constantFrom(seconds(20), minutes(2), minutes(10)),
    onTimeout: fc.constantFrom("RollBack", "Proceed", "Wait"),
    onSingleReplica: fc.constantFrom("Wait", "RestartOwner"),
    budgetShare: fc.constantFrom(0, 0.2, 0.5, 1),
    waitMs: fc.constantFrom(undefined, seconds(30), minutes(2)),
    gone: fc.constantFrom("Delete", "Block", "Evict"),
  })
  .map(({ waitMs, gone, ...rest }) =>
    rule({
      ...rest,
      podRules: [
        {
          ...{ selector: { matchLabels: { app: "job" } }, action: "WaitCompleted" },
          ...(waitMs && { timeoutMs: waitMs }),
        },
        { selector: { matchLabels: { app: "gone" } }, action: gone },
      ],
    }),
  );

const retryAfterMs = fc.constantFrom(undefined, seconds(1), seconds(10));

/** 201, 404, 409, 429 of either kind, 403, 500, and no response at all. */
const anyAnswer: fc.Arbitrary<EvictionAnswer> = fc.oneof(
  { weight: 3, arbitrary: fc.constant({ kind: "Accepted" as const }) },
  fc.constantFrom({ kind: "Gone" as const }, { kind: "Replaced" as const }),
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("Blocked" as const),
      ...{ budget: fc.constant("web"), message: fc.constant("needs 2 healthy pods") },
      ...{ retryAfterMs, stale: fc.boolean() },
    }),
  },
  fc.record({
    kind: fc.constant("Overloaded" as const),
    ...{ message: fc.constant("too many requests"), retryAfterMs },
  }),
  fc.constant({ kind: "NamespaceTerminating" as const }),
  fc.constant({ kind: "MultipleBudgets" as const, message: "more than one" }),
  fc.record({
    kind: fc.constant("Refused" as const),
    ...{ status: fc.constant(403), message: fc.constant("denied"), retryAfterMs },
  }),
  fc.record({
    kind: fc.constant("Failed" as const),
    ...{ status: fc.constant(500), retryable: fc.boolean(), message: fc.constant("broken") },
  }),
  { weight: 2, arbitrary: fc.constant({ kind: "NoAnswer" as const, message: "timed out" }) },
);

const at = fc.nat(5);
const passMs = fc.constantFrom(0, 1, 50, 200, 1000, 2000, 10_000, 30_000).map(millis);
const leftMs = fc
  .constantFrom(undefined, 5000, 30_000, 120_000, 600_000)
  .map((ms) => ms && millis(ms));

/** Each event with its weight. */
const anyEvent: readonly [number, fc.Arbitrary<CourseEvent>][] = [
  [8, fc.constant({ kind: "Look" })],
  [4, passMs.map((ms) => ({ kind: "Pass", ms }))],
  [4, fc.constant({ kind: "PassToLook" })],
  [
    4,
    fc.tuple(at, fc.constantFrom(1, 1, 2)).map(([its, times]) => {
      return { kind: "Send", at: its, times };
    }),
  ],
  [8, fc.tuple(at, anyAnswer).map(([its, one]) => ({ kind: "Answer", at: its, answer: one }))],
  [
    6,
    fc.tuple(fc.integer({ min: 1, max: 6 }), anyAnswer).map(([times, one]) => {
      return { kind: "Rounds", times, answer: one };
    }),
  ],
  [1, at.map((its) => ({ kind: "Exit", at: its }))],
  [
    1,
    fc
      .tuple(unnamedPod, fc.boolean())
      .map(([facts, isOwn]) => ({ kind: "Arrive", pod: facts, isOwn })),
  ],
  [5, fc.constant({ kind: "Show" })],
  [2, leftMs.map((ms) => ({ kind: "Notice", leftMs: ms }))],
  [
    1,
    fc.tuple(at, fc.constantFrom("true", "false", "61m")).map(([its, value]) => {
      return { kind: "Mark", at: its, value };
    }),
  ],
  [1, fc.constant({ kind: "Silence" })],
];

const aKill: [number, fc.Arbitrary<CourseEvent>] = [3, fc.constant({ kind: "Kill" })];

/** `kills`: whether the process may be killed on the way. */
export function anyCourse({
  kills,
}: {
  readonly kills: "Some" | "None";
}): fc.Arbitrary<DrainCourse> {
  const kinds = kills === "Some" ? [...anyEvent, aKill] : anyEvent;
  const event = fc.oneof(...kinds.map(([weight, arbitrary]) => ({ weight, arbitrary })));
  return fc.record({
    pods: fc
      .array(unnamedPod, { minLength: 1, maxLength: 5 })
      .map((all) => all.map((facts, index) => named("p", index, facts))),
    ...{ budgets, rule: anyRule, isStartKnown: fc.boolean() },
    events: fc
      .array(event, { minLength: 1, maxLength: 60, size: "max" })
      .map((all) => [{ kind: "Look" }, ...all]),
  });
}
