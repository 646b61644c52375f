/**
 * The CloudFormation template of `deploy/aws`, checked by AWS's own linter and created in moto: an
 * event goes through its rules into its queue.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { lintTemplate, Moto } from "../support/moto.ts";

const template = join(import.meta.dirname, "../../deploy/aws/cloudformation/lastcall.yaml");
let moto: Moto;

beforeAll(async () => {
  moto = await Moto.start();
});

afterAll(() => moto?.stop());

describe("the CloudFormation template", () => {
  it("passes AWS's linter", async () => {
    expect(await lintTemplate(template)).toBe("");
  });

  it("creates the queue, the rules, the topic and the role", async () => {
    await moto.query("cloudformation", {
      ...{ Action: "CreateStack", StackName: "lastcall" },
      TemplateBody: readFileSync(template, "utf8"),
      "Parameters.member.1.ParameterKey": "ClusterName",
      "Parameters.member.1.ParameterValue": "main",
      "Parameters.member.2.ParameterKey": "Associate",
      "Parameters.member.2.ParameterValue": "false",
    });
    const asked = { Action: "DescribeStackResources", StackName: "lastcall" };
    const resources = await moto.query("cloudformation", asked);
    // moto does not create the queue's policy.
    const types = [...resources.matchAll(/<ResourceType>([^<]+)</g)].map(([, type]) => type);
    expect(types.toSorted()).toEqual([
      "AWS::Events::Rule",
      "AWS::Events::Rule",
      "AWS::IAM::Role",
      "AWS::SNS::Topic",
      "AWS::SQS::Queue",
    ]);
  });

  it.each([
    ["aws.ec2", "EC2 Spot Instance Interruption Warning", { "instance-id": "i-0abc" }, 1],
    ["aws.ec2", "EBS Volume Notification", { event: "createVolume" }, 0],
    ["aws.health", "AWS Health Event", { service: "EC2", eventTypeCategory: "scheduledChange" }, 1],
    ["aws.health", "AWS Health Event", { service: "RDS", eventTypeCategory: "scheduledChange" }, 0],
  ] as const)("sends %s, %s (%j) to the queue: %i", async (Source, DetailType, detail, count) => {
    moto.queueUrl = `${moto.url}/123456789012/lastcall`;
    const before = (await moto.count()).shown;
    await moto.putEvent({ Source, DetailType, Detail: JSON.stringify(detail) });
    expect((await moto.count()).shown - before).toBe(count);
  });
});
