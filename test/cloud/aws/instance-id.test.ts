import { describe, expect, it } from "vitest";
import { findInstanceRef } from "../../../src/cloud/aws/ec2-machine.ts";

const id = "i-0123456789abcdef0";

describe("the instance of a providerID", () => {
  it.each([
    ["eu-west-1a", "eu-west-1"],
    ["us-gov-west-1b", "us-gov-west-1"],
    ["us-isob-east-1a", "us-isob-east-1"],
    ["ap-southeast-2c", "ap-southeast-2"],
    ["us-west-2-lax-1a", "us-west-2"],
    ["us-east-1-wl1-bos-wlz-1", "us-east-1"],
    ["", undefined],
    ["nonsense", undefined],
  ])("in the zone %j is in the region %s", (zone, region) => {
    expect(findInstanceRef(`aws:///${zone}/${id}`)).toEqual({ instanceId: id, region });
  });

  it.each([
    `aws:///${id}`,
    `aws://eu-west-1a/${id}`,
    "aws:///eu-west-1a/fargate-ip-10-0-0-1",
    `gce:///eu-west-1a/${id}`,
    `aws:///eu-west-1a/${id}/x`,
    "",
  ])("is not found in %j", (providerID) => {
    expect(findInstanceRef(providerID)).toBeUndefined();
  });
});
