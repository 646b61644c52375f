import { describe, expect, it } from "vitest";
import { drainDeadline } from "../../src/core/clearing.ts";
import { instant, millis, plus, seconds } from "../../src/core/time.ts";

const beganAt = instant(Date.UTC(2026, 10, 20, 12));
const noticedAt = plus(beganAt, seconds(60));

describe("the deadline of a drain", () => {
  it("is the notice's while that is ahead, and none where there is none", () => {
    const soonAt = plus(beganAt, millis(1));
    expect(drainDeadline(soonAt, { beganAt })).toBe(soonAt);
    expect(drainDeadline(undefined, { beganAt, noticedAt })).toBeUndefined();
  });

  it.each([
    ["over for long as it begins", plus(beganAt, seconds(-200)), { beganAt }, 30],
    ["over in the moment in which it begins", beganAt, { beganAt }, 30],
    ["over as it becomes known, in mid-drain", noticedAt, { beganAt, noticedAt }, 90],
  ])("leaves half a minute where the notice's is %s", (_, deadlineAt, since, fromBeginning) => {
    expect(drainDeadline(deadlineAt, since)).toBe(plus(beganAt, seconds(fromBeginning)));
  });
});
