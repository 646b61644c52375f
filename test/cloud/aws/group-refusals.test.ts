import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ReleaseRequest } from "../../../src/contracts/cloud.ts";
import { minutes } from "../../../src/core/time/time.ts";
import { type Ec2World, startEc2World } from "../../support/ec2-world.ts";

type Mode = ReleaseRequest["mode"];
interface Machine {
  readonly providerID: string;
  readonly id: string;
}

const never = new AbortController().signal;
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

describe("the check before a drain", () => {
  it("remembers for half an hour that a release in the group was denied", async () => {
    const [one, other] = [world.addMachine("n1"), world.addMachine("n2")];
    world.fleet.denied.add("TerminateInstanceInAutoScalingGroup");
    await expect(release(one, "Recreate")).rejects.toMatchObject({
      code: "CLOUD_RIGHT_MISSING",
      retryable: false,
    });
    const problem = expect.stringContaining("autoscaling:TerminateInstanceInAutoScalingGroup");
    expect(await check(other, "Recreate")).toEqual({ kind: "Impossible", problem });
    await world.pass(world.clock.sleep(minutes(30)));
    expect(await check(other, "Recreate")).toMatchObject({ kind: "Possible" });
  });

  it.each(["vcpu", "memory-mib"] as const)(
    "does not take an instance for one of a group that counts %s and lists no shares",
    async (unit) => {
      const [one, other] = [world.addMachine("n1"), world.addMachine("n2")];
      for (const machine of [one, other]) instanceOf(machine).weight = 16;
      Object.assign(world.group, { unit, desired: 32, min: 32 });
      const atMinimum = expect.stringContaining("below its minimum of 32");
      expect(await check(one, "Delete")).toEqual({ kind: "Impossible", problem: atMinimum });
      // Whether 16 more may go cannot be known in advance, but no second node is drained in vain.
      world.group.min = 20;
      expect(await check(one, "Delete")).toMatchObject({ kind: "Possible" });
      await expect(release(one, "Delete")).rejects.toMatchObject({ code: "CLOUD_REFUSED" });
      const problem = expect.stringContaining("refused to shrink");
      expect(await check(other, "Delete")).toEqual({ kind: "Impossible", problem });
      expect(await check(other, "Recreate")).toMatchObject({ kind: "Possible" });
      world.group.min = 16;
      await world.pass(world.clock.sleep(minutes(30)));
      expect(await check(other, "Delete")).toMatchObject({ kind: "Possible" });
      expect(await release(other, "Delete")).toEqual({ kind: "Released" });
      expect(world.group.desired).toBe(16);
    },
  );

  it("asks the group again after a refusal if it knows the instance's share", async () => {
    const machine = world.addMachine("n1");
    Object.assign(instanceOf(machine), { weight: 4 });
    Object.assign(world.group, { desired: 10, min: 7 });
    await expect(release(machine, "Delete")).rejects.toMatchObject({ code: "CLOUD_REFUSED" });
    world.group.min = 6;
    expect(await check(machine, "Delete")).toMatchObject({ kind: "Possible" });
  });
});
