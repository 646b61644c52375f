import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { handler } from "../../../src/cli/lambda-main.ts";
import {
  formatInstant,
  hours,
  instant,
  millis,
  minutes,
  plus,
} from "../../../src/core/time/time.ts";
import { useAwsEnvironment } from "../../support/aws-environment.ts";
import { NetworkServer, type ServedInstance } from "../../support/network-server.ts";
import {
  healthEvent,
  rebalance,
  spotWarning,
  stateChange,
  terminateAction,
} from "../../support/queue-body.ts";

const quarantine = { replaceSecurityGroups: { groupIds: ["sg-0abc"] } };
const days = (count: number) => hours(24 * count);
useAwsEnvironment();

describe("the Lambda responder", () => {
  let ec2: NetworkServer;
  let instance: ServedInstance;
  const logged: string[] = [];

  beforeEach(async () => {
    ec2 = await new NetworkServer().start();
    process.env.AWS_ENDPOINT_URL_EC2 = ec2.url;
    process.env.LASTCALL_ACTIONS = JSON.stringify([{ name: "q", at: "AtNotice", ...quarantine }]);
    for (const id of ["sg-0abc", "sg-nodes"]) ec2.securityGroups.set(id, "vpc-a");
    instance = ec2.addInstance(1);
    ec2.addInterface(instance);
    logged.splice(0);
    vi.resetModules();
    vi.spyOn(console, "error").mockImplementation((line) => logged.push(String(line)));
  });
  afterEach(async () => {
    vi.restoreAllMocks();
    await ec2.stop();
  });

  const isQuarantined = () => ec2.interfaces.some(({ groups }) => groups.includes("sg-0abc"));

  /** The time of an event, in whole seconds as EventBridge writes it; negative: ago. */
  const timeIn = (fromNowMs: number) =>
    `${formatInstant(plus(instant(Date.now()), millis(fromNowMs))).slice(0, 19)}Z`;

  const about = (agoMs: number) => ({ instanceId: instance.id, time: timeIn(-agoMs) });

  const scheduled = (startsInMs: number, more: object = {}, status = "PENDING") =>
    healthEvent(about(2000), {
      entities: [{ entityValue: instance.id, status }],
      startTime: new Date(Date.now() + startsInMs).toUTCString(),
      more,
    });

  const invoke = async (event: unknown) => {
    const cold = (await import("../../../src/cli/lambda-main.ts")) as { handler: typeof handler };
    return cold.handler(event);
  };

  it.each([
    ["a canceled change", () => scheduled(hours(1), { statusCode: "closed" }), /canceled or over/],
    ["a resolved change", () => scheduled(hours(1), {}, "RESOLVED"), /canceled or over/],
    [
      "a change in 13 days",
      () => scheduled(days(13)),
      /is due at \S+Z, too far ahead: invoke the function again from \S+Z/,
    ],
    ["a recommendation of 3 days ago", () => rebalance(about(days(3))), /is from \S+Z, too long/],
    [
      "a stop of 5 hours ago, after which the machine was started again",
      () => stateChange(about(hours(5)), "stopping"),
      /NodeShutdown .* is from \S+Z, too long/,
    ],
    [
      "an interruption that was due 8 minutes ago",
      () => spotWarning(about(minutes(10))),
      /SpotInterruption .* was due at \S+Z, too long/,
    ],
    ["a hook of 3 days ago", () => terminateAction(about(days(3))), /LifecycleHook .* too long/],
  ])("changes nothing because of %s, and says why", async (_, event, why) => {
    const { actions, summary, ...others } = await invoke(event());
    expect(isQuarantined()).toBe(false);
    expect({ actions, others }).toEqual({ actions: [], others: {} });
    expect(summary).toMatch(/^No machine leaves because of this event: /);
    expect(summary).toContain(instance.id);
    expect(summary).toMatch(why);
    expect(logged.join()).toMatch(/"event":"notice-dropped"/);
  });

  it.each([
    ["maintenance in an hour", () => scheduled(hours(1)), "Done"],
    ["a recommendation of half an hour ago", () => rebalance(about(minutes(30))), "Done"],
    ["a hook of five hours ago", () => terminateAction(about(hours(5))), "Done"],
    // It only announces that the deadline has passed.
    ["an interruption that was due a minute ago", () => spotWarning(about(minutes(3))), "Failed"],
  ])("acts on %s", async (_, event, state) => {
    const { summary, actions } = await invoke(event());
    expect(summary).toContain(`${instance.dnsName} leaves`);
    expect(actions).toMatchObject([{ state }]);
  });

  it("acts on a change in 13 days if a caller names the machine and its deadline", async () => {
    const deadline = timeIn(days(13));
    await invoke({ instanceId: instance.id, node: "n1", cause: "ScheduledMaintenance", deadline });
    expect(isQuarantined()).toBe(true);
  });

  it.each([
    ["the records of a queue", (event: object) => ({ body: JSON.stringify(event) })],
    ["records whose body was parsed", (body: object) => ({ messageId: "m1", body })],
    ["events, by an input template", (event: object) => event],
    ["texts, by an input template", (event: object) => JSON.stringify(event)],
    ["what a caller sends itself", () => ({ instanceId: instance.id })],
  ])("acts on a list of %s, as a pipe of EventBridge sends it", async (_, record) => {
    const { actions, others } = await invoke([record(rebalance(about(2000)))]);
    expect(others).toBeUndefined();
    expect(actions).toMatchObject([{ state: "Done" }]);
    expect(isQuarantined()).toBe(true);
  });

  it("acts on the one machine of a list that can be read, and logs what cannot", async () => {
    const named = { instanceId: instance.id };
    const { actions } = await invoke([{ instanceId: "my-machine" }, {}, named]);
    expect(actions).toMatchObject([{ state: "Done" }]);
    expect(logged.join()).toMatch(/another message of the batch cannot be read: .*my-machine/);
  });

  it.each([
    ["empty", []],
    ["without anything to read", [{}]],
  ])("rejects a list that is %s", async (_, list) => {
    await expect(invoke(list)).rejects.toThrow(/^Cannot read the invocation/);
  });

  const inBatch = (...events: readonly object[]) => ({
    Records: events.map((event) => ({ body: JSON.stringify(event) })),
  });

  it("acts on the one event of a batch that counts, and logs the other", async () => {
    const batch = inBatch(rebalance(about(days(3))), rebalance(about(2000)));
    const { actions, others } = await invoke(batch);
    expect(others).toBeUndefined();
    expect(actions).toMatchObject([{ state: "Done" }]);
    expect(logged.filter((line) => line.includes("notice-dropped"))).toHaveLength(1);
  });

  it("changes nothing because of an event that the same batch cancels", async () => {
    const canceled = scheduled(hours(1), { statusCode: "closed" });
    const { summary } = await invoke(inBatch(scheduled(hours(1)), canceled));
    expect(isQuarantined()).toBe(false);
    expect(summary).toMatch(/is canceled or over, 1 more in the log\.$/);
  });

  it("counts a message with a made-up time from when it was sent to the queue", async () => {
    const body = JSON.stringify({ ...rebalance(about(0)), time: "1970-01-01T00:00:00Z" });
    const sent = (agoMs: number) => ({
      Records: [{ body, attributes: { SentTimestamp: String(Date.now() - agoMs) } }],
    });
    expect((await invoke(sent(days(3)))).summary).toContain("too long ago");
    expect(isQuarantined()).toBe(false);
    expect((await invoke(sent(minutes(1)))).actions).toMatchObject([{ state: "Done" }]);
  });
});
