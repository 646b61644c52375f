import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ReleaseRequest } from "../../../src/contracts/cloud.ts";
import type { DetachState } from "../../../src/core/action/action-plan.ts";
import { minutes } from "../../../src/core/time/time.ts";
import { type Ec2World, providerIdOf, startEc2World } from "../../support/ec2-world.ts";

type Mode = ReleaseRequest["mode"];
interface Machine {
  readonly providerID: string;
  readonly id: string;
}

const never = new AbortController().signal;
const everyMode: readonly Mode[] = ["Recreate", "Delete", "DeleteInstance"];
const requestId = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff";

const lastLook = () => Promise.resolve("Clear" as const);

let world: Ec2World;
beforeEach(async () => {
  world = await startEc2World({ goneWithinMs: minutes(5) });
});
afterEach(() => world.close());

function check({ providerID }: Machine, mode: Mode) {
  return world.pass(world.releaser.check({ providerID, mode }, never));
}

function release({ providerID, id }: Machine, mode: Mode) {
  const request = { providerID, machineId: id, mode, requestId, lastLook };
  return world.pass(world.releaser.release(request, never));
}

function instanceOf({ providerID }: Machine) {
  const instance = world.fleet.find(providerID.split("/").at(-1) ?? "");
  if (instance === undefined) throw new Error(`no instance ${providerID}`);
  return instance;
}

describe("a mode that the machine's owner does not allow", () => {
  it.each<[Mode, Mode, string]>([
    ["Recreate", "DeleteInstance", "set instance.release to Recreate or Delete"],
    ["DeleteInstance", "Recreate", "set instance.release to DeleteInstance"],
    ["DeleteInstance", "Delete", "set instance.release to DeleteInstance"],
  ])(
    "on a machine for %s: %s is rejected by the check and by the release",
    async (owned, mode, told) => {
      const machine = world.addMachine("n1", owned);
      const problem = expect.stringContaining(told);
      expect(await check(machine, mode)).toEqual({ kind: "Impossible", problem });
      await expect(release(machine, mode)).rejects.toMatchObject({
        code: "CLOUD_REFUSED",
        retryable: false,
        message: problem,
      });
      expect(world.asked()).toBe(0);
    },
  );

  it.each(everyMode)(
    "%s of a Karpenter instance is rejected in favor of NodeClaim",
    async (mode) => {
      const machine = world.addMachine("n1", mode);
      instanceOf(machine).tags = { "karpenter.sh/nodepool": "spot" };
      const problem = expect.stringContaining("set instance.release to NodeClaim");
      expect(await check(machine, mode)).toEqual({ kind: "Impossible", problem });
      await expect(release(machine, mode)).rejects.toMatchObject({ message: problem });
      expect(world.asked()).toBe(0);
    },
  );
});

describe("the check before a drain", () => {
  it("dry-runs the termination of an instance, and reports the permission as granted", async () => {
    const machine = world.addMachine("n1", "DeleteInstance");
    expect(await check(machine, "DeleteInstance")).toMatchObject({
      kind: "Possible",
      permission: "Granted",
    });
    expect(world.fleet.actions.at(-1)).toBe("TerminateInstances");
    expect(instanceOf(machine).state).toBe("running");
  });

  it("names the permission that the dry run lacks", async () => {
    const machine = world.addMachine("n1", "DeleteInstance");
    world.fleet.denied.add("TerminateInstances");
    const problem = expect.stringContaining("ec2:TerminateInstances is not granted");
    expect(await check(machine, "DeleteInstance")).toEqual({ kind: "Impossible", problem });
  });

  it("reports the permission for a group's member as unknown", async () => {
    const machine = world.addMachine("n1");
    expect(await check(machine, "Recreate")).toMatchObject({
      kind: "Possible",
      permission: "Unknown",
    });
    expect(world.fleet.actions).not.toContain("TerminateInstanceInAutoScalingGroup");
  });

  it("finds a group at its minimum size, which cannot shrink", async () => {
    const machine = world.addMachine("n1");
    world.group.min = world.group.desired;
    const problem = expect.stringContaining("would shrink from 1 to 0, below its minimum of 1");
    expect(await check(machine, "Delete")).toEqual({ kind: "Impossible", problem });
    expect(await check(machine, "Recreate")).toMatchObject({ kind: "Possible" });
  });

  it("counts an instance of a group with weights by its weight", async () => {
    const machine = world.addMachine("n1");
    instanceOf(machine).weight = 4;
    Object.assign(world.group, { desired: 10, min: 7 });
    const problem = expect.stringContaining("would shrink from 10 to 6, below its minimum of 7");
    expect(await check(machine, "Delete")).toEqual({ kind: "Impossible", problem });
    world.group.min = 6;
    expect(await check(machine, "Delete")).toMatchObject({ kind: "Possible" });
    expect(await release(machine, "Delete")).toEqual({ kind: "Released" });
    expect(world.group.desired).toBe(6);
  });

  it("finds a group that would launch no new instance", async () => {
    const machine = world.addMachine("n1");
    world.group.suspended.push("Launch");
    const problem = expect.stringContaining("process Launch is suspended");
    expect(await check(machine, "Recreate")).toEqual({ kind: "Impossible", problem });
    expect(await check(machine, "Delete")).toMatchObject({ kind: "Possible" });
  });
});

describe("a release", () => {
  it("keeps the group's size with Recreate and reduces it by one with Delete", async () => {
    const [one, other] = [world.addMachine("n1"), world.addMachine("n2")];
    await release(one, "Recreate");
    expect(world.group.desired).toBe(2);
    await release(other, "Delete");
    expect(world.group.desired).toBe(1);
  });

  it("skips an instance that was stopped and started since", async () => {
    const machine = world.addMachine("n1");
    await world.replace(machine.providerID);
    expect(await release(machine, "Recreate")).toEqual({ kind: "Replaced" });
    expect(world.asked()).toBe(0);
  });

  it.each(["stopped", "terminated"] as const)("counts a %s instance as gone", async (state) => {
    const machine = world.addMachine("n1");
    instanceOf(machine).state = state;
    expect(await release(machine, "Recreate")).toEqual({ kind: "AlreadyGone" });
  });

  it("sends nothing for an instance that is shutting down, and waits for its end", async () => {
    const machine = world.addMachine("n1");
    world.fleet.proceed(instanceOf(machine));
    expect(await release(machine, "Recreate")).toEqual({ kind: "Released" });
    expect(world.asked()).toBe(0);
    expect(instanceOf(machine).state).toBe("terminated");
  });

  it("waits for a lifecycle hook, and calls the group once", async () => {
    const machine = world.addMachine("n1");
    world.group.holds = true;
    const work = release(machine, "Recreate");
    await world.pass(world.clock.sleep(minutes(2)));
    expect(instanceOf(machine).state).toBe("running");
    world.fleet.proceed(instanceOf(machine));
    expect(await world.pass(work)).toEqual({ kind: "Released" });
    expect(world.asked()).toBe(1);
  });

  it("shows an instance as not running while a hook holds it, unlike EC2", async () => {
    const machine = world.addMachine("n1");
    const look = () => world.pass(world.releaser.describe(machine.providerID, never));
    expect(await look()).toMatchObject({ running: true });
    world.group.holds = true;
    const work = release(machine, "Recreate");
    await world.pass(world.clock.sleep(minutes(1)));
    expect(instanceOf(machine).state).toBe("running");
    expect(await look()).toMatchObject({ running: false });
    world.fleet.proceed(instanceOf(machine));
    await world.pass(work);
  });

  it("fails as retryable if the instance is not gone in time, and names its state", async () => {
    const machine = world.addMachine("n1");
    world.group.holds = true;
    await expect(release(machine, "Recreate")).rejects.toMatchObject({
      code: "MACHINE_LEAVING",
      retryable: true,
      message: expect.stringContaining("Terminating:Wait in spot-group"),
    });
    expect(world.asked()).toBe(1);
  });

  it("is retried if another activity of the group is in progress", async () => {
    const machine = world.addMachine("n1");
    const busy = {
      status: 400,
      code: "ScalingActivityInProgress",
      text: "Activity is in progress",
    };
    world.fleet.refuseNext.set("TerminateInstanceInAutoScalingGroup", busy);
    expect(await release(machine, "Recreate")).toEqual({ kind: "Released" });
    expect(world.asked()).toBe(1);
  });

  it.each<[Mode, Mode, () => void, string]>([
    [
      "Recreate",
      "Delete",
      () => {
        world.group.min = world.group.desired;
      },
      "expected a desired capacity above the group's minimum, or a release that keeps it (instance.release: Recreate, ",
    ],
    [
      "DeleteInstance",
      "DeleteInstance",
      () => {
        for (const one of world.fleet.instances) one.isProtected = true;
      },
      "expected an instance without termination protection",
    ],
  ])("of a machine for %s with %s reports a permanent refusal", async (owned, mode, make, told) => {
    const machine = world.addMachine("n1", owned);
    make();
    await expect(release(machine, mode)).rejects.toMatchObject({
      code: "CLOUD_REFUSED",
      retryable: false,
      message: expect.stringContaining(told),
    });
    expect(instanceOf(machine).state).toBe("running");
  });

  it("does not terminate an instance that has left its group meanwhile", async () => {
    const machine = world.addMachine("n1");
    const gone = { status: 400, code: "ValidationError", text: "Instance Id not found" };
    world.fleet.refuseNext.set("TerminateInstanceInAutoScalingGroup", gone);
    const work = release(machine, "Recreate");
    await world.passUntil(() => world.fleet.refuseNext.size === 0);
    instanceOf(machine).group = undefined;
    await expect(work).rejects.toMatchObject({
      message: expect.stringContaining("set instance.release to DeleteInstance"),
    });
    expect(world.asked()).toBe(0);
  });
});

describe("a machine with an action detach", () => {
  const groupModes: readonly Mode[] = ["Recreate", "Delete"];

  function checkWith(machine: Machine, mode: Mode, detach: DetachState) {
    const { providerID } = machine;
    return world.pass(world.releaser.check({ providerID, mode, detach }, never));
  }

  function releaseWith(machine: Machine, mode: Mode, isOutOfGroup: () => boolean) {
    const { providerID, id: machineId } = machine;
    const request = { providerID, machineId, mode, requestId, lastLook, isOutOfGroup };
    return world.pass(world.releaser.release(request, never));
  }

  it.each(groupModes)(
    "is terminated by itself with %s once the action has taken it out of its group",
    async (mode) => {
      const machine = world.addMachine("n1");
      instanceOf(machine).group = undefined;
      expect(await checkWith(machine, mode, "Begun")).toMatchObject({ permission: "Granted" });
      expect(await releaseWith(machine, mode, () => true)).toEqual({ kind: "Released" });
      expect(instanceOf(machine).state).toBe("terminated");
      expect(world.group.desired).toBe(1);
    },
  );

  it("is terminated by itself while its group is still detaching it", async () => {
    const machine = world.addMachine("n1");
    instanceOf(machine).lifecycle = "Detaching";
    expect(await releaseWith(machine, "Recreate", () => true)).toEqual({ kind: "Released" });
    expect(world.fleet.actions).not.toContain("TerminateInstanceInAutoScalingGroup");
  });

  it("is released in its group if it is there, although the action may have run", async () => {
    const machine = world.addMachine("n1");
    expect(await releaseWith(machine, "Delete", () => true)).toEqual({ kind: "Released" });
    expect(world.fleet.actions).not.toContain("TerminateInstances");
    expect(world.group.desired).toBe(0);
  });

  it("is terminated by itself if the action takes it out during the release", async () => {
    const machine = world.addMachine("n1");
    const gone = { status: 400, code: "ValidationError", text: "Instance Id not found" };
    world.fleet.refuseNext.set("TerminateInstanceInAutoScalingGroup", gone);
    let isOut = false;
    const work = releaseWith(machine, "Recreate", () => isOut);
    await world.passUntil(() => world.fleet.refuseNext.size === 0);
    instanceOf(machine).group = undefined;
    isOut = true;
    expect(await work).toEqual({ kind: "Released" });
  });

  it("cannot be released if something else has taken it out of its group", async () => {
    const machine = world.addMachine("n1");
    instanceOf(machine).group = undefined;
    const problem = expect.stringContaining("set instance.release to DeleteInstance");
    expect(await checkWith(machine, "Recreate", "Ahead")).toEqual({ kind: "Impossible", problem });
    await expect(releaseWith(machine, "Recreate", () => false)).rejects.toMatchObject({
      message: problem,
    });
    expect(world.asked()).toBe(0);
  });

  it.each(groupModes)("needs the permission to terminate the instance, with %s", async (mode) => {
    const machine = world.addMachine("n1");
    expect(await checkWith(machine, mode, "Ahead")).toMatchObject({ kind: "Possible" });
    world.fleet.denied.add("TerminateInstances");
    const problem = expect.stringContaining("ec2:TerminateInstances is not granted");
    expect(await checkWith(machine, mode, "Ahead")).toEqual({ kind: "Impossible", problem });
    expect(await check(machine, mode)).toMatchObject({ kind: "Possible" });
  });
});

describe("an instance that EC2 does not list", () => {
  it.each(everyMode)("is found and released if an AWS service operates it: %s", async (mode) => {
    const machine = world.addMachine("n1", mode);
    instanceOf(machine).isOperated = true;
    const { providerID } = machine;
    expect(await world.pass(world.releaser.describe(providerID, never))).toMatchObject({
      kind: "Present",
      running: true,
    });
    expect(await release(machine, mode)).toEqual({ kind: "Released" });
    const times = await world.pass(world.launchTimes.launchTimesOf([providerID], never));
    expect(times.faults).toEqual([]);
  });

  it("is neither absent nor released if EC2 does not say that it does not exist", async () => {
    const machine = world.addMachine("n1", "Recreate");
    world.fleet.listsNothing = true;
    const unknown = {
      code: "CLOUD_UNREACHABLE",
      retryable: true,
      message: expect.stringContaining("an empty list"),
    };
    const { providerID } = machine;
    await expect(world.pass(world.releaser.describe(providerID, never))).rejects.toMatchObject(
      unknown,
    );
    await expect(check(machine, "Recreate")).rejects.toMatchObject(unknown);
    await expect(release(machine, "Recreate")).rejects.toMatchObject(unknown);
    expect(world.asked()).toBe(0);
  });
});

describe("a providerID that names no instance", () => {
  it.each(["aws:///eu-west-1a/fargate-ip-10-0-0-1", "gce://p/z/n", ""])(
    "%s is rejected",
    async (id) => {
      await expect(world.releaser.describe(id, never)).rejects.toMatchObject({
        code: "CLOUD_REFUSED",
        message: expect.stringContaining("expected aws:///ZONE/INSTANCE"),
      });
    },
  );

  it("of an unknown instance means that it is absent", async () => {
    const unknown = providerIdOf("i-0123456789abcdef0");
    expect(await world.pass(world.releaser.describe(unknown, never))).toEqual({ kind: "Absent" });
  });
});
