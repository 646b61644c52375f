import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Ec2Network } from "../../src/cloud/aws/ec2-network.ts";

/** The networks of EC2, and control over their instances. */
export interface NetworkWorld {
  readonly network: Ec2Network;
  /**
   * Creates an instance with this many interfaces, each in the group `sg-nodes`, and returns its
   * id.
   */
  addInstance(interfaces: number): string;
  /** Makes an AWS service operate the instance, which hides it from lists by default. */
  operate(instanceId: string): void;
  addSecurityGroup(id: string, vpc?: "vpc-a" | "vpc-b"): void;
  groupsOf(interfaceId: string): readonly string[];
  /** Until `heal`, every request fails with this fault. */
  fail(fault: "Unreachable" | "RateLimited" | "RightMissing"): void;
  heal(): void;
  close(): Promise<void>;
}

const never = new AbortController().signal;

/** What every implementation of `Ec2Network` guarantees. */
export function ec2NetworkContract(name: string, makeWorld: () => Promise<NetworkWorld>): void {
  describe(`${name} as Ec2Network`, () => {
    let world: NetworkWorld;

    beforeEach(async () => {
      world = await makeWorld();
      world.addSecurityGroup("sg-nodes");
      world.addSecurityGroup("sg-quarantine");
    });
    afterEach(() => world.close());

    it("lists every interface of the given instances, and no others", async () => {
      const ids = [world.addInstance(15), world.addInstance(2)];
      world.addInstance(1);
      const found = await world.network.interfacesOf(ids, never);
      expect(found.filter(({ instanceId }) => instanceId === ids[0])).toHaveLength(15);
      expect(found.filter(({ instanceId }) => instanceId === ids[1])).toHaveLength(2);
      expect(found).toHaveLength(17);
      expect(found[0]).toMatchObject({ vpc: "vpc-a", groupIds: ["sg-nodes"] });
    });

    it("lists nothing for an instance that does not exist", async () => {
      expect(await world.network.interfacesOf(["i-00000000000000bad"], never)).toEqual([]);
    });

    it("lists the interfaces of an instance that an AWS service operates", async () => {
      const id = world.addInstance(2);
      world.operate(id);
      expect(await world.network.interfacesOf([id], never)).toHaveLength(2);
    });

    it("reads one instance, and none only if EC2 says that it does not exist", async () => {
      const id = world.addInstance(1);
      world.operate(id);
      expect(await world.network.instance(id, never)).toMatchObject({ state: "running" });
      expect(await world.network.instance("i-00000000000000bad", never)).toBeUndefined();
    });

    it("replaces the groups of an interface instead of adding to them", async () => {
      const [found] = await world.network.interfacesOf([world.addInstance(1)], never);
      const id = found?.id ?? "";
      await world.network.setSecurityGroups(id, ["sg-quarantine"], never);
      expect(world.groupsOf(id)).toEqual(["sg-quarantine"]);
    });

    it("accepts an interface that does not exist", async () => {
      await world.network.setSecurityGroups("eni-00000000000000bad", ["sg-nodes"], never);
    });

    it("returns the VPC of each group, and throws if one does not exist", async () => {
      world.addSecurityGroup("sg-foreign", "vpc-b");
      const vpcs = await world.network.vpcsOf(["sg-nodes", "sg-foreign"], never);
      expect(Object.fromEntries(vpcs)).toEqual({ "sg-nodes": "vpc-a", "sg-foreign": "vpc-b" });
      await expect(world.network.vpcsOf(["sg-nodes", "sg-none"], never)).rejects.toMatchObject({
        code: "ACTION_TARGET_UNKNOWN",
        message: expect.stringContaining("sg-none"),
      });
    });

    it("tests whether groups may be set, without setting them", async () => {
      const [found] = await world.network.interfacesOf([world.addInstance(1)], never);
      const id = found?.id ?? "";
      expect(await world.network.trySecurityGroups(id, ["sg-quarantine"], never)).toBe("Permitted");
      expect(world.groupsOf(id)).toEqual(["sg-nodes"]);
      world.fail("RightMissing");
      await expect(
        world.network.trySecurityGroups(id, ["sg-quarantine"], never),
      ).rejects.toMatchObject({
        code: "CLOUD_RIGHT_MISSING",
        message: expect.stringContaining("ec2:ModifyNetworkInterfaceAttribute"),
      });
    });

    it("throws the signal's reason, and changes nothing", async () => {
      const [found] = await world.network.interfacesOf([world.addInstance(1)], never);
      const id = found?.id ?? "";
      const signal = AbortSignal.abort(new Error("the lead is lost"));
      await expect(world.network.setSecurityGroups(id, ["sg-quarantine"], signal)).rejects.toThrow(
        "the lead is lost",
      );
      expect(world.groupsOf(id)).toEqual(["sg-nodes"]);
    });

    it.each([
      ["Unreachable", "CLOUD_UNREACHABLE"],
      ["RateLimited", "CLOUD_RATE_LIMITED"],
      ["RightMissing", "CLOUD_RIGHT_MISSING"],
    ] as const)("throws on the fault %s, and recovers from it", async (fault, code) => {
      const instance = world.addInstance(1);
      const [found] = await world.network.interfacesOf([instance], never);
      const id = found?.id ?? "";
      world.fail(fault);
      await expect(world.network.interfacesOf([instance], never)).rejects.toMatchObject({ code });
      await expect(world.network.vpcsOf(["sg-nodes"], never)).rejects.toMatchObject({ code });
      await expect(
        world.network.setSecurityGroups(id, ["sg-quarantine"], never),
      ).rejects.toMatchObject({ code });
      world.heal();
      await world.network.setSecurityGroups(id, ["sg-quarantine"], never);
      expect(world.groupsOf(id)).toEqual(["sg-quarantine"]);
    });
  });
}
