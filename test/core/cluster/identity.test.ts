import { describe, expect, it } from "vitest";
import { isKnownProviderId, parseProviderId } from "../../../src/core/cluster/node.ts";

const vm = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/vm-1";
const ec2 = { cloud: "aws", instanceId: "i-0123456789abcdef0" };

describe("the machine of a providerID", () => {
  it.each([
    ["gce://p/europe-west1-b/n-1", { cloud: "gcp", project: "p", zone: "europe-west1-b" }],
    ["aws:///eu-west-1a/i-0123456789abcdef0", ec2],
    // The form that a cloud provider without a configured zone writes.
    ["aws:////i-0123456789abcdef0", ec2],
    [`azure://${vm}`, { cloud: "azure", resourceId: vm }],
  ])("is parsed from %s", (providerID, machine) => {
    expect(parseProviderId(providerID)).toMatchObject(machine);
    expect(isKnownProviderId(providerID)).toBe(true);
  });

  it.each([
    "",
    "kind://docker/kind/node-1",
    "gce://p/n-1",
    "aws:///eu-west-1a/fargate-ip-10-0-0-1",
    "aws:///eu-west-1a/eu-west-1b/i-0123456789abcdef0",
    "i-0123456789abcdef0",
    "azure:///subscriptions/s",
    // What would lead to another path of the cloud's API.
    "gce://p/zone/n-1?x=",
    "gce://p/../n-1",
    "gce://p/zone/n%2f..",
    `azure:///subscriptions/../${vm}`,
    `azure://${vm}#`,
  ])("is unknown for %j", (providerID) => {
    expect(parseProviderId(providerID)).toBeUndefined();
    expect(isKnownProviderId(providerID)).toBe(false);
  });
});
