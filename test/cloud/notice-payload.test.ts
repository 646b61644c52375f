import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  readInstanceAction,
  readRebalance,
  readScheduledEvents,
  readTargetLifecycleState,
} from "../../src/cloud/aws/notice-source.ts";
import { readAzureEvents } from "../../src/cloud/azure/notice-source.ts";
import {
  readMaintenanceEvent,
  readNoticeDuration,
  readPreempted,
} from "../../src/cloud/gcp/notice-source.ts";
import type { NoticeReading } from "../../src/core/notice/notice.ts";
import { instant, seconds } from "../../src/core/time/time.ts";
import { foreignText } from "../support/foreign-text.ts";

const at = instant(Date.UTC(2026, 10, 20, 12));
const ownName = "aks-spot-123-vmss_3";

/** The only notice of a reading, or the reading if it has none or several. */
function only(reading: NoticeReading): unknown {
  return reading.kind === "Read" && reading.notices.length === 1 ? reading.notices[0] : reading;
}

describe("EC2's spot/instance-action", () => {
  const deadlineAt = Date.UTC(2017, 8, 18, 8, 22);

  it.each(["terminate", "stop"])("%s names the deadline", (action) => {
    const text = JSON.stringify({ action, time: "2017-09-18T08:22:00Z" });
    expect(only(readInstanceAction({ text, at }))).toEqual({
      cause: "SpotInterruption",
      deadlineAt,
      noticedAt: at,
      source: "aws/spot-instance-action",
      eventId: `spot-${action}-2017-09-18T08:22:00Z`,
    });
  });

  it("hibernate has its deadline now, whatever time it names", () => {
    const text = JSON.stringify({ action: "hibernate", time: "2026-11-20T12:02:00Z" });
    expect(only(readInstanceAction({ text, at }))).toMatchObject({ deadlineAt: at });
  });

  it("an unknown action is treated like the known ones", () => {
    const text = JSON.stringify({ action: "suspend", time: "2017-09-18T08:22:00Z" });
    expect(only(readInstanceAction({ text, at }))).toMatchObject({ deadlineAt });
  });

  it.each([
    [{ action: "terminate" }],
    [{ action: "terminate", time: 5 }],
    [{ action: "terminate", time: "soon" }],
  ])("%j without a readable time has its deadline in two minutes", (body) => {
    const reading = readInstanceAction({ text: JSON.stringify(body), at });
    expect(only(reading)).toMatchObject({ deadlineAt: at + 120_000 });
    expect(reading.kind === "Read" && reading.problems).toHaveLength(1);
  });

  it.each(["", "{}", "[]", "null", '{"action":5}', '{"action":""}', "<html></html>"])(
    "%j is unreadable",
    (text) => {
      expect(readInstanceAction({ text, at }).kind).toBe("Unreadable");
    },
  );
});

describe("EC2's rebalance recommendation", () => {
  it("has a time and no deadline", () => {
    const text = '{"noticeTime": "2020-10-27T08:22:00Z"}';
    expect(only(readRebalance({ text, at }))).toEqual({
      cause: "RebalanceRecommendation",
      noticedAt: Date.UTC(2020, 9, 27, 8, 22),
      source: "aws/rebalance",
      eventId: "rebalance-2020-10-27T08:22:00Z",
    });
  });
});

describe("EC2's scheduled events", () => {
  const event = {
    NotBefore: "21 Jan 2019 09:00:43 GMT",
    Code: "system-reboot",
    EventId: "instance-event-0d59937288b749b32",
    NotAfter: "21 Jan 2019 09:17:23 GMT",
    State: "active",
  };

  it("have a deadline without a weekday", () => {
    expect(only(readScheduledEvents({ text: JSON.stringify([event]), at }))).toEqual({
      cause: "ScheduledMaintenance",
      deadlineAt: Date.UTC(2019, 0, 21, 9, 0, 43),
      noticedAt: at,
      source: "aws/scheduled-events",
      eventId: "instance-event-0d59937288b749b32",
    });
  });

  it.each([
    ["in another format", "2019-01-21T09:00:43Z", Date.UTC(2019, 0, 21, 9, 0, 43), 0],
    ["not a time", "presently", undefined, 1],
    ["missing", undefined, undefined, 1],
  ])("are also read if their time is %s", (_, NotBefore, deadlineAt, problems) => {
    const reading = readScheduledEvents({ text: JSON.stringify([{ ...event, NotBefore }]), at });
    expect(reading).toMatchObject({ notices: [{ eventId: event.EventId, deadlineAt }] });
    expect(reading.kind === "Read" && reading.problems).toHaveLength(problems);
  });

  it.each(["canceled", "completed"])("withdraw an event that is %s", (State) => {
    const text = JSON.stringify([{ ...event, State }]);
    expect(only(readScheduledEvents({ text, at }))).toMatchObject({ withdrawn: true });
  });

  it("lose no event to others that cannot be read", () => {
    const reading = readScheduledEvents({ text: JSON.stringify([5, null, {}, event]), at });
    expect(reading).toMatchObject({ kind: "Read", notices: [{ eventId: event.EventId }] });
    expect(reading.kind === "Read" && reading.problems).toHaveLength(3);
  });

  it("are none in an empty list, and unreadable in an empty body", () => {
    expect(readScheduledEvents({ text: "[]", at })).toMatchObject({ kind: "Read", notices: [] });
    expect(readScheduledEvents({ text: "", at }).kind).toBe("Unreadable");
  });
});

describe("EC2's target lifecycle state", () => {
  it.each([
    ["InService", false],
    ["Standby", false],
    ["Detached", false],
    ["Warmed:Running", false],
    ["Terminated", true],
    ["Warmed:Terminated", true],
    ["Warmed:Stopped", true],
    ["Warmed:Hibernated\n", true],
  ])("%j is a notice: %s", (text, leaves) => {
    const reading = readTargetLifecycleState({ text, at });
    expect(reading).toMatchObject({ kind: "Read", notices: leaves ? [{}] : [] });
    if (leaves) expect(only(reading)).not.toHaveProperty("deadlineAt");
  });

  it("has the same event ID however often it is read", () => {
    for (const readAt of [at, instant(at + 2000)]) {
      const reading = readTargetLifecycleState({ text: "Terminated", at: readAt });
      expect(only(reading)).toMatchObject({ eventId: "lifecycle-Terminated" });
    }
  });
});

describe("Compute Engine's values", () => {
  it("TRUE has its deadline after this machine's notice", () => {
    expect(only(readPreempted({ text: "TRUE", at }, seconds(30)))).toMatchObject({
      cause: "SpotInterruption",
      deadlineAt: at + 30_000,
    });
    expect(readPreempted({ text: "FALSE", at }, seconds(30))).toMatchObject({ notices: [] });
  });

  it.each(["", "true", "YES", "<html>"])("%j, neither TRUE nor FALSE, is unreadable", (text) => {
    expect(readPreempted({ text, at }, seconds(30)).kind).toBe("Unreadable");
  });

  it("a live migration is ignored", () => {
    const text = "MIGRATE_ON_HOST_MAINTENANCE";
    expect(readMaintenanceEvent({ text, at })).toMatchObject({ notices: [], ignored: [text] });
    expect(readMaintenanceEvent({ text: "NONE", at })).toMatchObject({ notices: [], ignored: [] });
  });

  it("a termination for maintenance has its deadline in a minute", () => {
    const text = "TERMINATE_ON_HOST_MAINTENANCE";
    expect(only(readMaintenanceEvent({ text, at }))).toMatchObject({
      cause: "ScheduledMaintenance",
      deadlineAt: at + 60_000,
    });
  });

  it.each([
    ["120s", 120_000],
    ["2m\n", 120_000],
    ["0s", undefined],
    ["3h", undefined],
    ["120", undefined],
    ["<html>", undefined],
  ])("a notice of %j is %s ms", (text, ms) => {
    expect(readNoticeDuration(text)).toBe(ms);
  });
});

describe("Azure's Scheduled Events", () => {
  const event = {
    EventId: "602d9444-d2cd-49c7-8624-8643e7171297",
    EventType: "Preempt",
    ResourceType: "VirtualMachine",
    Resources: ["aks-spot-123-vmss_1", "AKS-SPOT-123-VMSS_3"],
    EventStatus: "Scheduled",
    NotBefore: "Mon, 11 Apr 2026 22:26:58 GMT",
  };

  function readEvents(...events: unknown[]): NoticeReading {
    const text = JSON.stringify({ DocumentIncarnation: 2, Events: events });
    return readAzureEvents({ text, at, ownName });
  }

  it.each([
    ["Preempt", "SpotInterruption"],
    ["Terminate", "LifecycleHook"],
    ["Reboot", "ScheduledMaintenance"],
    ["Redeploy", "ScheduledMaintenance"],
  ])("%s of this machine is a %s, with NotBefore as its deadline", (EventType, cause) => {
    expect(only(readEvents({ ...event, EventType }))).toEqual({
      cause,
      deadlineAt: Date.UTC(2026, 3, 11, 22, 26, 58),
      noticedAt: at,
      source: "azure/scheduled-events",
      eventId: event.EventId,
      canBegin: false,
    });
  });

  it.each([
    ["that names only this machine", { Resources: [ownName] }, true],
    ["that also names another machine", {}, false],
    ["that has started", { Resources: [ownName], EventStatus: "Started", NotBefore: "" }, false],
    ["with an invalid time", { Resources: [ownName], NotBefore: "presently" }, false],
  ])("one %s: whether it may be approved to start", (_, change, canBegin) => {
    expect(only(readEvents({ ...event, ...change }))).toMatchObject({ canBegin });
  });

  it("are ignored if they name only other machines", () => {
    const reading = readEvents({ ...event, Resources: ["aks-spot-123-vmss_33", "vmss_3"] });
    expect(reading).toEqual({ kind: "Read", notices: [], ignored: [], problems: [] });
  });

  it("a freeze of some seconds is listed as ignored", () => {
    expect(readEvents({ ...event, EventType: "Freeze" })).toMatchObject({
      notices: [],
      ignored: ["Freeze"],
    });
  });

  it("one of an unknown type gives no notice", () => {
    expect(readEvents({ ...event, EventType: "constructor" })).toMatchObject({ notices: [] });
  });

  it("one that has started, and so has no NotBefore, has its deadline now", () => {
    const started = { ...event, EventStatus: "Started", NotBefore: "" };
    expect(only(readEvents(started))).toMatchObject({ deadlineAt: at, isReckoned: true });
  });

  it("one with a time that cannot be read has the shortest notice", () => {
    const reading = readEvents({ ...event, NotBefore: "presently" });
    expect(only(reading)).toMatchObject({ deadlineAt: at + 30_000, isReckoned: true });
  });

  it("one that cannot be read does not affect the others", () => {
    const reading = readEvents(7, { ...event, Resources: "vmss_3" }, event);
    expect(reading).toMatchObject({ notices: [{ eventId: event.EventId }] });
    expect(reading.kind === "Read" && reading.problems).toHaveLength(2);
  });
});

describe("every parser", () => {
  const samples = [
    '{"action":"terminate","time":"2017-09-18T08:22:00Z"}',
    '{"noticeTime":"2020-10-27T08:22:00Z"}',
    '[{"NotBefore":"21 Jan 2019 09:00:43 GMT","EventId":"instance-event-0d59","State":"active"}]',
    "TRUE",
    "TERMINATE_ON_HOST_MAINTENANCE",
    "Terminated",
    '{"DocumentIncarnation":2,"Events":[{"EventId":"602d","EventType":"Preempt","Resources":["aks-spot-123-vmss_3"],"EventStatus":"Scheduled","NotBefore":"Mon, 11 Apr 2026 22:26:58 GMT"}]}',
  ];
  const parsers: readonly (readonly [string, (text: string) => NoticeReading])[] = [
    ["spot/instance-action", (text) => readInstanceAction({ text, at })],
    ["rebalance", (text) => readRebalance({ text, at })],
    ["scheduled events", (text) => readScheduledEvents({ text, at })],
    ["lifecycle state", (text) => readTargetLifecycleState({ text, at })],
    ["preempted", (text) => readPreempted({ text, at }, seconds(30))],
    ["maintenance-event", (text) => readMaintenanceEvent({ text, at })],
    ["Azure's events", (text) => readAzureEvents({ text, at, ownName })],
  ];

  it.each(parsers)(
    "of %s accepts any text without a throw, and its problems are short",
    (_, parse) => {
      fc.assert(
        fc.property(foreignText(samples), (text) => {
          const reading = parse(text);
          if (reading.kind === "Unreadable") {
            expect(reading.problem.length).toBeLessThan(250);
            expect(reading.problem).toMatch(/^[\x20-\x7e…]*$/);
            return;
          }
          for (const problem of reading.problems) expect(problem.length).toBeLessThan(250);
          for (const notice of reading.notices) {
            expect(notice.cause).toMatch(/^[A-Z][A-Za-z]+$/);
            expect(notice.eventId).toMatch(/^[A-Za-z0-9:._-]{1,120}$/);
            expect(Number.isFinite(notice.deadlineAt ?? 0)).toBe(true);
            expect(Number.isFinite(notice.noticedAt)).toBe(true);
          }
        }),
        { seed: 20_261_120, numRuns: 1500 },
      );
    },
  );
});
