import { afterEach, describe, expect, it } from "vitest";
import type { Releasability, ReleaseQuestion } from "../../../src/contracts/cloud.ts";
import {
  type ComputeWorld,
  type ComputeWorldOptions,
  providerIdOf,
  startComputeWorld,
  zone,
} from "../../support/compute-world.ts";

const never = new AbortController().signal;

let world: ComputeWorld;
afterEach(() => world.close());

/** A world with the machine n1 in its group. */
async function start(options?: ComputeWorldOptions): Promise<ComputeWorld> {
  world = await startComputeWorld(options);
  world.addMachine("n1");
  return world;
}

function check(mode: ReleaseQuestion["mode"] = "Recreate", name = "n1"): Promise<Releasability> {
  return world.pass(world.releaser.check({ providerID: providerIdOf(name), mode }, never));
}

const inGroup = `projects/project1/zones/${zone}/instanceGroupManagers/gke-pool-grp`;
const onInstance = `projects/project1/zones/${zone}/instances/n1`;

describe("a missing permission", () => {
  it.each([
    ["Recreate", "compute.instanceGroupManagers.update", inGroup],
    ["Delete", "compute.instanceGroupManagers.update", inGroup],
    ["DeleteInstance", "compute.instances.delete", onInstance],
    ["Recreate", "compute.zoneOperations.get", `projects/project1/zones/${zone}/operations`],
  ] as const)("is named before anything is changed: %s, %s", async (mode, permission, place) => {
    await start();
    world.server.deny(permission);
    expect(await check(mode)).toEqual({
      kind: "Impossible",
      problem: `the permission ${permission} is not granted on ${place}, grant it with: lastcall setup gcp`,
    });
    world.server.allow(permission);
    expect(await check(mode)).toMatchObject({ kind: "Possible", permission: "Granted" });
    expect(world.asked()).toBe(0);
  });

  it("to read the machine is a permanent fault", async () => {
    await start();
    world.server.deny("compute.instances.get");
    await expect(check()).rejects.toMatchObject({ code: "CLOUD_RIGHT_MISSING", retryable: false });
  });
});

describe("a permission that cannot be tested", () => {
  it.each([
    [
      "the permission for the check is missing",
      () => world.server.deny("compute.instanceGroupManagers.list"),
    ],
    [
      "the endpoint does not implement the check",
      () => {
        const fault = { kind: "Garbage", status: 404 } as const;
        world.server.failNext(fault, { times: 100, match: /testIamPermissions/ });
      },
    ],
  ])("is unknown and blocks nothing: %s", async (_, make) => {
    await start();
    make();
    expect(await check()).toMatchObject({ kind: "Possible", permission: "Unknown" });
  });

  it("because the cloud fails halfway is a retryable fault", async () => {
    await start();
    world.server.failNext({ kind: "Drop" }, { times: 100, match: /testIamPermissions/ });
    await expect(check()).rejects.toMatchObject({ code: "CLOUD_UNREACHABLE", retryable: true });
  });
});

describe("a machine that no permission would make releasable", () => {
  it.each(["Recreate", "Delete"] as const)("%s: has no group", async (mode) => {
    await start();
    world.server.model.addMachine({ name: "alone", zone });
    await expect(check(mode, "alone")).rejects.toMatchObject({
      code: "CLOUD_REFUSED",
      retryable: false,
      message: expect.stringContaining("expected instance.release: DeleteInstance"),
    });
    expect(await check("DeleteInstance", "alone")).toMatchObject({ kind: "Possible" });
  });

  it("has deletion protection", async () => {
    await start();
    world.server.model.addMachine({ name: "kept", zone, deletionProtection: true });
    const problem = `the instance project1/${zone}/kept has deletion protection, disable it first`;
    expect(await check("DeleteInstance", "kept")).toEqual({ kind: "Impossible", problem });
  });

  it("has the providerID of another cloud", async () => {
    await start();
    const providerID = "aws:///eu-west-1a/i-0abc";
    const work = world.releaser.check({ providerID, mode: "Recreate" }, never);
    await expect(work).rejects.toMatchObject({ code: "CLOUD_REFUSED", retryable: false });
  });
});

it("a machine that is stopping needs no permission", async () => {
  await start();
  for (const permission of ["compute.instanceGroupManagers.update", "compute.zoneOperations.get"]) {
    world.server.deny(permission);
  }
  world.server.model.preempt(zone, "n1");
  expect(await check()).toMatchObject({ kind: "Possible" });
});

it("the check takes three requests, none of which changes anything", async () => {
  await start();
  await check();
  const asked = world.server.log.map(({ method, path }) => `${method} ${path}`);
  expect(asked.toSorted()).toEqual([
    `GET /zones/${zone}/instances/n1`,
    `GET /zones/${zone}/operations/lastcall-check`,
    `POST /zones/${zone}/instanceGroupManagers/gke-pool-grp/testIamPermissions`,
  ]);
});
