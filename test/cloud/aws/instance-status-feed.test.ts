import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ScheduledEvent } from "../../../src/cloud/aws/ec2-machine.ts";
import { InstanceStatusFeed } from "../../../src/cloud/aws/instance-feed.ts";
import {
  instant,
  type Millis,
  minus,
  minutes,
  plus,
  seconds,
} from "../../../src/core/time/time.ts";
import { LastcallError } from "../../../src/errors.ts";
import { eventLoopTurn } from "../../../src/runtime/real-clock.ts";
import { VirtualClock } from "../../../src/sim/time/virtual-clock.ts";
import { FakeEc2 } from "../../support/fake-ec2.ts";
import { QueueListener } from "../../support/queue-listener.ts";

const dawn = instant(Date.UTC(2026, 10, 20, 12));
const ours = "i-00000000000000001";
const theirs = "i-00000000000000002";

function event(fields: Partial<ScheduledEvent> = {}): ScheduledEvent {
  return {
    instance: ours,
    id: "instance-event-1",
    code: "instance-retirement",
    description: "degraded hardware",
    notBeforeAt: plus(dawn, minutes(10)),
    ...fields,
  };
}

describe("the feed of EC2's scheduled events", () => {
  let clock: VirtualClock;
  let ec2: FakeEc2;
  let cluster: QueueListener;
  let ending: AbortController;
  let running: Promise<void>;
  let machines: readonly string[];

  beforeEach(() => {
    clock = new VirtualClock({ startAt: dawn, settle: eventLoopTurn });
    ec2 = new FakeEc2();
    cluster = new QueueListener({ [ours]: "Taken" });
    machines = [`aws:///eu-west-1a/${ours}`];
    ending = new AbortController();
    running = Promise.resolve();
  });
  afterEach(async () => {
    ending.abort();
    await pass(seconds(1));
    await running;
  });

  function start(): void {
    const tools = { ec2, clock, rng: () => 0.5, pollMs: minutes(1) };
    const feed = new InstanceStatusFeed({ ...tools, machines: () => machines });
    running = feed.run(cluster, ending.signal);
  }

  function pass(span: Millis): Promise<void> {
    return clock.runUntil(plus(clock.now(), span));
  }

  /** The notices in short form: `+60 instance-event-1`, with `off` for a withdrawal. */
  function told(): readonly string[] {
    return cluster.words.map(({ notice: { noticedAt, eventId, withdrawn } }) => {
      return `+${(noticedAt - dawn) / 1000} ${eventId}${withdrawn ? " off" : ""}`;
    });
  }

  it("reports a pending event at each poll, with its start as the deadline", async () => {
    ec2.events = [event()];
    start();
    await pass(minutes(2));
    expect(told()).toEqual([
      "+0 instance-event-1",
      "+60 instance-event-1",
      "+120 instance-event-1",
    ]);
    expect(cluster.words[0]).toMatchObject({
      machine: ours,
      notice: { cause: "ScheduledMaintenance", deadlineAt: plus(dawn, minutes(10)) },
    });
    expect(ec2.calls).toHaveLength(3);
  });

  it("sends no request while there is no AWS node", async () => {
    machines = ["gce://p/z/n1"];
    start();
    await pass(minutes(5));
    expect(ec2.calls).toEqual([]);
  });

  it("ignores events of other clusters' machines, readable or not", async () => {
    ec2.events = [event({ instance: theirs }), event({ instance: theirs, id: undefined })];
    start();
    await pass(minutes(2));
    expect([cluster.words, cluster.troubles]).toEqual([[], []]);
  });

  it("loses no event to one that cannot be read, and reports that once", async () => {
    ec2.events = [event({ id: undefined }), event()];
    start();
    await pass(minutes(5));
    expect(cluster.words).toHaveLength(6);
    expect(cluster.codes()).toEqual(["NOTICE_UNREADABLE"]);
    expect(cluster.troubles).toHaveLength(1);
  });

  it("withdraws an event that is cancelled", async () => {
    ec2.events = [event()];
    start();
    await pass(minutes(2));
    ec2.events = [event({ description: "[Canceled] degraded hardware" })];
    await pass(minutes(1));
    expect(told().at(-1)).toBe("+180 instance-event-1 off");
  });

  it("withdraws an event that was postponed and then cancelled, by its first time", async () => {
    ec2.events = [event()];
    start();
    await pass(minutes(1));
    const notBeforeAt = plus(dawn, minutes(1440));
    cluster.deliveries = { [ours]: "TooEarly" };
    ec2.events = [event({ notBeforeAt })];
    await pass(minutes(1));
    ec2.events = [event({ notBeforeAt, description: "[Canceled] degraded hardware" })];
    await pass(minutes(1));
    expect(told().at(-1)).toBe("+180 instance-event-1 off");
    expect(cluster.words.at(-1)?.notice.deadlineAt).toBe(plus(dawn, minutes(10)));
  });

  it("does not withdraw a completed event, which has stopped the machine", async () => {
    ec2.events = [event()];
    start();
    await pass(minutes(1));
    ec2.events = [event({ description: "[Completed] degraded hardware" })];
    await pass(minutes(5));
    expect(told()).toEqual(["+0 instance-event-1", "+60 instance-event-1"]);
  });

  it("withdraws an event that a previous leader may have reported", async () => {
    ec2.events = [event({ description: "[Canceled] degraded hardware" })];
    start();
    await pass(minutes(1));
    expect(told()[0]).toBe("+0 instance-event-1 off");
  });

  it.each([
    ["a day ago", minus(dawn, minutes(1440))],
    ["for tomorrow", plus(dawn, minutes(1440))],
  ])("ignores a cancellation %s", async (_, notBeforeAt) => {
    ec2.events = [event({ description: "[Canceled] degraded hardware", notBeforeAt })];
    start();
    await pass(minutes(5));
    expect(told()).toEqual([]);
  });

  it("withdraws an event that two polls in a row do not find", async () => {
    ec2.events = [event()];
    start();
    await pass(minutes(1));
    ec2.events = [];
    await pass(minutes(1));
    expect(told().at(-1)).toBe("+60 instance-event-1");
    await pass(minutes(5));
    expect(told().slice(-2)).toEqual(["+60 instance-event-1", "+180 instance-event-1 off"]);
  });

  it("does not withdraw an event that has started, since it stops the machine", async () => {
    ec2.events = [event({ notBeforeAt: plus(dawn, minutes(2)) })];
    start();
    await pass(minutes(1));
    ec2.events = [];
    await pass(minutes(10));
    expect(told().filter((one) => one.endsWith("off"))).toEqual([]);
  });

  it.each([
    ["can no longer be read", event({ notBeforeAt: undefined })],
    ["no longer has an id", event({ id: undefined })],
    ["no longer has an id or an instance", event({ id: undefined, instance: undefined })],
  ])("does not withdraw an event that is still listed and %s", async (_, listed) => {
    ec2.events = [event()];
    start();
    await pass(minutes(1));
    ec2.events = [listed];
    await pass(minutes(5));
    expect(told()).toEqual(["+0 instance-event-1", "+60 instance-event-1"]);
  });

  it("does not withdraw an event because its node belongs to no policy any more", async () => {
    machines = [`aws:///eu-west-1a/${ours}`, `aws:///eu-west-1a/${theirs}`];
    ec2.events = [event()];
    start();
    await pass(minutes(1));
    machines = [`aws:///eu-west-1a/${theirs}`];
    await pass(minutes(5));
    expect(told()).toEqual(["+0 instance-event-1", "+60 instance-event-1"]);
    ec2.events = [];
    await pass(minutes(2));
    expect(told().at(-1)).toBe("+480 instance-event-1 off");
  });

  it("counts only consecutive polls that do not find an event", async () => {
    ec2.events = [event()];
    start();
    await pass(seconds(0));
    for (const events of [[], [event({ notBeforeAt: undefined })], [], [event()]]) {
      ec2.events = events;
      await pass(minutes(1));
    }
    expect(told()).toEqual(["+0 instance-event-1", "+240 instance-event-1"]);
  });

  it("does not withdraw an event because a list failed", async () => {
    ec2.events = [event()];
    start();
    await pass(minutes(1));
    ec2.fault = new LastcallError("CLOUD_UNREACHABLE", "EC2 is away");
    await pass(minutes(8));
    expect(told().filter((one) => one.endsWith("off"))).toEqual([]);
    expect(cluster.codes()).toEqual(["CLOUD_UNREACHABLE"]);
  });

  it("backs off from a service that fails, and resumes within six minutes", async () => {
    ec2.fault = new LastcallError("CLOUD_RIGHT_MISSING", "no right");
    start();
    await pass(minutes(60));
    const asked = ec2.calls.length;
    expect(asked).toBeGreaterThan(12);
    expect(asked).toBeLessThan(17);
    ec2.fault = undefined;
    ec2.events = [event({ notBeforeAt: plus(clock.now(), minutes(10)) })];
    await pass(seconds(331));
    expect(cluster.words.length).toBeGreaterThan(0);
  });

  it("repeats a notice that the cluster could not write", async () => {
    cluster.fault = new LastcallError("API_UNREACHABLE", "the API server is away");
    ec2.events = [event()];
    start();
    await pass(minutes(2));
    expect(told()).toEqual([]);
    cluster.fault = undefined;
    await pass(minutes(1));
    expect(told()).toEqual(["+180 instance-event-1"]);
  });
});
