import { afterEach, describe, expect, it } from "vitest";
import { azurePermissions } from "../../../src/cloud/azure/permissions.ts";
import type { ReleaseRequest } from "../../../src/contracts/cloud.ts";
import { minutes } from "../../../src/core/time/time.ts";
import { cluster, scaleSet, singles } from "../../support/arm-server.ts";
import { type AzureWorld, providerIdOf, startAzureWorld } from "../../support/azure-world.ts";

type Mode = ReleaseRequest["mode"];
interface Machine {
  readonly providerID: string;
  readonly id: string;
}

const never = new AbortController().signal;
const lastLook = () => Promise.resolve("Clear" as const);
const requestId = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff";

let world: AzureWorld;
afterEach(() => world.close());

async function start(settings?: Parameters<typeof startAzureWorld>[0]): Promise<Machine> {
  world = await startAzureWorld(settings);
  return world.addMachine("n1");
}

function check({ providerID }: Machine, mode: Mode = "Recreate") {
  return world.pass(world.releaser.check({ providerID, mode }, never));
}

function release({ providerID, id }: Machine, mode: Mode = "Recreate") {
  const request = { providerID, machineId: id, mode, requestId, lastLook };
  return world.pass(world.releaser.release(request, never));
}

function machineOf({ providerID }: Machine) {
  const machine = world.server.find(providerID.split("/").at(-1));
  if (machine === undefined) throw new Error(`no machine ${providerID}`);
  return machine;
}

/** All requests but reads, as `POST path`. */
function acts(): readonly string[] {
  return world.server.requests
    .filter(({ method }) => method !== "GET")
    .map(({ method, url }) => `${method} ${url}`);
}

describe("a machine of a node pool", () => {
  it.each(["Recreate", "Delete"] as const)("is released through its pool: %s", async (mode) => {
    const machine = await start();
    expect(await release(machine, mode)).toEqual({ kind: "Released" });
    expect(acts()).toEqual([
      `POST ${cluster}/agentPools/spot/deleteMachines?api-version=2026-04-01`,
    ]);
    const { body } = world.server.requests.find(({ method }) => method === "POST") ?? {};
    expect(JSON.parse(body ?? "")).toEqual({ machineNames: ["aks-spot-1-vmss000000"] });
  });

  it("is not recreated if the pool has no autoscaler, as the check reports", async () => {
    const machine = await start();
    world.server.isAutoscaled = false;
    const problem = expect.stringContaining("set instance.release to Delete");
    expect(await check(machine)).toEqual({ kind: "Impossible", problem });
    await expect(release(machine)).rejects.toMatchObject({
      code: "CLOUD_REFUSED",
      retryable: false,
      message: problem,
    });
    expect(await check(machine, "Delete")).toMatchObject({ kind: "Possible" });
    expect(acts()).toEqual([]);
  });

  it("is not deleted past AKS", async () => {
    const machine = await start();
    const problem = expect.stringContaining("set instance.release to Delete");
    expect(await check(machine, "DeleteInstance")).toEqual({ kind: "Impossible", problem });
    await expect(release(machine, "DeleteInstance")).rejects.toMatchObject({ message: problem });
    expect(acts()).toEqual([]);
  });

  it.each([
    ["by the managedBy field of the nodes' resource group", {}, () => {}],
    [
      "by the group's tags",
      {},
      () => {
        world.server.managedBy = undefined;
        world.server.groupTags = {
          "aks-managed-cluster-name": "main",
          "aks-managed-cluster-rg": "shop",
        };
      },
    ],
    [
      "by --aks-cluster",
      { cluster: "shop/main" },
      () => {
        world.server.managedBy = undefined;
      },
    ],
  ])("finds its cluster %s", async (_, settings, make) => {
    const machine = await start(settings);
    make();
    expect(await release(machine)).toEqual({ kind: "Released" });
  });

  it("cannot be checked if its cluster is not found, with a hint at --aks-cluster", async () => {
    const machine = await start();
    world.server.managedBy = undefined;
    await expect(check(machine)).rejects.toMatchObject({
      code: "CLOUD_REFUSED",
      message: expect.stringContaining("--aks-cluster"),
    });
  });
});

describe("a machine outside node pools", () => {
  it.each(["Recreate", "DeleteInstance"] as const)("is not released: %s", async (mode) => {
    const machine = await start();
    world.server.hasPoolTag = false;
    const problem = expect.stringContaining("set instance.release to None");
    expect(await check(machine, mode)).toEqual({ kind: "Impossible", problem });
    expect(acts()).toEqual([]);
  });
});

describe("a missing permission", () => {
  it("is named by the check, before any change", async () => {
    const machine = await start();
    world.server.granted = ["Microsoft.ContainerService/managedClusters/*/read"];
    expect(await check(machine)).toEqual({
      kind: "Impossible",
      problem: expect.stringContaining(
        "the permission Microsoft.ContainerService/managedClusters/agentPools/deleteMachines/action is not granted on",
      ),
    });
    expect(acts()).toEqual([]);
  });

  it("is unknown and blocks nothing if Azure does not reveal it", async () => {
    const machine = await start();
    world.server.denied = /microsoft\.authorization/;
    expect(await check(machine)).toMatchObject({ kind: "Possible", permission: "Unknown" });
  });

  it("to poll the operation fails no release, since the machine is polled too", async () => {
    const machine = await start();
    world.server.denied = /locations\/x\/operations/;
    expect(await release(machine)).toEqual({ kind: "Released" });
  });
});

describe("an operation", () => {
  it.each(["Azure-AsyncOperation", "Location"] as const)(
    "is polled through its header %s",
    async (follow) => {
      const machine = await start();
      world.server.follow = follow;
      expect(await release(machine)).toEqual({ kind: "Released" });
      const polls = world.server.requests.filter(({ url }) => url.includes("/operations/"));
      // It takes 30 s: polled after the 10 s of the first Retry-After, then every 5 s.
      expect(polls).toHaveLength(5);
    },
  );

  it("that fails temporarily is requested again", async () => {
    const machine = await start();
    world.server.failNext = { code: "OperationNotAllowed", message: "Another one is in progress." };
    expect(await release(machine)).toEqual({ kind: "Released" });
    expect(world.asked()).toBe(2);
  });

  it("that fails permanently ends the release with Azure's message", async () => {
    const machine = await start();
    world.server.failNext = { code: "QuotaExceeded", message: "No room." };
    await expect(release(machine)).rejects.toMatchObject({
      code: "CLOUD_REFUSED",
      retryable: false,
      message: expect.stringContaining("Azure answered QuotaExceeded (No room)"),
    });
    expect(machineOf(machine).provisioning).toBe("Succeeded");
  });

  it.each([
    ["OperationNotAllowed", 409, "released"],
    ["ScopeLocked", 409, "expected no lock on the resource"],
    ["RequestDisallowedByPolicy", 403, "expected no Azure policy that forbids it"],
  ])("that is rejected with %s, %i, ends as: %s", async (code, status, end) => {
    const machine = await start();
    world.server.refuseNext = { status, code, message: "No." };
    const work = release(machine);
    if (end === "released") expect(await work).toEqual({ kind: "Released" });
    else {
      await expect(work).rejects.toMatchObject({
        retryable: false,
        message: expect.stringContaining(end),
      });
    }
  });
});

describe("a machine that has changed", () => {
  it("is skipped if another one has taken its place", async () => {
    const machine = await start();
    await world.replace(machine.providerID);
    expect(await release(machine)).toEqual({ kind: "Replaced" });
    expect(acts()).toEqual([]);
  });

  it("counts as gone if an eviction has deallocated it", async () => {
    const machine = await start();
    machineOf(machine).power = "deallocated";
    expect(await release(machine)).toEqual({ kind: "AlreadyGone" });
  });

  it("is gone with the scale set of its node pool", async () => {
    const machine = await start();
    world.server.hasScaleSet = false;
    expect(await world.pass(world.releaser.describe(machine.providerID, never))).toEqual({
      kind: "Absent",
    });
    expect(await release(machine)).toEqual({ kind: "AlreadyGone" });
    expect(await world.pass(world.launchTimes.launchTimesOf([machine.providerID], never))).toEqual({
      bornAt: new Map(),
      faults: [],
    });
  });

  it("is not known to be gone if its resource group is not found", async () => {
    const machine = await start();
    world.server.hasNodeGroup = false;
    await expect(
      world.pass(world.releaser.describe(machine.providerID, never)),
    ).rejects.toMatchObject({ code: "CLOUD_REFUSED", retryable: true });
  });

  it("is only waited for if somebody else deletes it", async () => {
    const machine = await start();
    world.server.delete(machineOf(machine), { status: "InProgress" });
    expect(await release(machine)).toEqual({ kind: "Released" });
    expect(acts()).toEqual([]);
  });

  it("fails as retryable with its state if it is not gone in time", async () => {
    const machine = await start();
    machineOf(machine).provisioning = "Deleting";
    await expect(release(machine)).rejects.toMatchObject({
      retryable: true,
      message: expect.stringContaining(
        "found it still Deleting, PowerState/running at the end of the wait",
      ),
    });
    expect(world.clock.monotonic()).toBeGreaterThanOrEqual(minutes(20));
  });
});

it.each([
  ...["azure:///subscriptions/s", `azure://${scaleSet}/virtualMachines/a b`, "gce://p/z/n"],
  ...["..", "."].flatMap((step) => [
    `azure://${scaleSet}/virtualMachines/${step}`,
    `azure://${scaleSet.replace(/[^/]+$/, step)}/virtualMachines/0`,
    `azure://${scaleSet.replace(/(?<=resourceGroups\/)[^/]+/, step)}/virtualMachines/0`,
    `azure://${scaleSet.replace(/(?<=subscriptions\/)[^/]+/, step)}/virtualMachines/0`,
  ]),
])("%s is rejected as a providerID", async (id) => {
  await start();
  await expect(world.releaser.describe(id, never)).rejects.toMatchObject({
    code: "CLOUD_REFUSED",
    message: expect.stringContaining("expected azure:///subscriptions/"),
  });
});

it("a launch time is found whatever the case of the ID", async () => {
  const machine = await start();
  const upper = providerIdOf("0").replace("resourceGroups/MC_shop", "resourcegroups/mc_SHOP");
  const told = await world.pass(world.launchTimes.launchTimesOf([upper], never));
  expect(told.bornAt.get(upper)).toBe(machineOf(machine).createdAt);
});

it("the machines of a scale set are listed by one of them", async () => {
  const first = await start();
  world.server.addMachine();
  const found = await world.pass(world.groupsOf([providerIdOf("0")], never));
  expect(found.map((one) => one.toLowerCase())).toEqual(
    world.server.machines.map(({ instance }) => providerIdOf(instance).toLowerCase()),
  );
  expect(found).toHaveLength(2);
  expect(machineOf(first)).toBeDefined();
});

describe("the machines next to an AKS machine", () => {
  const karpenters = { "karpenter.azure.com_cluster": "main", "karpenter.sh_nodepool": "spot" };

  /** Machines without a scale set, each with its tags, named n0, n1 and so on. */
  function addSingles(...all: readonly Readonly<Record<string, string>>[]): void {
    const createdAt = world.clock.now();
    const made = all.map((tags, place) => ({ name: `n${place}`, tags, createdAt }));
    world.server.singles.push(...made);
  }

  const beside = (...providerIDs: readonly string[]) =>
    world.pass(world.groupsOf(providerIDs, never));
  const named = (...names: readonly string[]) => names.map((name) => `azure://${singles}/${name}`);

  it("are those of Karpenter or a pool in its resource group, and no others", async () => {
    await start();
    addSingles(
      karpenters,
      { Name: "jump-host" },
      { "aks-managed-poolName": "spot" },
      {},
      // Azure keeps the case in which a tag was written, but ignores it when comparing.
      { "AKS-Managed-PoolName": "spot" },
    );
    const nodes = named("n0", "n2", "n4");
    const [ofSet, ...others] = await beside(nodes[0] ?? "");
    expect([ofSet?.toLowerCase(), ...others]).toEqual([providerIdOf("0").toLowerCase(), ...nodes]);
    expect((await beside(providerIdOf("0"))).slice(1)).toEqual(nodes);
  });

  it("are those of every pool's scale sets, including one without a node", async () => {
    await start();
    const tags = { "aks-managed-poolName": "apps" };
    world.server.otherSets.push(
      { name: "aks-apps-1-vmss", tags, instances: ["0", "1"] },
      { name: "runners", tags: {}, instances: ["0"] },
    );
    const apps = ["0", "1"].map((one) =>
      providerIdOf(one).replace("aks-spot-1-vmss", "aks-apps-1-vmss"),
    );
    const found = await beside(providerIdOf("0"));
    expect(found.map((one) => one.toLowerCase()).sort()).toEqual(
      [providerIdOf("0"), ...apps].map((one) => one.toLowerCase()).sort(),
    );
  });

  it("are those of the scale sets of all nodes if scale sets may not be listed", async () => {
    await start();
    world.server.otherSets.push({ name: "runners", tags: {}, instances: ["0", "7"] });
    world.server.denied = /virtualmachinescalesets$/;
    const runner = providerIdOf("0").replace("aks-spot-1-vmss", "runners");
    const found = await beside(
      providerIdOf("0").toUpperCase().replace("AZURE:", "azure:"),
      runner,
      providerIdOf("0"),
    );
    expect(found.map((one) => one.toLowerCase())).toEqual(
      [providerIdOf("0"), runner, runner.replace(/0$/, "7")].map((one) => one.toLowerCase()),
    );
  });

  it("are not read for ever if a page names itself as the next one", async () => {
    await start();
    world.server.singles.push({ name: "one", tags: {}, createdAt: world.clock.now() });
    world.server.pageSize = 0;
    await expect(beside(`azure://${singles}/one`)).rejects.toMatchObject({
      code: "CLOUD_UNREACHABLE",
    });
    expect(world.server.requests.filter(({ url }) => url.includes("$skiptoken"))).toHaveLength(1);
  });

  it("are read page by page", async () => {
    await start();
    world.server.pageSize = 2;
    world.server.denied = /virtualmachinescalesets$/;
    addSingles(karpenters, karpenters, karpenters, karpenters, karpenters);
    expect(await beside(named("n0")[0] ?? "")).toEqual(named("n0", "n1", "n2", "n3", "n4"));
  });

  it("are read with the role's permissions, for a machine in no scale set with one", async () => {
    await start();
    world.server.denied = /virtualmachinescalesets$/;
    addSingles(karpenters);
    await beside(named("n0")[0] ?? "");
    const asked = world.server.requests.map(({ url }) => url.replace(/\?.*/, ""));
    // Listing the scale sets is tried, but not required.
    expect(asked).toEqual([scaleSet.slice(0, scaleSet.lastIndexOf("/")), singles]);
    world.server.denied = /\/virtualmachine(scaleset)?s$/;
    const missing = "Microsoft.Compute/virtualMachines/read";
    await expect(beside(named("n0")[0] ?? "")).rejects.toMatchObject({
      ...{ code: "CLOUD_RIGHT_MISSING", message: expect.stringContaining(missing) },
    });
    expect(azurePermissions.map(({ action }) => action)).toContain(missing);
  });
});
