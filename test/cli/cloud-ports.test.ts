import { describe, expect, it } from "vitest";
import { cloudPorts, launchTimesOfAll } from "../../src/cli/assemble/controller-ports.ts";
import type { CommandIo } from "../../src/cli/command-line/command.ts";
import { loadedOnUse } from "../../src/cloud/release/loaded-on-use.ts";
import type { MachineCloud } from "../../src/contracts/cloud.ts";
import type { Fleet } from "../../src/contracts/cluster.ts";
import { instant, minutes, seconds } from "../../src/core/time/time.ts";
import { LastcallError } from "../../src/errors.ts";

const io = { env: {}, fetch, rng: () => 0.5 } as unknown as CommandIo;
const fleet = {} as Fleet;
const plain = {
  sqsReceivers: 2,
  sqsUnknown: "Leave",
  sqsCompleteHooks: true,
} as const;
const aks =
  "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachineScaleSets/v/virtualMachines/0";

describe("the cloud ports of a controller", () => {
  it("include a preemption feed only if it is configured", async () => {
    expect((await cloudPorts(plain, io)).feedsFor(fleet)).toEqual([]);
    const parts = await cloudPorts({ ...plain, gcpPreemptionPoll: seconds(10) }, io);
    expect(parts.feedsFor(fleet)).toHaveLength(1);
  });

  it("include an EC2 status feed only if it is configured", async () => {
    const parts = await cloudPorts({ ...plain, ec2StatusPoll: minutes(1) }, io);
    expect(parts.feedsFor(fleet)).toHaveLength(1);
  });

  it("accept --aws-managed-tag only with a feed that uses it, and only a valid one", async () => {
    const awsManagedTag = "team=a";
    await expect(cloudPorts({ ...plain, awsManagedTag }, io)).rejects.toThrow(
      /^Cannot use --aws-managed-tag: it needs --sqs-queue-url or --ec2-status-poll/,
    );
    const polled = { ...plain, ec2StatusPoll: minutes(1) };
    await expect(cloudPorts({ ...polled, awsManagedTag: "=a" }, io)).rejects.toThrow(
      /^Cannot use --aws-managed-tag: found "=a"/,
    );
    const parts = await cloudPorts({ ...polled, awsManagedTag }, io);
    expect(parts.feedsFor(fleet)).toHaveLength(1);
  });

  it.each([
    [{ gcpEndpoint: "http://example.com" }, "--gcp-endpoint: found http://example.com"],
    [{ azureEndpoint: "http://10.0.0.1" }, "--azure-endpoint: found http://10.0.0.1"],
    [{ azureEndpoint: "https://me:secret@arm" }, "--azure-endpoint: found credentials in the URL"],
    [{ aksCluster: "main" }, '--aks-cluster: found "main", expected GROUP/NAME'],
  ])("reject %j at startup", async (options, told) => {
    await expect(cloudPorts({ ...plain, ...options }, io)).rejects.toThrow(`Cannot use ${told}`);
  });

  it("release machines of three clouds, but not of an unknown cloud", async () => {
    const { releaserFor } = await cloudPorts(plain, io);
    const mode = "Recreate";
    expect(releaserFor({ providerID: "gce://p/z/n1", mode })).toBeDefined();
    expect(releaserFor({ providerID: "aws:///eu-west-1a/i-0abc", mode })).toBeDefined();
    expect(releaserFor({ providerID: aks, mode })).toBeDefined();
    expect(releaserFor({ providerID: "openstack:///nova/1", mode })).toBeUndefined();
    expect(releaserFor({ providerID: aks, mode: "NodeClaim" })).toBeUndefined();
  });
});

const never = new AbortController().signal;
const away = new LastcallError("CLOUD_UNREACHABLE", "Cannot list: away");

const gce = "gce://p/z/n1";
const ec2 = "aws:///eu-west-1a/i-0123456789abcdef0";

/** A cloud that records requests, and whose machines were all launched at the same instant. */
function cloud(bornAt: number, faults: readonly LastcallError[] = []) {
  const asked: string[][] = [];
  const launchTimes = {
    launchTimesOf: async (ids: readonly string[]) => {
      asked.push([...ids]);
      return { bornAt: new Map(ids.map((id) => [id, instant(bornAt)])), faults };
    },
  };
  return { launchTimes, asked };
}

describe("launch times of machines of several clouds", () => {
  it("come from each machine's own cloud, with the faults of all clouds", async () => {
    const [gcp, aws] = [cloud(1000), cloud(2000, [away])];
    const all = launchTimesOfAll({ gcp, aws });
    const told = await all.launchTimesOf([gce, ec2, "openstack:///x", ""], never);
    expect(told.bornAt).toEqual(
      new Map([
        [gce, instant(1000)],
        [ec2, instant(2000)],
      ]),
    );
    expect(told.faults).toEqual([away]);
    expect([gcp.asked, aws.asked]).toEqual([[[gce]], [[ec2]]]);
  });

  it("are not requested from a cloud that has none of the machines", async () => {
    const [gcp, aws] = [cloud(1000), cloud(2000)];
    await launchTimesOfAll({ gcp, aws }).launchTimesOf([ec2], never);
    expect(gcp.asked).toEqual([]);
  });
});

describe("a cloud that is loaded on use", () => {
  it("is loaded once, by the first request", async () => {
    let loaded = 0;
    const releaser = {
      describe: async () => ({ kind: "Absent" as const }),
      check: async () => ({ kind: "Possible" as const, permission: "Granted" as const }),
      release: async () => ({ kind: "AlreadyGone" as const }),
    };
    const late = loadedOnUse(async (): Promise<MachineCloud> => {
      loaded += 1;
      return { releaser, launchTimes: cloud(1000).launchTimes };
    });
    expect(loaded).toBe(0);
    await Promise.all([
      late.releaser.describe(ec2, never),
      late.releaser.check({ providerID: ec2, mode: "Recreate" }, never),
      late.launchTimes.launchTimesOf([ec2], never),
    ]);
    expect(loaded).toBe(1);
  });
});
