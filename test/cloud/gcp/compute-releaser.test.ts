import { afterEach, describe, expect, it } from "vitest";
import { createComputeEngine } from "../../../src/cloud/gcp/compute-engine.ts";
import { checkRequestId, requestIdAfter } from "../../../src/cloud/gcp/compute-releaser.ts";
import { permissionsFor } from "../../../src/cloud/gcp/permissions.ts";
import type { ReleaseRequest, ReleaseResult } from "../../../src/contracts/cloud.ts";
import { seededRng } from "../../../src/core/chance/chance.ts";
import { minutes, seconds } from "../../../src/core/time/time.ts";
import {
  type ComputeWorld,
  type ComputeWorldOptions,
  providerIdOf,
  startComputeWorld,
  zone,
} from "../../support/compute-world.ts";
import { allClear } from "../../support/machine-releaser.ts";

const requestId = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff";
const groupPath = `/zones/${zone}/instanceGroupManagers/gke-pool-grp`;
const never = new AbortController().signal;

let world: ComputeWorld;
afterEach(() => world.close());

async function start(options?: ComputeWorldOptions): Promise<ComputeWorld> {
  world = await startComputeWorld(options);
  return world;
}

function release(
  name: string,
  request: Partial<Pick<ReleaseRequest, "mode" | "requestId" | "lastLook">> = {},
): Promise<ReleaseResult> {
  const providerID = providerIdOf(name);
  const machineId = world.idOf(providerID) ?? "1";
  const usual = { providerID, machineId, mode: "Recreate", requestId, lastLook: allClear } as const;
  return world.pass(world.releaser.release({ ...usual, ...request }, never));
}

/** The requests that change something, with their content. */
function asks() {
  return world.server.log
    .filter(({ method, path }) => method !== "GET" && !path.endsWith("/wait"))
    .map(({ method, path, query, body }) => ({ method, path, query, body }));
}

it("createComputeEngine assembles a working client for a loopback endpoint", async () => {
  await start();
  const { id } = world.addMachine("n1");
  const { endpoint } = world.server;
  const settings = { endpoint, fetch, clock: world.clock, rng: seededRng(1) };
  const state = await createComputeEngine(settings).releaser.describe(providerIdOf("n1"), never);
  expect(state).toMatchObject({ kind: "Present", id });
  expect(world.server.log[0]?.authorization).toBeUndefined();
});

describe("the call that releases a machine", () => {
  const instances = [`zones/${zone}/instances/n1`];

  it.each([
    {
      mode: "Recreate",
      ask: { method: "POST", path: `${groupPath}/recreateInstances`, body: { instances } },
      sizeAfter: 1,
    },
    {
      mode: "Delete",
      ask: {
        method: "POST",
        path: `${groupPath}/deleteInstances`,
        body: { instances, skipInstancesOnValidationError: true },
      },
      sizeAfter: 0,
    },
    {
      mode: "DeleteInstance",
      ask: { method: "DELETE", path: `/zones/${zone}/instances/n1`, body: undefined },
      sizeAfter: 1,
    },
  ] as const)(
    "for $mode is sent once and leaves the group's target size at $sizeAfter",
    async (row) => {
      await start();
      world.addMachine("n1");
      expect(await release("n1", { mode: row.mode })).toEqual({ kind: "Released" });
      expect(asks()).toEqual([{ ...row.ask, query: { requestId } }]);
      expect(world.group.targetSize).toBe(row.sizeAfter);
    },
  );

  it("for a machine of a regional group is sent to, and waited for in, the region", async () => {
    await start();
    const place = { scope: "regions", location: "us-central1" } as const;
    const group = world.server.model.addGroup({ ...place, name: "regional-grp" });
    world.server.model.addMachine({ name: "n1", zone, group });
    await release("n1");
    const acts = world.acts();
    expect(acts[0]).toBe(
      "POST /regions/us-central1/instanceGroupManagers/regional-grp/recreateInstances",
    );
    expect(acts[1]).toMatch(/^POST \/regions\/us-central1\/operations\/operation-[^/]+\/wait$/);
  });

  it.each(["Recreate", "Delete"] as const)(
    "for %s of a machine without a group is rejected, naming the field and the fix",
    async (mode) => {
      await start();
      world.server.model.addMachine({ name: "n1", zone });
      const work = release("n1", { mode });
      await expect(work).rejects.toMatchObject({ code: "CLOUD_REFUSED", retryable: false });
      await expect(work).rejects.toThrow(
        `found no managed group (metadata item created-by) with instance.release: ${mode}, expected instance.release: DeleteInstance`,
      );
      expect(world.acts()).toEqual([]);
    },
  );

  it("for DeleteInstance needs no group", async () => {
    await start();
    world.server.model.addMachine({ name: "n1", zone });
    expect(await release("n1", { mode: "DeleteInstance" })).toEqual({ kind: "Released" });
    expect(world.idOf(providerIdOf("n1"))).toBeUndefined();
  });
});

describe("waiting", () => {
  it("lasts until the machine is gone, not only until the group's operation is done", async () => {
    // Scheduled after 1 s, gone 30 s later; the pauses between polls are at most 15 s.
    await start();
    world.addMachine("n1");
    await release("n1");
    expect(world.clock.monotonic()).toBeGreaterThanOrEqual(31_000);
    expect(world.clock.monotonic()).toBeLessThanOrEqual(46_000);
  });

  it("repeats the wait call every two minutes, since a request is held no longer", async () => {
    await start({ server: { timings: { stopMs: minutes(5) } } });
    world.addMachine("n1");
    expect(await release("n1", { mode: "DeleteInstance" })).toEqual({ kind: "Released" });
    // Held for 2, 2 and the last minute, with short pauses in between.
    expect(world.acts().filter((act) => act.endsWith("/wait"))).toHaveLength(3);
  });

  it("does not hammer a wait call that returns at once", async () => {
    await start({ server: { waitHoldMs: seconds(0), timings: { stopMs: minutes(5) } } });
    world.addMachine("n1");
    expect(await release("n1", { mode: "DeleteInstance" })).toEqual({ kind: "Released" });
    // Pauses of 4 to 8 s in the long run: at most 75 in five minutes, and a few more while they
    // grow.
    expect(world.acts().filter((act) => act.endsWith("/wait")).length).toBeLessThan(80);
  });

  it("ends by the machine's state if the cloud has forgotten the operation", async () => {
    await start();
    world.addMachine("n1");
    const work = release("n1");
    await world.passUntil(() => world.asked() === 1);
    world.server.model.forgetOperations();
    expect(await work).toEqual({ kind: "Released" });
  });

  it("gives up after the limit with a retryable fault", async () => {
    await start({ goneWithinMs: minutes(3) });
    world.addMachine("n1");
    world.server.model.abandonMachine(zone, "n1");
    const work = release("n1", { mode: "Delete" });
    await expect(work).rejects.toMatchObject({ code: "CLOUD_REFUSED", retryable: true });
    await expect(work).rejects.toThrow(
      "it is still RUNNING at the end of the wait, check whether it is still a member",
    );
  });
});

describe("before the act", () => {
  it("a stopping machine is only waited for", async () => {
    await start();
    world.addMachine("n1");
    world.server.model.preempt(zone, "n1");
    expect(await release("n1")).toEqual({ kind: "Released" });
    expect(world.acts()).toEqual([]);
  });

  it("a stopped machine counts as gone", async () => {
    await start();
    world.server.model.addMachine({ name: "n1", zone }).status = "TERMINATED";
    expect(await release("n1")).toEqual({ kind: "AlreadyGone" });
    expect(world.acts()).toEqual([]);
    const state = world.releaser.describe(providerIdOf("n1"), never);
    expect(await world.pass(state)).toMatchObject({ kind: "Present", running: false });
  });

  it("a machine that its group restarts with the same ID is a new boot and skipped", async () => {
    await start();
    const machine = world.server.model.addMachine({ name: "n1", zone, group: world.group });
    machine.status = "STOPPING";
    const work = release("n1");
    await world.passUntil(() => world.clock.monotonic() > 10_000);
    Object.assign(machine, { status: "RUNNING", startedAt: world.clock.now() });
    expect(await work).toEqual({ kind: "Released" });
    expect(world.acts()).toEqual([]);
  });

  it("a new machine that appeared during a retry is skipped", async () => {
    await start();
    world.addMachine("n1");
    const refusal = { kind: "Refuse", status: 403, reason: "rateLimitExceeded" } as const;
    world.server.failNext(refusal, { match: /recreateInstances/ });
    const work = release("n1");
    await world.passUntil(() => world.acts().length === 1);
    const newId = await world.replace(providerIdOf("n1"));
    await work;
    expect(world.asked()).toBe(0);
    expect(world.idOf(providerIdOf("n1"))).toBe(newId);
  });
});

describe("temporary faults", () => {
  it.each([
    { name: "a rate limit as 403", status: 403, reason: "rateLimitExceeded" },
    { name: "a rate limit as 429", status: 429, reason: "rateLimitExceeded" },
    { name: "a disk in use", status: 400, reason: "resourceInUseByAnotherResource" },
    { name: "a machine not ready", status: 400, reason: "resourceNotReady" },
    { name: "a 404 while the machine runs", status: 404, reason: "notFound" },
    { name: "an inner error", status: 503, reason: "backendError" },
  ])("$name is retried after another check of machine and node", async ({ status, reason }) => {
    await start();
    world.addMachine("n1");
    world.server.failNext({ kind: "Refuse", status, reason }, { match: /^DELETE/ });
    const sentBefore: number[] = [];
    const lastLook = () => {
      sentBefore.push(world.server.log.length);
      return allClear();
    };
    const work = release("n1", { mode: "DeleteInstance", lastLook });
    expect(await work).toEqual({ kind: "Released" });
    const story = world.server.log.slice(0, 4).map(({ method }) => method);
    expect(story).toEqual(["GET", "DELETE", "GET", "DELETE"]);
    expect(sentBefore).toEqual([1, 3]);
  });

  it("a lost response does not cause a second act", async () => {
    await start();
    world.addMachine("n1");
    world.server.failNext({ kind: "DropAfter" }, { match: /^DELETE/ });
    expect(await release("n1", { mode: "DeleteInstance" })).toEqual({ kind: "Released" });
    expect(asks()).toHaveLength(1);
  });

  it("a 404 that persists while the machine runs is reported, not believed", async () => {
    await start();
    const { providerID, id } = world.addMachine("n1");
    const refusal = { kind: "Refuse", status: 404, reason: "notFound" } as const;
    world.server.failNext(refusal, { times: 99, match: /^DELETE/ });
    const work = release("n1", { mode: "DeleteInstance" });
    await expect(work).rejects.toMatchObject({ code: "CLOUD_REFUSED", retryable: true });
    expect(world.idOf(providerID)).toBe(id);
  });

  it("a failed operation is requested again with another request ID", async () => {
    await start();
    world.addMachine("n1");
    const message = "The resource is not ready";
    const http = { httpStatus: 400, httpMessage: "BAD REQUEST" };
    world.server.model.failNextOperation({ code: "RESOURCE_NOT_READY", message, ...http });
    expect(await release("n1")).toEqual({ kind: "Released" });
    // The last group of the ID counts the failures.
    expect(asks().map(({ query }) => query.requestId)).toEqual([
      "6f9619ff-8b86-4d01-b42d-00cf4fc964ff",
      "6f9619ff-8b86-4d01-b42d-00cf4fc96500",
    ]);
  });
});

describe("permanent refusals", () => {
  it("an accepted request whose operation fails is a refusal", async () => {
    await start();
    const { providerID, id } = world.addMachine("n1");
    world.server.model.failNextOperation({
      code: "CONDITION_NOT_MET",
      message: "The group is busy updating.",
      httpStatus: 412,
      httpMessage: "PRECONDITION FAILED",
    });
    const work = release("n1");
    await expect(work).rejects.toMatchObject({ code: "CLOUD_REFUSED", retryable: false });
    await expect(work).rejects.toThrow(
      "Cannot recreate n1 in the group gke-pool-grp: Compute Engine answered 412 CONDITION_NOT_MET (The group is busy updating)",
    );
    expect(world.idOf(providerID)).toBe(id);
  });

  it("deletion protection is named", async () => {
    await start();
    world.server.model.addMachine({ name: "n1", zone, deletionProtection: true });
    const work = release("n1", { mode: "DeleteInstance" });
    await expect(work).rejects.toMatchObject({ code: "CLOUD_REFUSED", retryable: false });
    await expect(work).rejects.toThrow("expected a machine without deletion protection");
  });

  it("a machine that its group does not know is rejected", async () => {
    await start();
    world.addMachine("n1");
    world.server.model.abandonMachine(zone, "n1");
    await expect(release("n1")).rejects.toMatchObject({ code: "CLOUD_REFUSED", retryable: false });
  });

  it.each([
    { mode: "Recreate", permission: "compute.instances.get" },
    { mode: "Recreate", permission: "compute.instanceGroupManagers.update" },
    { mode: "Delete", permission: "compute.zoneOperations.get" },
    { mode: "DeleteInstance", permission: "compute.instances.delete" },
  ] as const)("$mode without $permission names it", async ({ mode, permission }) => {
    await start();
    world.addMachine("n1");
    world.server.deny(permission);
    const work = release("n1", { mode });
    await expect(work).rejects.toMatchObject({ code: "CLOUD_RIGHT_MISSING", retryable: false });
    await expect(work).rejects.toThrow(`expected the permission ${permission}`);
  });

  it.each(["00000000-0000-0000-0000-000000000000", "departure-1", ""])(
    "the request ID %j is rejected before anything is sent",
    async (bad) => {
      await start();
      world.addMachine("n1");
      const work = release("n1", { requestId: bad });
      await expect(work).rejects.toThrow("expected a UUID other than zero");
      expect(world.server.log).toEqual([]);
    },
  );
});

it("no mode uses a permission that is not listed for it", async () => {
  for (const mode of ["Recreate", "Delete", "DeleteInstance"] as const) {
    await start();
    world.addMachine("n1");
    await release("n1", { mode });
    const listed = permissionsFor({ mode, preemptionPoll: false });
    const names = listed.map(({ permission }) => permission);
    expect(names).toEqual(expect.arrayContaining([...world.server.permissionsUsed]));
    await world.close();
  }
});

const uid = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff";

it.each([
  [0, uid],
  [1, "6f9619ff-8b86-4d01-b42d-00cf4fc96500"],
  [2, "6f9619ff-8b86-4d01-b42d-00cf4fc96501"],
])("after %i failures the request ID is %s", (failures, expected) => {
  expect(requestIdAfter(uid, failures)).toBe(expected);
  expect(() => checkRequestId(expected)).not.toThrow();
});

it("the count wraps around within the last group of the ID", () => {
  const last = "6f9619ff-8b86-4d01-b42d-ffffffffffff";
  expect(requestIdAfter(last, 1)).toBe("6f9619ff-8b86-4d01-b42d-000000000000");
});
