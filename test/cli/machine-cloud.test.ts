import { describe, expect, it } from "vitest";
import {
  launchTimesOfAll,
  loadedOnUse,
  type MachineCloud,
} from "../../src/cli/assemble/machine-cloud.ts";
import { instant } from "../../src/core/time/time.ts";
import { LastcallError } from "../../src/errors.ts";

const never = new AbortController().signal;
const away = new LastcallError("CLOUD_UNREACHABLE", "Cannot list: away");

const gce = "gce://p/z/n1";
const ec2 = "aws:///eu-west-1a/i-0123456789abcdef0";

/** A cloud that keeps what it was asked, and whose machines were all launched at one instant. */
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
  it("come from each machine's own cloud, with the faults of any", async () => {
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

  it("are asked of no cloud that has no machine among them", async () => {
    const [gcp, aws] = [cloud(1000), cloud(2000)];
    await launchTimesOfAll({ gcp, aws }).launchTimesOf([ec2], never);
    expect(gcp.asked).toEqual([]);
  });
});

describe("a cloud that is loaded on use", () => {
  it("is loaded once, by the first question", async () => {
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
