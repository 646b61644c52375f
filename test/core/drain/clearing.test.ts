import { describe, expect, it } from "vitest";
import { drainDeadline, noticeKnownAt, ruleUntil } from "../../../src/core/drain/drain-time.ts";
import { instant, millis, plus, seconds } from "../../../src/core/time/time.ts";
import { rule } from "./drain-scene.ts";

const beganAt = instant(Date.UTC(2026, 10, 20, 12));
const noticedAt = plus(beganAt, seconds(60));

describe("the deadline of a drain", () => {
  it("is the notice's if that is in the future, and none without a notice", () => {
    const soonAt = plus(beganAt, millis(1));
    expect(drainDeadline(soonAt, { beganAt })).toBe(soonAt);
    expect(drainDeadline(undefined, { beganAt, noticedAt })).toBeUndefined();
  });

  it.each([
    ["long over when the drain starts", plus(beganAt, seconds(-200)), { beganAt }, 30],
    ["over just when the drain starts", beganAt, { beganAt }, 30],
    ["over when it becomes known, during the drain", noticedAt, { beganAt, noticedAt }, 90],
  ])("leaves half a minute if the notice's is %s", (_, deadlineAt, since, fromBeginning) => {
    expect(drainDeadline(deadlineAt, since)).toBe(plus(beganAt, seconds(fromBeginning)));
  });
});

describe("the budgets of a drain", () => {
  it("get their share of a future notice, and none of one that has passed", () => {
    const namedAt = plus(beganAt, seconds(30));
    expect(ruleUntil(namedAt, { rule: rule(), namedAt })).toEqual(rule());
    expect(ruleUntil(undefined, { rule: rule(), namedAt: undefined })).toEqual(rule());
    const over = drainDeadline(beganAt, { beganAt });
    expect(ruleUntil(over, { rule: rule(), namedAt: beganAt })).toEqual(rule({ budgetShare: 0 }));
  });

  it("get their share from the later of the drain's start and the notice", () => {
    expect(noticeKnownAt({ beganAt })).toBe(beganAt);
    expect(noticeKnownAt({ beganAt, noticedAt })).toBe(noticedAt);
    expect(noticeKnownAt({ beganAt: noticedAt, noticedAt: beganAt })).toBe(noticedAt);
  });
});
