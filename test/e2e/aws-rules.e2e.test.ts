/**
 * The event patterns of `setup aws --queue`, as rules of moto's EventBridge: which events reach the
 * queue. `test/deploy/aws-iac.test.ts` holds the Terraform module to the same patterns.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { healthEvents, machineEvents } from "../../src/cloud/aws/setup/setup-documents.ts";
import { Moto } from "../support/moto.ts";

let moto: Moto;

beforeAll(async () => {
  moto = await Moto.start();
  const Targets = [{ Id: "queue", Arn: "arn:aws:sqs:eu-west-1:123456789012:notices" }];
  for (const [Name, EventPattern] of Object.entries({ machineEvents, healthEvents })) {
    await moto.events("PutRule", { Name, EventPattern });
    await moto.events("PutTargets", { Rule: Name, Targets });
  }
});

afterAll(() => moto?.stop());

describe("the rules of setup aws", () => {
  it.each([
    ["aws.ec2", "EC2 Spot Instance Interruption Warning", { "instance-id": "i-0abc" }, 1],
    ["aws.ec2", "EBS Volume Notification", { event: "createVolume" }, 0],
    ["aws.health", "AWS Health Event", { service: "EC2", eventTypeCategory: "scheduledChange" }, 1],
    ["aws.health", "AWS Health Event", { service: "RDS", eventTypeCategory: "scheduledChange" }, 0],
  ] as const)("send %s, %s (%j) to the queue: %i", async (Source, DetailType, detail, count) => {
    const before = (await moto.count()).shown;
    const Entries = [{ Source, DetailType, Detail: JSON.stringify(detail) }];
    await moto.events("PutEvents", { Entries });
    expect((await moto.count()).shown - before).toBe(count);
  });
});
