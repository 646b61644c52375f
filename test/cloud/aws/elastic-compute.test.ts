import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  createElasticCompute,
  type ElasticCompute,
} from "../../../src/cloud/aws/elastic-compute.ts";
import { awsPermissionsFor } from "../../../src/cloud/aws/setup/permissions.ts";
import { seededRng } from "../../../src/core/chance/chance.ts";
import type { FleetGroup } from "../../support/ec2-fleet.ts";
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

/** Instances with these tags that have run long enough to be nodes. */
function addTagged(...all: readonly Readonly<Record<string, string>>[]): readonly string[] {
  return all.map((tags) => {
    const instance = world.fleet.addInstance();
    instance.tags = tags;
    return providerIdOf(instance.id);
  });
}

describe("the group of an instance", () => {
  it("is all its instances in service, and no others", async () => {
    const { fleet, group } = world;
    const [first, second, leaving] = [1, 2, 3].map(() => fleet.addInstance(group));
    fleet.addInstance(fleet.addGroup("other"));
    Object.assign(leaving ?? {}, { lifecycle: "Terminating:Wait" });
    const found = await compute.groupsOf([providerIdOf(first?.id ?? "")], never);
    expect(found).toEqual([first, second].map((one) => providerIdOf(one?.id ?? "")));
  });

  it("is read with the permissions of the group modes", async () => {
    await compute.groupsOf([providerIdOf(world.fleet.addInstance(world.group).id)], never);
    const granted = awsPermissionsFor({ mode: "Recreate", ...nothingElse });
    const service = (action: string) => (action === "DescribeInstances" ? "ec2" : "autoscaling");
    const asked = world.fleet.actions.map((action) => `${service(action)}:${action}`);
    expect(granted.map(({ action }) => action)).toEqual(expect.arrayContaining(asked));
    expect(new Set(asked).size).toBe(3);
  });

  it("is empty for a lone instance, one that is gone, and one of another cloud", async () => {
    const alone = providerIdOf(world.fleet.addInstance().id);
    for (const providerID of [alone, world.unknownProviderID, "gce://p/z/n"]) {
      expect(await compute.groupsOf([providerID], never)).toEqual([]);
    }
  });
});

describe("the groups of a cluster", () => {
  const ofEks = { ...ofMain, "eks:nodegroup-name": "spot" };
  const eachIn = (group: FleetGroup, count: number) =>
    Array.from({ length: count }, () => providerIdOf(world.fleet.addInstance(group).id));
  /** An on-demand instance: tagged Spot instances are found without their group. */
  function addNode(group: FleetGroup | undefined, tags: Readonly<Record<string, string>>): string {
    const instance = world.fleet.addInstance(group);
    Object.assign(instance, { tags, isSpot: false });
    return providerIdOf(instance.id);
  }

  it("are all groups for nodes with its tag, including those without a node", async () => {
    const { fleet } = world;
    const node = addNode(fleet.addGroup("a", ofEks), ofMain);
    const lost = [ofEks, { ...ofMain, "k8s.io/cluster-autoscaler/enabled": "true" }].flatMap(
      (tags, place) => eachIn(fleet.addGroup(`b${place}`, tags), 2),
    );
    eachIn(fleet.addGroup("bastions", ofMain), 1);
    eachIn(fleet.addGroup("others", { "kubernetes.io/cluster/other": "owned" }), 1);
    expect(await compute.groupsOf([node], never)).toEqual([node, ...lost]);
  });

  it("are found by EKS's own tag if there is no other", async () => {
    const { fleet } = world;
    const tags = { "eks:cluster-name": "main" };
    const node = addNode(fleet.addGroup("a", tags), tags);
    const lost = eachIn(fleet.addGroup("b", { ...tags, "eks:nodegroup-name": "b" }), 1);
    eachIn(fleet.addGroup("c", { "eks:cluster-name": "other", "eks:nodegroup-name": "c" }), 1);
    expect(await compute.groupsOf([node], never)).toEqual([...lost, node]);
  });

  it("are the groups of all nodes that have one, each requested once", async () => {
    const groups = ["a", "b"].map((name) => world.fleet.addGroup(name));
    const nodes = groups.flatMap((group) => [addNode(group, {}), addNode(group, {})]);
    const lost = groups.map((group) => addNode(group, {}));
    world.fleet.actions.length = 0;
    expect((await compute.groupsOf(nodes, never)).toSorted()).toEqual([...nodes, ...lost].sort());
    expect(world.fleet.actions).toEqual([
      "DescribeInstances",
      "DescribeAutoScalingInstances",
      "DescribeAutoScalingGroups",
    ]);
  });

  it("of more groups than one request may name are all found", async () => {
    const nodes = Array.from({ length: 120 }, (_, place) => {
      const instance = world.fleet.addInstance(world.fleet.addGroup(`own-${place}`));
      return providerIdOf(instance.id);
    });
    expect((await compute.groupsOf(nodes, never)).toSorted()).toEqual(nodes.toSorted());
  });

  it("take a few requests for any number of nodes", async () => {
    const group = world.fleet.addGroup("a", ofEks);
    const tagged = Array.from({ length: 230 }, () => addNode(group, ofMain));
    expect(await compute.groupsOf(tagged, never)).toHaveLength(230);
    // Two for the instances, one for the Spot instances and one for the groups with the tag.
    expect(world.fleet.actions).toHaveLength(2 + 1 + 1);
    world.fleet.actions.length = 0;
    const untagged = Array.from({ length: 230 }, () => addNode(world.group, {}));
    await compute.groupsOf(untagged, never);
    // The groups of 200 instances are requested, 50 at a time.
    expect(world.fleet.actions).toHaveLength(2 + 4 + 1);
  });
});

describe("the instances next to one without a group", () => {
  it("are the Spot instances with its cluster's tag, on any number of pages", async () => {
    world.fleet.pageSize = 2;
    const mine = addTagged(ofMain, { ...ofMain, Name: "x" }, ofMain, ofMain, ofMain);
    addTagged({ "kubernetes.io/cluster/main-2": "owned" }, { "kubernetes.io/cluster/m": "owned" });
    expect(await compute.groupsOf([mine[1] ?? ""], never)).toEqual(mine);
  });

  it.each([
    ["kubernetes.io/cluster/main", "shared"],
    ["eks:cluster-name", "main"],
    ["eks:eks-cluster-name", "main"],
  ])("are found by the tag %s=%s", async (key, value) => {
    const mine = addTagged({ [key]: value }, { [key]: value });
    addTagged({ [key.replace(/main$/, "other")]: value.replace(/main$/, "other") }, {});
    expect(await compute.groupsOf([mine[0] ?? ""], never)).toEqual(mine);
  });

  it("exclude stopping ones, and ones that serve the cluster but are no nodes", async () => {
    const [first, , bastion, ofKarpenter] = addTagged(ofMain, ofMain, ofMain, {
      ...ofMain,
      "karpenter.sh/nodepool": "on-demand",
    });
    const [, stopping, ...others] = world.fleet.instances;
    Object.assign(stopping ?? {}, { state: "stopping" });
    for (const one of others) one.isSpot = false;
    expect(await compute.groupsOf([first ?? ""], never)).toEqual([first, ofKarpenter]);
    expect(await compute.groupsOf([bastion ?? ""], never)).toEqual([first, ofKarpenter]);
  });

  it("are none if the tags name no cluster, or two", async () => {
    const two = { ...ofMain, "kubernetes.io/cluster/other": "shared" };
    const [first, second] = addTagged({ "karpenter.sh/nodepool": "default" }, two, ofMain);
    expect(await compute.groupsOf([first ?? ""], never)).toEqual([]);
    expect(await compute.groupsOf([second ?? ""], never)).toEqual([]);
  });

  it("are added to the group of an instance that has both, each once", async () => {
    const { fleet, group } = world;
    const inGroup = fleet.addInstance(group);
    inGroup.tags = ofMain;
    const [alone] = addTagged(ofMain);
    const found = await compute.groupsOf([providerIdOf(inGroup.id)], never);
    expect(found).toEqual([providerIdOf(inGroup.id), alone]);
  });

  it("are found with the one permission that a controller next to Karpenter has", async () => {
    const [one] = addTagged({ ...ofMain, "karpenter.sh/nodepool": "default" });
    expect(await compute.groupsOf([one ?? ""], never)).toEqual([one]);
    const granted = awsPermissionsFor({ mode: "NodeClaim", ...nothingElse });
    const asked = world.fleet.actions.map((action) => `ec2:${action}`);
    expect(granted.map(({ action }) => action)).toEqual([...new Set(asked)]);
  });
});
