import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type MessageReading,
  readQueueMessage,
} from "../../../../src/cloud/aws/queue/queue-message.ts";
import type { LifecycleHook } from "../../../../src/core/notice/instance-notice.ts";
import { instant } from "../../../../src/core/time/time.ts";
import { foreignText } from "../../../support/foreign-text.ts";
import {
  directHook,
  healthEvent,
  inSns,
  launchAction,
  rebalance,
  reservationWarning,
  spotWarning,
  stateChange,
  terminateAction,
  testNotification,
} from "../../../support/queue-body.ts";

/** The message's arrival in the queue, three seconds after the event. */
const at = instant(Date.UTC(2026, 10, 20, 12, 0, 3));
const eventAt = Date.UTC(2026, 10, 20, 12);
const id = "0a1b2c3d-1111-2222-3333-444455556666";
const about = { instanceId: "i-0123456789abcdef0", time: "2026-11-20T12:00:00Z", id };

function read(body: unknown): MessageReading {
  return readQueueMessage({ text: JSON.stringify(body), at });
}

function saidBy(reading: MessageReading): readonly string[] {
  switch (reading.kind) {
    case "Read":
      return reading.problems;
    case "Launch":
      return [];
    case "Ignored":
      return [reading.what];
    case "Unreadable":
      return [reading.problem];
  }
}

function namesIn(hook: LifecycleHook | undefined): readonly string[] {
  return hook === undefined ? [] : [hook.group, hook.name, hook.token ?? "", hook.machine];
}

/** The only notice of a message, or its reading if it has none or several. */
function only(body: unknown): unknown {
  const reading = read(body);
  return reading.kind === "Read" && reading.notices.length === 1 ? reading.notices[0] : reading;
}

describe("a message in the queue", () => {
  it("sets the deadline two minutes after a Spot warning's event, however late it arrives", () => {
    expect(only(spotWarning(about))).toEqual({
      machine: "i-0123456789abcdef0",
      region: "us-east-2",
      notice: {
        cause: "SpotInterruption",
        deadlineAt: eventAt + 120_000,
        noticedAt: eventAt,
        source: "aws/queue/spot-interruption",
        eventId: id,
      },
    });
  });

  it.each([
    ["stop", 120_000],
    ["hibernate", 0],
    ["suspend", 120_000],
  ])("with the action %s has its deadline %i ms after the event", (action, ms) => {
    const notice = { cause: "SpotInterruption", deadlineAt: eventAt + ms };
    expect(only(spotWarning(about, action))).toMatchObject({ notice });
  });

  it.each([
    ["no time", ""],
    ["an invalid time", "presently"],
    ["a time after it was sent", "2026-11-20T13:00:00Z"],
    ["the time of a sample", "1970-01-01T00:00:00Z"],
    ["a time longer ago than a queue keeps messages", "2026-10-20T12:00:00Z"],
  ])("counts two minutes from its arrival in the queue if it names %s", (_, time) => {
    expect(only(spotWarning({ ...about, time }))).toMatchObject({
      notice: { deadlineAt: at + 120_000 },
    });
  });

  it.each([
    ["a day of delivery attempts by EventBridge", { time: "2026-11-19T12:30:00Z" }, {}],
    ["a redrive after days in a dead-letter queue", { time: "2026-11-06T12:00:00Z" }, {}],
    ["a replay from an archive", { time: "2026-11-13T12:00:00Z" }, { "replay-name": "again" }],
  ])("counts from the event after %s", (_, told, more) => {
    const deadlineAt = Date.parse(told.time) + 120_000;
    expect(only({ ...spotWarning({ ...about, ...told }), ...more })).toMatchObject({
      notice: { deadlineAt },
    });
  });

  it("counts a group's wait from its arrival if it has the time of a sample", () => {
    const reading = read(terminateAction({ ...about, time: "2020-07-01T22:19:58Z" }));
    expect(reading).toMatchObject({ hook: { at }, notices: [{ notice: { noticedAt: at } }] });
  });

  it("has the deadline that a capacity reservation's interruption names", () => {
    expect(only(reservationWarning(about, "2026-11-20T12:01:30Z"))).toMatchObject({
      notice: { cause: "SpotInterruption", deadlineAt: eventAt + 90_000 },
    });
    expect(only(reservationWarning(about, ""))).toMatchObject({
      notice: { deadlineAt: eventAt + 120_000 },
    });
  });

  it.each(["", "nowhere", "us-east-1.example.com/", 7, undefined])(
    "names no region if its event's is %j",
    (region) => {
      expect(only({ ...spotWarning(about), region })).toHaveProperty("region", undefined);
    },
  );

  it("has no deadline for a rebalance recommendation", () => {
    const told = only(rebalance(about));
    expect(told).toMatchObject({ notice: { cause: "RebalanceRecommendation", eventId: id } });
    expect(told).not.toHaveProperty("notice.deadlineAt");
  });

  it.each([
    ["stopping", "NodeShutdown", undefined],
    ["shutting-down", "NodeShutdown", undefined],
    ["stopped", "Preempted", eventAt + 30_000],
    ["terminated", "Preempted", eventAt + 30_000],
  ])("with the state %s is a %s", (state, cause, deadlineAt) => {
    expect(only(stateChange(about, state))).toMatchObject({ notice: { cause } });
    const reading = only(stateChange(about, state)) as { notice: { deadlineAt?: number } };
    expect(reading.notice.deadlineAt).toBe(deadlineAt);
  });

  it.each(["pending", "running"])("with the state %s is ignored", (state) => {
    expect(read(stateChange(about, state)).kind).toBe("Ignored");
  });

  const byHook = {
    machine: about.instanceId,
    notice: { cause: "LifecycleHook", eventId: "87654321-4321-4321-4321-210987654321" },
  };

  const waiting = {
    machine: about.instanceId,
    group: "spot-asg",
    name: "drain",
    token: "87654321-4321-4321-4321-210987654321",
    at: eventAt,
  };

  it.each([
    ["EventBridge", terminateAction(about)],
    ["the group itself", directHook(about)],
    ["EventBridge and SNS", inSns(terminateAction(about))],
    ["the group and SNS", inSns(directHook(about))],
    ["the group, in a nested envelope", inSns({ Message: JSON.stringify(directHook(about)) })],
  ])("from %s announces the same termination hook", (_, body) => {
    expect(only(body)).toMatchObject(byHook);
    expect(only(body)).not.toHaveProperty("notice.deadlineAt");
    expect(read(body)).toMatchObject({ hook: { ...waiting, transition: "Terminating" } });
  });

  it.each([
    ["EventBridge", launchAction(about)],
    ["the group itself", directHook(about, "LAUNCHING")],
    ["EventBridge and SNS", inSns(launchAction(about))],
    ["the group and SNS", inSns(directHook(about, "LAUNCHING"))],
  ])("from %s announces a new machine that waits in a launch hook", (_, body) => {
    expect(read(body)).toEqual({ kind: "Launch", hook: { ...waiting, transition: "Launching" } });
  });

  it.each([
    ["group", "AutoScalingGroupName"],
    ["hook", "LifecycleHookName"],
    ["instance", "EC2InstanceId"],
  ])("about a launch is unreadable without its %s", (_, field) => {
    const body = { ...directHook(about, "LAUNCHING"), [field]: "" };
    expect(read(body)).toMatchObject({ kind: "Unreadable" });
  });

  it("announces a machine that terminates even if its hook cannot be completed", () => {
    const body = { ...directHook(about), LifecycleHookName: "x".repeat(256) };
    expect(only(body)).toMatchObject(byHook);
    expect(read(body)).toMatchObject({ hook: undefined });
  });

  it("about any other transition is unreadable", () => {
    expect(read(directHook(about, "REBOOTING"))).toMatchObject({
      kind: "Unreadable",
      problem: '"autoscaling:EC2_INSTANCE_REBOOTING" is not a transition that Lastcall acts on',
    });
  });

  it.each([
    ["a spot warning", spotWarning(about)],
    ["a rebalance recommendation", rebalance(about)],
    ["a state change", stateChange(about, "stopping")],
  ])("reads the same in an SNS envelope as without: %s", (_, body) => {
    expect(read(inSns(body))).toEqual(read(body));
  });

  const trial = "autoscaling:TEST_NOTIFICATION";

  it.each([
    ["to the queue", testNotification()],
    ["to SNS", inSns(testNotification())],
    ["with the name of a hook", { ...directHook(about), LifecycleTransition: trial }],
    ["through EventBridge", { ...terminateAction(about), detail: { LifecycleTransition: trial } }],
  ])("is ignored if it is a group's test notification, %s", (_, body) => {
    expect(read(body).kind).toBe("Ignored");
  });

  describe("from AWS Health", () => {
    const startTime = "Sat, 21 Nov 2026 15:10:09 GMT";
    const entities = [
      { entityValue: "i-0000000000000000a" },
      { entityValue: "i-0000000000000000b" },
    ];

    it("names every machine of a scheduled change, each with its start as the deadline", () => {
      const reading = read(healthEvent(about, { entities, startTime }));
      const notice = {
        cause: "ScheduledMaintenance",
        deadlineAt: Date.UTC(2026, 10, 21, 15, 10, 9),
        noticedAt: eventAt,
        source: "aws/queue/health",
        eventId: "retirement-0c1f7a3e",
      };
      expect(reading).toEqual({
        kind: "Read",
        notices: [
          { machine: "i-0000000000000000a", region: "us-east-2", notice },
          { machine: "i-0000000000000000b", region: "us-east-2", notice },
        ],
        problems: [],
      });
    });

    it("is about machines in the region that it names, not in that of its delivery", () => {
      const more = { eventRegion: "eu-west-1" };
      const reading = read(healthEvent(about, { entities, startTime, more }));
      const region = "eu-west-1";
      expect(reading).toMatchObject({ kind: "Read", notices: [{ region }, { region }] });
    });

    it.each(["aws", "aws-us-gov", "aws-cn"])("accepts a machine's ARN: %s", (partition) => {
      const arn = `arn:${partition}:ec2:us-east-1:123456789012:instance/i-0000000000000000a`;
      const reading = read(healthEvent(about, { entities: [{ entityValue: arn }], startTime }));
      expect(reading).toMatchObject({
        kind: "Read",
        notices: [{ machine: "i-0000000000000000a" }],
      });
    });

    it("withdraws the notice of a resolved machine, and of no other", () => {
      const [first, second] = entities;
      const states = [
        { ...first, status: "RESOLVED" },
        { ...second, status: "PENDING" },
      ];
      const reading = read(healthEvent(about, { entities: states, startTime }));
      const notices = reading.kind === "Read" ? reading.notices : [];
      expect(notices.map(({ notice }) => notice.withdrawn)).toEqual([true, undefined]);
    });

    it("loses no machine to an entity that is not a machine", () => {
      const mixed = [5, { entityValue: "vol-0123456789abcdef0" }, ...entities, {}, null];
      const reading = read(healthEvent(about, { entities: mixed, startTime }));
      expect(reading.kind === "Read" && reading.notices).toHaveLength(2);
      expect(reading.kind === "Read" && reading.problems).toHaveLength(3);
    });

    it.each([
      ["with its original time", startTime, Date.UTC(2026, 10, 21, 15, 10, 9), "closed"],
      ["without a time", "", undefined, "closed"],
      ["in capital letters", "", undefined, "CLOSED"],
    ])("withdraws the notice of every machine if it is closed, %s", (...row) => {
      const [, start, deadlineAt, statusCode] = row;
      const more = { statusCode };
      const reading = read(healthEvent(about, { entities, startTime: start, more }));
      const notices = entities.map(({ entityValue }) => ({
        machine: entityValue,
        region: "us-east-2",
        notice: {
          cause: "ScheduledMaintenance",
          deadlineAt,
          noticedAt: eventAt,
          source: "aws/queue/health",
          eventId: "retirement-0c1f7a3e",
          withdrawn: true,
        },
      }));
      expect(reading).toEqual({ kind: "Read", notices, problems: [] });
    });

    it.each([
      ["no time", undefined, []],
      ["an empty time", "", []],
      ["text that is not a time", "soon", ['"soon" is not a startTime']],
    ])("is acted on at once if it names %s: a notice fails open", (_, start, problems) => {
      const reading = read(healthEvent(about, { entities, startTime, more: { startTime: start } }));
      const notice = { cause: "ScheduledMaintenance", deadlineAt: undefined };
      const notices = entities.map(({ entityValue: machine }) => ({ machine, notice }));
      expect(reading).toMatchObject({ kind: "Read", notices, problems });
    });

    it.each([
      ["names no machine", { affectedEntities: [] }, "Unreadable"],
      ["is about another service", { service: "RDS" }, "Unreadable"],
      ["does not announce a change", { eventTypeCategory: "accountNotification" }, "Unreadable"],
    ])("is not acted on if it %s", (_, more, kind) => {
      expect(read(healthEvent(about, { entities, startTime, more })).kind).toBe(kind);
    });
  });

  it.each([
    ["not JSON", "<html></html>"],
    ["an empty text", ""],
    ["a list", "[]"],
    ["an event without a detail", JSON.stringify({ ...spotWarning(about), detail: null })],
    ["an event of another service", JSON.stringify({ ...spotWarning(about), source: "aws.s3" })],
    ["an unknown event", JSON.stringify({ ...spotWarning(about), "detail-type": "EC2 Dawn" })],
    [
      "an event without an instance",
      JSON.stringify(spotWarning({ ...about, instanceId: "mi-0123456789abcdef0" })),
    ],
    ["an unknown state", JSON.stringify(stateChange(about, "dreaming"))],
    [
      "a subscription confirmation of SNS",
      JSON.stringify({ ...inSns({}), Type: "SubscriptionConfirmation" }),
    ],
    ["an envelope nested too deeply", JSON.stringify(inSns(inSns(inSns(spotWarning(about)))))],
    ["a megabyte of spaces", " ".repeat(1_048_577)],
  ])("that is %s cannot be read", (_, text) => {
    expect(readQueueMessage({ text, at }).kind).toBe("Unreadable");
  });

  it("may be any text: it is read without a throw, and its problems are short", () => {
    const startTime = "Sat, 21 Nov 2026 15:10:09 GMT";
    const entities = [{ entityValue: "i-0123456789abcdef0" }];
    const samples = [
      spotWarning(about),
      reservationWarning(about, "2026-11-20T12:01:30Z"),
      rebalance(about),
      stateChange(about, "stopped"),
      terminateAction(about),
      directHook(about),
      launchAction(about),
      healthEvent(about, { entities, startTime }),
      inSns(spotWarning(about)),
    ].map((body) => JSON.stringify(body));
    fc.assert(
      fc.property(foreignText(samples), (text) => {
        const reading = readQueueMessage({ text, at });
        for (const sentence of saidBy(reading)) {
          expect(sentence.length).toBeLessThan(250);
          expect(sentence).toMatch(/^[\x20-\x7e…]*$/);
        }
        if (reading.kind === "Ignored" || reading.kind === "Unreadable") return;
        for (const name of namesIn(reading.hook)) expect(name.length).toBeLessThan(256);
        if (reading.kind === "Launch") return;
        expect(reading.notices.length).toBeGreaterThan(0);
        for (const { machine, notice } of reading.notices) {
          expect(machine).toMatch(/^i-[0-9a-f]+$/);
          expect(notice.cause).toMatch(/^[A-Z][A-Za-z]+$/);
          expect(notice.eventId).toMatch(/^[A-Za-z0-9:._-]{1,120}$/);
          expect(Number.isFinite(notice.deadlineAt ?? 0)).toBe(true);
          expect(Number.isFinite(notice.noticedAt)).toBe(true);
        }
      }),
      { seed: 20_261_122, numRuns: 4000 },
    );
  });
});
