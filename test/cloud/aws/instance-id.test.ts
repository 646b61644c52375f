import { describe, expect, it } from "vitest";
import {
  findInstanceRef,
  instanceOf,
  namesOf,
  regionNameOf,
} from "../../../src/cloud/aws/ec2-machine.ts";
import { anothersMachine } from "../../../src/core/cluster/machine-name.ts";

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

describe("the names that EC2 gives to an instance", () => {
  const state = "running";
  const instance = { instanceId: id, state, launchedAt: undefined, nodePool: undefined };
  it.each([
    [{ dnsName: "ip-10-0-1-2.ec2.internal", address: "10.0.1.2" }, "ip-10-0-1-2"],
    // In a subnet that names instances by their id.
    [{ dnsName: `${id}.ec2.internal`, address: "10.0.1.2" }, "ip-10-0-1-2.shop.internal"],
    [{ dnsName: `${id}.ec2.internal` }, id],
    [{ address: "10.0.1.2" }, "ip-10-0-1-2.ec2.internal"],
  ])("%j: include that of its Node, %s", (network, name) => {
    expect(anothersMachine({ name }, namesOf({ ...instance, ...network }))).toBeUndefined();
    const names = namesOf({ ...instance, dnsName: "ip-10-0-9-9.ec2.internal" });
    if (name !== id) expect(anothersMachine({ name }, names)).toBeDefined();
  });

  it("are unknown once it has no network", () => {
    expect(namesOf({ ...instance, state: "terminated" })).toBeUndefined();
  });
});

describe("the instance of an action's target", () => {
  const regions = { zone: "us-east-1", told: "eu-west-1" };

  it.each([
    ["the zone's, if the providerID has one", `aws:///us-east-1a/${id}`, regions.zone],
    ["the named one, if the providerID has no zone", `aws:////${id}`, regions.told],
    ["the named one, if there is no providerID", undefined, regions.told],
  ])("is in the region %s", (_, providerID, region) => {
    const addresses = async () => ({ node: [], pods: [] });
    const known = { node: "n1", nodeUid: "", instanceId: id, region: regions.told };
    const target = { ...known, providerID, addresses };
    expect(instanceOf({ target })).toEqual({ instanceId: id, region });
  });
});

describe("the name of a region", () => {
  it.each(["eu-west-1", "us-gov-west-1", "us-isob-east-1", "eusc-de-east-1", "ap-southeast-5"])(
    "may be %s",
    (name) => {
      expect(regionNameOf(name)).toBe(name);
    },
  );

  it.each(["", "emea", "global", "eu-west-1a", "us-east-1.example.com/", 7, undefined])(
    "is not %j",
    (name) => {
      expect(regionNameOf(name)).toBeUndefined();
    },
  );
});
