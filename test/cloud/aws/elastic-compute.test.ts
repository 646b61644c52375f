import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  createElasticCompute,
  type ElasticCompute,
} from "../../../src/cloud/aws/elastic-compute.ts";
import { awsPermissionsFor } from "../../../src/cloud/aws/setup/permissions.ts";
import { seededRng } from "../../../src/core/chance/rng.ts";
import { type Ec2World, providerIdOf, startEc2World } from "../../support/ec2-world.ts";

const never = new AbortController().signal;
const nothingElse = {
  ...{ queue: false, hooks: false, statusPoll: false, managedTag: false, actions: false },
} as const;

let world: Ec2World;
let compute: ElasticCompute;
beforeEach(async () => {
  world = await startEc2World();
  compute = createElasticCompute({ clock: world.clock, rng: seededRng(1) });
});
afterEach(() => world.close());

const ofMain = { "kubernetes.io/cluster/main": "owned" };

/** Instances that run for so long that they should be nodes, each with its tags. */
function addTagged(...all: readonly Readonly<Record<string, string>>[]): readonly string[] {
  return all.map((tags) => {
    const instance = world.fleet.addInstance();
    instance.tags = tags;
    return providerIdOf(instance.id);
  });
}

describe("the group of an instance", () => {
  it("is all that it has in service, and no others", async () => {
    const { fleet, group } = world;
    const [first, second, leaving] = [1, 2, 3].map(() => fleet.addInstance(group));
    fleet.addInstance(fleet.addGroup("other"));
    Object.assign(leaving ?? {}, { lifecycle: "Terminating:Wait" });
    const found = await compute.groupOf(providerIdOf(first?.id ?? ""), never);
    expect(found).toEqual([first, second].map((one) => providerIdOf(one?.id ?? "")));
  });

  it("is asked for with permissions of the group modes", async () => {
    await compute.groupOf(providerIdOf(world.fleet.addInstance(world.group).id), never);
    const granted = awsPermissionsFor({ mode: "Recreate", ...nothingElse });
    const service = (action: string) => (action === "DescribeInstances" ? "ec2" : "autoscaling");
    const asked = world.fleet.actions.map((action) => `${service(action)}:${action}`);
    expect(granted.map(({ action }) => action)).toEqual(expect.arrayContaining(asked));
    expect(new Set(asked).size).toBe(3);
  });

  it("is empty for one without a group, one that is gone, and what is none of EC2's", async () => {
    const alone = providerIdOf(world.fleet.addInstance().id);
    for (const providerID of [alone, world.unknownProviderID, "gce://p/z/n"]) {
      expect(await compute.groupOf(providerID, never)).toEqual([]);
    }
  });
});

describe("the instances beside one without a group", () => {
  it("are those of Spot with the tag of its cluster, however many pages they fill", async () => {
    world.fleet.pageSize = 2;
    const mine = addTagged(ofMain, { ...ofMain, Name: "x" }, ofMain, ofMain, ofMain);
    addTagged({ "kubernetes.io/cluster/main-2": "owned" }, { "kubernetes.io/cluster/m": "owned" });
    expect(await compute.groupOf(mine[1] ?? "", never)).toEqual(mine);
  });

  it.each([
    ["kubernetes.io/cluster/main", "shared"],
    ["eks:cluster-name", "main"],
    ["eks:eks-cluster-name", "main"],
  ])("are told by the tag %s=%s", async (key, value) => {
    const mine = addTagged({ [key]: value }, { [key]: value });
    addTagged({ [key.replace(/main$/, "other")]: value.replace(/main$/, "other") }, {});
    expect(await compute.groupOf(mine[0] ?? "", never)).toEqual(mine);
  });

  it("are not such as stop, nor such as serve the cluster and are no nodes", async () => {
    const [first, , bastion, ofKarpenter] = addTagged(ofMain, ofMain, ofMain, {
      ...ofMain,
      "karpenter.sh/nodepool": "on-demand",
    });
    const [, stopping, ...others] = world.fleet.instances;
    Object.assign(stopping ?? {}, { state: "stopping" });
    for (const one of others) one.isSpot = false;
    expect(await compute.groupOf(first ?? "", never)).toEqual([first, ofKarpenter]);
    expect(await compute.groupOf(bastion ?? "", never)).toEqual([first, ofKarpenter]);
  });

  it("are none where the tags name no cluster, or two", async () => {
    const two = { ...ofMain, "kubernetes.io/cluster/other": "shared" };
    const [first, second] = addTagged({ "karpenter.sh/nodepool": "default" }, two, ofMain);
    expect(await compute.groupOf(first ?? "", never)).toEqual([]);
    expect(await compute.groupOf(second ?? "", never)).toEqual([]);
  });

  it("stand beside the group of one that has both, each once", async () => {
    const { fleet, group } = world;
    const inGroup = fleet.addInstance(group);
    inGroup.tags = ofMain;
    const [alone] = addTagged(ofMain);
    const found = await compute.groupOf(providerIdOf(inGroup.id), never);
    expect(found).toEqual([providerIdOf(inGroup.id), alone]);
  });

  it("are found with the one permission that a controller beside Karpenter has", async () => {
    const [one] = addTagged({ ...ofMain, "karpenter.sh/nodepool": "default" });
    expect(await compute.groupOf(one ?? "", never)).toEqual([one]);
    const granted = awsPermissionsFor({ mode: "NodeClaim", ...nothingElse });
    const asked = world.fleet.actions.map((action) => `ec2:${action}`);
    expect(granted.map(({ action }) => action)).toEqual([...new Set(asked)]);
  });
});
