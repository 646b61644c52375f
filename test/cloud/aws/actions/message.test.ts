import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { DetachRunner } from "../../../../src/cloud/aws/actions/detach-instance.ts";
import { LambdaRunner } from "../../../../src/cloud/aws/actions/lambda-client.ts";
import { SnsRunner } from "../../../../src/cloud/aws/actions/sns-client.ts";
import { AutoScaling } from "../../../../src/cloud/aws/auto-scaling.ts";
import { aTask } from "../../../contract/action-runner.contract.ts";
import { AutoScalingServer } from "../../../support/auto-scaling-server.ts";
import { useAwsEnvironment } from "../../../support/aws-environment.ts";
import { LambdaServer } from "../../../support/lambda-server.ts";
import { SnsServer } from "../../../support/sns-server.ts";

const never = new AbortController().signal;
useAwsEnvironment();

describe("a message to SNS", () => {
  const topicArn = "arn:aws:sns:us-east-1:123456789012:spot";
  let sns: SnsServer;

  beforeEach(async () => {
    sns = await new SnsServer().start();
    process.env.AWS_ENDPOINT_URL_SNS = sns.url;
    sns.topics.add(topicArn);
  });
  afterEach(() => sns.stop());

  const how = { kind: "sns", topicArn, subject: "n1 Drained", message: "cordon 0.1 s" } as const;
  const publish = (over: Partial<typeof how> | { message?: string; subject?: string } = {}) =>
    new SnsRunner().apply({ ...aTask({ ...how, ...over }), undo: undefined }, never);

  it("contains subject and text, and returns its ID", async () => {
    expect((await publish()).reference).toBe("message-1");
    const { subject, message } = how;
    expect(sns.published).toEqual([{ topic: topicArn, subject, message }]);
  });

  it("goes to the topic's own region in any partition, not to the environment's", async () => {
    const others = ["aws-cn:sns:cn-north-1", "aws-iso-b:sns:us-isob-east-1"];
    const arns = [topicArn, ...others.map((place) => `arn:${place}:123456789012:spot`)];
    for (const arn of arns) {
      sns.topics.add(arn);
      await publish({ topicArn: arn as typeof topicArn });
    }
    expect(sns.published.map(({ topic }) => topic)).toEqual(arns);
    expect(sns.regions).toEqual(["us-east-1", "cn-north-1", "us-isob-east-1"]);
  });

  it("has no subject if that is empty", async () => {
    await publish({ subject: "" });
    expect(sns.published[0]?.subject).toBeNull();
  });

  it.each(["x", "ü", "𝒳"])("is truncated if its %s exceed the limit of SNS", async (sign) => {
    await publish({ message: sign.repeat(300_000) });
    const [{ message = "" } = {}] = sns.published;
    expect(Buffer.byteLength(message)).toBeLessThanOrEqual(256 * 1024);
    expect(Buffer.byteLength(message)).toBeGreaterThan(256 * 1024 - 8);
    expect(message.slice(0, -1).replaceAll(sign, "")).toBe("");
  });

  it("says how many lines are omitted if there are too many", async () => {
    await publish({
      message: `n1 leaves${"\n12:00 a pod left".repeat(20_000)}\npods: 20000 in all`,
    });
    const [{ message = "" } = {}] = sns.published;
    expect(Buffer.byteLength(message)).toBeLessThanOrEqual(256 * 1024);
    expect(message).toMatch(/^n1 leaves\n[\s\S]*\n… and \d+ more lines\npods: 20000 in all$/);
  });

  it("keeps its order in a FIFO topic, which drops a duplicate", async () => {
    const fifo = `${topicArn}.fifo`;
    sns.topics.add(fifo);
    const task = { ...aTask({ ...how, topicArn: fifo }), undo: undefined };
    const runner = new SnsRunner();
    await runner.apply(task, never);
    await runner.apply(task, never);
    await runner.apply({ ...task, key: `${task.key}-later`, name: "later" }, never);
    expect(sns.published.map(({ group }) => group)).toEqual([task.departure, task.departure]);
  });

  it("reaches a FIFO topic if the departure's name is too long for a message group", async () => {
    const fifo = `${topicArn}.fifo`;
    sns.topics.add(fifo);
    for (const uid of ["2b9e5d3c", "99999999"]) {
      const departure = `${"n".repeat(240)}-${uid}`;
      const task = { ...aTask({ ...how, topicArn: fifo }), departure, key: uid, undo: undefined };
      await new SnsRunner().apply(task, never);
    }
    expect(new Set(sns.published.map(({ group }) => group)).size).toBe(2);
  });

  const unknown = { topicArn: "arn:aws:sns:us-east-1:123456789012:none" };

  it("to a topic that does not exist is rejected, as the check reports beforehand", async () => {
    const code = "ACTION_TARGET_UNKNOWN";
    await expect(
      new SnsRunner().apply({ ...aTask({ ...how, ...unknown }), undo: undefined }, never),
    ).rejects.toMatchObject({ code, retryable: false });
    expect(await new SnsRunner().check({ ...how, ...unknown }, never)).toMatchObject({
      ...{ code, field: "sns.topicArn" },
      wanted: "a topic that exists",
    });
  });

  it("needs no right to read the topic", async () => {
    sns.denied.add("GetTopicAttributes");
    expect(await new SnsRunner().check(how, never)).toBeUndefined();
    await publish();
    expect(sns.published).toHaveLength(1);
  });

  it("cannot be checked while SNS does not respond", async () => {
    sns.fault = "Unreachable";
    await expect(new SnsRunner().check(how, never)).rejects.toMatchObject({
      code: "CLOUD_UNREACHABLE",
    });
  });
});

describe("the invocation of a function", () => {
  let lambda: LambdaServer;

  beforeEach(async () => {
    lambda = await new LambdaServer().start();
    process.env.AWS_ENDPOINT_URL_LAMBDA = lambda.url;
  });
  afterEach(() => lambda.stop());

  const arn = "arn:aws:lambda:us-east-1:123456789012:function:responder:live";

  it.each(["responder", arn])("sends the payload to %s", async (functionName) => {
    lambda.functions.add(functionName);
    const how = { kind: "lambda", functionName, payload: '{"node":"n1"}' } as const;
    await new LambdaRunner().apply({ ...aTask(how), undo: undefined }, never);
    expect(lambda.invoked).toEqual([{ name: functionName, payload: { node: "n1" } }]);
  });

  it("that does not exist is rejected, as the check reports beforehand", async () => {
    const how = { kind: "lambda", functionName: "none" } as const;
    const code = "ACTION_TARGET_UNKNOWN";
    await expect(
      new LambdaRunner().apply({ ...aTask(how), undo: undefined }, never),
    ).rejects.toMatchObject({ code, retryable: false });
    expect(await new LambdaRunner().check(how, never)).toMatchObject({
      ...{ code, field: "lambda.functionName" },
    });
  });

  it("is not carried out by a check", async () => {
    lambda.functions.add("responder");
    const how = { kind: "lambda", functionName: "responder" } as const;
    expect(await new LambdaRunner().check(how, never)).toBeUndefined();
    expect(lambda.invoked).toEqual([]);
  });

  it("may have a payload template that is JSON only once it is rendered", async () => {
    lambda.functions.add("responder");
    const payload = '{"id": "{{instanceId}}"{{#deadline}}, "by": "{{deadline}}"{{/deadline}}}';
    const how = { kind: "lambda", functionName: "responder", payload } as const;
    expect(await new LambdaRunner().check(how, never)).toBeUndefined();
  });
});

describe("the detachment of an instance", () => {
  const machine = "i-0123456789abcdef0";
  let groups: AutoScalingServer;

  beforeEach(async () => {
    groups = await new AutoScalingServer().start();
    process.env.AWS_ENDPOINT_URL_AUTO_SCALING = groups.url;
  });
  afterEach(() => groups.stop());

  function detach(decrementDesiredCapacity: boolean) {
    const runner = new DetachRunner((region) => new AutoScaling({ region }));
    const task = aTask({ kind: "detach", decrementDesiredCapacity });
    return runner.apply({ ...task, undo: undefined }, never);
  }

  it.each([
    [false, "replaced", "detached from the group spot, which replaces it"],
    [true, "smaller", "detached from the group spot, which is smaller"],
  ])("succeeds with decrementDesiredCapacity %s", async (decrements, how, detail) => {
    groups.members.set(machine, "spot");
    expect(await detach(decrements)).toEqual({ detail });
    expect(groups.told).toEqual([`DETACH ${machine} ${how}`]);
  });

  it("names the remedy if the group is at its minimum size", async () => {
    groups.members.set(machine, "spot");
    groups.atMinimum.add("spot");
    await expect(detach(true)).rejects.toMatchObject({
      ...{ code: "CLOUD_REFUSED", retryable: false },
      message: expect.stringContaining("detach without decrementDesiredCapacity"),
    });
    expect(groups.told).toEqual([]);
  });

  it("does nothing for an instance in no group", async () => {
    expect(await detach(false)).toEqual({ detail: "in no Auto Scaling group" });
    expect(groups.told).toEqual([]);
  });

  it("names the missing permission", async () => {
    groups.members.set(machine, "spot");
    groups.denied.add("DetachInstances");
    await expect(detach(false)).rejects.toMatchObject({
      code: "CLOUD_RIGHT_MISSING",
      message: expect.stringContaining("autoscaling:DetachInstances"),
    });
  });
});
