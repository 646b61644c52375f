import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  createElasticCompute,
  type ElasticCompute,
} from "../../../src/cloud/aws/elastic-compute.ts";
import { awsPermissionsFor } from "../../../src/cloud/aws/permissions.ts";
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
    const asked = world.fleet.actions.map((action) => `autoscaling:${action}`);
    expect(granted.map(({ action }) => action)).toEqual(expect.arrayContaining(asked));
    expect(asked).toHaveLength(2);
  });

  it("is empty for one without a group, one that is gone, and what is none of EC2's", async () => {
    const alone = providerIdOf(world.fleet.addInstance().id);
    for (const providerID of [alone, world.unknownProviderID, "gce://p/z/n"]) {
      expect(await compute.groupOf(providerID, never)).toEqual([]);
    }
  });
});
