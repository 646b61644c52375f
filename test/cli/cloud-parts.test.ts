import { describe, expect, it } from "vitest";
import { cloudParts } from "../../src/cli/assemble/cloud-parts.ts";
import type { CommandIo } from "../../src/cli/command-line/command-io.ts";
import type { Fleet } from "../../src/contracts/fleet.ts";
import { minutes, seconds } from "../../src/core/time/time.ts";

const io = { env: {}, fetch, rng: () => 0.5 } as unknown as CommandIo;
const fleet = {} as Fleet;
const plain = {
  sqsReceivers: 2,
  sqsUnknown: "Leave",
  sqsCompleteHooks: true,
  azureDeleteInstances: false,
} as const;
const aks =
  "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachineScaleSets/v/virtualMachines/0";

describe("what a controller has of the clouds", () => {
  it("asks for preemptions only where that is wanted", async () => {
    expect((await cloudParts(plain, io)).feedsFor(fleet)).toEqual([]);
    const parts = await cloudParts({ ...plain, gcpPreemptionPoll: seconds(10) }, io);
    expect(parts.feedsFor(fleet)).toHaveLength(1);
  });

  it("asks EC2 only where that is wanted", async () => {
    const parts = await cloudParts({ ...plain, ec2StatusPoll: minutes(1) }, io);
    expect(parts.feedsFor(fleet)).toHaveLength(1);
  });

  it("takes a tag only where there is something to choose from, and only one that is one", async () => {
    const awsManagedTag = "team=a";
    await expect(cloudParts({ ...plain, awsManagedTag }, io)).rejects.toThrow(
      /^Cannot use --aws-managed-tag: it needs --sqs-queue-url or --ec2-status-poll/,
    );
    const polled = { ...plain, ec2StatusPoll: minutes(1) };
    await expect(cloudParts({ ...polled, awsManagedTag: "=a" }, io)).rejects.toThrow(
      /^Cannot use --aws-managed-tag: found "=a"/,
    );
    const parts = await cloudParts({ ...polled, awsManagedTag }, io);
    expect(parts.feedsFor(fleet)).toHaveLength(1);
  });

  it.each([
    [{ azureEndpoint: "http://10.0.0.1" }, "--azure-endpoint: found http://10.0.0.1"],
    [{ azureEndpoint: "https://me:secret@arm" }, "--azure-endpoint: found credentials in the URL"],
    [{ aksCluster: "main" }, '--aks-cluster: found "main", expected GROUP/NAME'],
  ])("refuses %j at the start", async (options, told) => {
    await expect(cloudParts({ ...plain, ...options }, io)).rejects.toThrow(`Cannot use ${told}`);
  });

  it("releases machines of three clouds, and of no cloud that it does not know", async () => {
    const { releaserFor } = await cloudParts(plain, io);
    const mode = "Recreate";
    expect(releaserFor({ providerID: "gce://p/z/n1", mode })).toBeDefined();
    expect(releaserFor({ providerID: "aws:///eu-west-1a/i-0abc", mode })).toBeDefined();
    expect(releaserFor({ providerID: aks, mode })).toBeDefined();
    expect(releaserFor({ providerID: "openstack:///nova/1", mode })).toBeUndefined();
    expect(releaserFor({ providerID: aks, mode: "NodeClaim" })).toBeUndefined();
  });
});
