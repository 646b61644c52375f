import { describe, expect, it } from "vitest";
import { cloudDeadline, type Departure } from "../../../src/core/departure/departure.ts";
import { drainRuleOf } from "../../../src/core/drain/drain-time.ts";
import {
  givenUpAt,
  interruptionOf,
  isMarkOutdated,
  isOvertaken,
  mayShowMark,
  stillRuns,
} from "../../../src/core/notice/interruption.ts";
import { causeWith, noticeUpdate, updateFrom } from "../../../src/core/notice/notice.ts";
import type { Cause } from "../../../src/core/policy/action.ts";
import { hours, instant, minutes, plus } from "../../../src/core/time/time.ts";
import { aDeparture, aNode, aPolicy } from "../fleet-builder.ts";

const now = instant(Date.UTC(2026, 10, 20, 12));
const soon = plus(now, minutes(2));
const later = plus(now, hours(12));
const node = aNode("n1");

function departure(over: Partial<Departure> = {}): Departure {
  return aDeparture(node, over);
}

type Undone = "CancelledByPerson" | "NoticeWithdrawn" | "NoticeOutlived";

function rollingBack(cause: Cause, reason: Undone): Departure {
  const status = { phase: "RollingBack", reason, startedAt: now, timeline: [] } as const;
  return departure({ cause, noticedAt: now, status });
}

describe("the cause of a departure after a LifecycleHook notice", () => {
  it.each([
    ["a planned one", { cause: "Planned", deadlineAt: later }, {}, "LifecycleHook"],
    ["a requested one", { cause: "Manual" }, {}, "LifecycleHook"],
    ["a requested one with a deadline", { cause: "Manual", deadlineAt: later }, {}, undefined],
    [
      "a requested one with a deadline, where the cloud names one too",
      { cause: "Manual", deadlineAt: later },
      { deadlineAt: soon },
      "LifecycleHook",
    ],
    ["a recommended one", { cause: "RebalanceRecommendation" }, {}, "LifecycleHook"],
    ["an interrupted one", { cause: "SpotInterruption", deadlineAt: soon }, {}, undefined],
  ] as const)("for %s, from %j and %j, is %s", (_, known, told, wanted) => {
    expect(causeWith(known, { cause: "LifecycleHook", ...told })).toBe(wanted);
  });
});

describe("a deadline", () => {
  it.each([
    ["Planned", undefined, false],
    ["Planned", now, true],
    ["Manual", now, false],
    ["LifecycleHook", now, true],
  ] as const)(
    "of a departure with cause %s, noticed %s, comes from the cloud: %s",
    (cause, noticedAt, isClouds) => {
      const found = cloudDeadline({ cause, noticedAt, deadlineAt: soon });
      expect(found).toBe(isClouds ? soon : undefined);
    },
  );

  it("that a person set neither ends the wait for the cloud nor the drain of a noticed node", () => {
    const asked = departure({ cause: "Manual", noticedAt: now, deadlineAt: later });
    expect(givenUpAt(asked)).toBe(plus(now, hours(1)));
    const rule = { ...aPolicy().drain, onTimeout: "RollBack" } as const;
    const wanted = { timeoutMs: hours(12), onTimeout: "Wait" };
    expect(drainRuleOf(asked, { rule, now })).toMatchObject(wanted);
  });
});

describe("a notice", () => {
  it.each([
    ["ScheduledMaintenance", 2],
    ["SpotInterruption", 1],
    ["RebalanceRecommendation", 1],
    ["LifecycleHook", 48],
  ] as const)("without a deadline is given up after hours, not never: %s %i", (cause, forHours) => {
    const status = { phase: "Releasing", startedAt: soon, timeline: [] } as const;
    const waiting = departure({ cause, noticedAt: now, status });
    expect(givenUpAt(waiting)).toBe(plus(soon, hours(forHours)));
  });

  it.each([
    ["its node is Ready", {}, true],
    ["its kubelet is silent", { ready: false, isUnreachable: true }, false],
    ["its kubelet is not ready", { ready: false }, false],
    ["its node has another boot", { bootID: "other" }, false],
  ])("is outlived by a machine only if it runs: %s", (_, fields, isOutlived) => {
    const before = aNode("n1", { bootID: "boot-1" });
    const waiting = aDeparture(before, { node: before });
    expect(stillRuns(waiting, { ...before, ...fields })).toBe(isOutlived);
    expect(stillRuns(waiting, undefined)).toBe(false);
  });
});

describe("a notice that is passed on to the departure under way for the node", () => {
  const update = { cause: "SpotInterruption", noticedAt: now, deadlineAt: soon } as const;

  it("gives a planned one its cause", () => {
    const notice = departure({ ...update, source: "agent/aws/test" });
    const handed = { ...update, source: "agent/aws/test" };
    const told = updateFrom(notice);
    expect(told && noticeUpdate(departure({ deadlineAt: later }), told)).toEqual(handed);
  });

  it("updates one with a less serious cause, whatever the deadlines", () => {
    const told = { noticedAt: now, deadlineAt: soon };
    const again = { ...update, source: "aws/x" };
    const advised = departure({ ...told, cause: "ScheduledMaintenance" });
    expect(noticeUpdate(advised, again)).toEqual(again);
    expect(noticeUpdate(departure({ ...told, cause: "Manual" }), again)).toEqual(again);
    expect(noticeUpdate(departure({ ...told, cause: "LifecycleHook" }), again)).toBeUndefined();
  });
});

describe("a notice for a departure that is being rolled back", () => {
  it.each([
    ["starts it again", rollingBack("SpotInterruption", "CancelledByPerson"), "Noticed"],
    ["is over if it was withdrawn", rollingBack("SpotInterruption", "NoticeWithdrawn"), undefined],
    ["is over if it was outlived", rollingBack("SpotInterruption", "NoticeOutlived"), undefined],
    [
      "starts no advice again",
      rollingBack("RebalanceRecommendation", "CancelledByPerson"),
      undefined,
    ],
  ] as const)("%s", (_, rolled, event) => {
    expect(interruptionOf(rolled, node)?.event).toBe(event);
  });
});

describe("a departure whose node shows another boot", () => {
  it.each([
    ["is of a rebooted machine on EC2", "aws:///eu-west-1a/i-0abc", "MachineRebooted"],
    [
      "is of a rebooted machine on Azure",
      "azure:///subscriptions/s/virtualMachines/0",
      "MachineRebooted",
    ],
    ["is of a rebooted machine without a cloud", undefined, "MachineRebooted"],
    // A managed group recreates a machine under its name.
    ["is of another machine on Compute Engine", "gce://p/z/n1", "MachineReplaced"],
  ])("%s", (_, providerID, reason) => {
    const before = aNode("n1", { providerID, bootID: "boot-1" });
    const after = aNode("n1", { providerID, bootID: "boot-2" });
    const found = interruptionOf(aDeparture(before, { node: before }), after);
    expect(found).toEqual({ event: "MachineReplaced", reason });
  });
});

describe("what users see of a departure", () => {
  const taints = [
    { key: "lastcall.dev/departing", value: "Planned", effect: "NoSchedule" },
  ] as const;
  const marked = aNode("n1", { taints, annotations: { "lastcall.dev/departure": "n1-1" } });
  const status = { phase: "Draining", startedAt: now, timeline: [] } as const;

  it("is outdated if the taint names another cause", () => {
    expect(isMarkOutdated(departure({ cause: "SpotInterruption" }), marked)).toBe(true);
    expect(isMarkOutdated(departure(), marked)).toBe(false);
    expect(isMarkOutdated(departure({ cause: "SpotInterruption" }), node)).toBe(false);
  });

  it("is shown only on its own marked node while that is leaving", () => {
    expect(mayShowMark(departure({ status }), marked)).toBe(true);
    expect(mayShowMark(departure({ status }), node)).toBe(false);
    const undone = { ...status, phase: "RollingBack" } as const;
    expect(mayShowMark(departure({ status: undone }), marked)).toBe(false);
  });

  it("is an instant overtaken by a notice, once the status shows the start", () => {
    const planned = { departAt: later, noticedAt: now };
    expect(isOvertaken(departure({ ...planned, status }))).toBe(true);
    expect(isOvertaken(departure(planned))).toBe(false);
    expect(isOvertaken(departure({ departAt: later, status }))).toBe(false);
    expect(isOvertaken(departure({ departAt: now, noticedAt: soon, status }))).toBe(false);
  });
});
