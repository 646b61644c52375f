import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { permissionsFor } from "../../../src/cloud/gcp/permissions.ts";
import {
  type ComputeWorld,
  providerIdOf,
  startComputeWorld,
  zone,
} from "../../support/compute-world.ts";

const never = new AbortController().signal;

let world: ComputeWorld;
beforeEach(async () => {
  world = await startComputeWorld();
});
afterEach(() => world.close());

const beside = (...names: readonly string[]) =>
  world.pass(world.releaser.groupsOf(names.map(providerIdOf), never));

describe("the group of a machine", () => {
  it("is all its running machines, and no others", async () => {
    for (const name of ["n1", "n2", "n3"]) world.addMachine(name);
    world.server.model.addMachine({ name: "alone", zone });
    world.server.model.machine(zone, "n3").status = "STOPPING";
    expect(await beside("n1")).toEqual([providerIdOf("n1"), providerIdOf("n2")]);
  });

  it("is read with the permissions of the group modes", async () => {
    world.addMachine("n1");
    await beside("n1");
    const use = { mode: "Recreate", preemptionPoll: false } as const;
    const names = permissionsFor(use).map(({ permission }) => permission);
    expect(names).toEqual(expect.arrayContaining([...world.server.permissionsUsed]));
  });

  it("is empty for a machine without a group, and for one that is gone", async () => {
    world.server.model.addMachine({ name: "alone", zone });
    expect(await beside("alone")).toEqual([]);
    expect(await beside("gone")).toEqual([]);
  });
});

describe("the groups of machines", () => {
  const calls = (part: string) => world.server.log.filter(({ path }) => path.includes(part)).length;

  it("are all their groups, each requested once through one of its machines", async () => {
    const { model } = world.server;
    const groups = ["spot", "demand"].map((name) =>
      model.addGroup({ scope: "zones", location: zone, name }),
    );
    const names = groups.flatMap(({ name }) => ["aaaa", "bbbb"].map((end) => `${name}-${end}`));
    for (const name of names) {
      const group = groups.find((one) => name.startsWith(one.name));
      model.addMachine({ name, zone, ...(group && { group }) });
    }
    expect(await beside("spot-aaaa", "spot-bbbb", "demand-aaaa")).toEqual(names.map(providerIdOf));
    expect([calls("listManagedInstances"), calls("/instances/")]).toEqual([2, 2]);
  });

  it("are looked up for at most 20 machines", async () => {
    const names = Array.from({ length: 30 }, (_, place) => `pool${place}-aaaa`);
    for (const name of names) world.server.model.addMachine({ name, zone });
    await beside(...names);
    expect(calls("/instances/")).toBe(20);
  });
});

describe("the machines of a GKE cluster", () => {
  const ofMain = { "goog-k8s-cluster-name": "main", "goog-k8s-cluster-location": "us-central1" };
  const elsewhere = "us-central1-b";

  /** Machines without a group, each with its labels, named n0, n1 and so on. */
  function addLabelled(...all: readonly Readonly<Record<string, string>>[]): void {
    for (const [place, labels] of all.entries()) {
      world.server.model.addMachine({ name: `n${place}`, zone, labels });
    }
  }

  it("are all running ones with its labels, in every zone and also without a group", async () => {
    addLabelled(ofMain, {}, ofMain, { "goog-k8s-cluster-name": "main-2" }, ofMain);
    world.server.model.addMachine({ name: "far", zone: elsewhere, labels: ofMain });
    world.server.model.addMachine({ name: "other", zone: "europe-west1-b" });
    world.server.model.machine(zone, "n4").status = "STOPPING";
    expect(await beside("n0")).toEqual([
      ...["n0", "n2"].map(providerIdOf),
      `gce://project1/${elsewhere}/far`,
    ]);
  });

  it("exclude those of a cluster with the same name in another location", async () => {
    const abroad = { ...ofMain, "goog-k8s-cluster-location": "europe-west1" };
    // As created by an older Karpenter, which sets no location.
    addLabelled(ofMain, abroad, { "goog-k8s-cluster-name": "main" });
    expect(await beside("n0")).toEqual(["n0", "n2"].map(providerIdOf));
    expect(await beside("n1")).toEqual(["n1", "n2"].map(providerIdOf));
  });

  it("are added to the group of a machine that has both, each once", async () => {
    addLabelled(ofMain);
    const { group } = world;
    world.server.model.addMachine({ name: "both", zone, group, labels: ofMain });
    world.addMachine("old");
    expect(await beside("both")).toEqual(["both", "old", "n0"].map(providerIdOf));
  });

  it("are read page by page", async () => {
    addLabelled(...Array.from({ length: 501 }, () => ofMain));
    expect(await beside("n0")).toHaveLength(501);
  });

  it("are read with permissions that every mode has", async () => {
    addLabelled(ofMain);
    await beside("n0");
    const use = { mode: "None", preemptionPoll: false } as const;
    const names = permissionsFor(use).map(({ permission }) => permission);
    expect(names).toEqual(expect.arrayContaining([...world.server.permissionsUsed]));
    expect(world.server.permissionsUsed.size).toBe(2);
  });

  it("are not requested by an invalid label", async () => {
    addLabelled({ "goog-k8s-cluster-name": '" OR name = "x' }, {});
    expect(await beside("n0")).toEqual([]);
    expect(world.server.log.map(({ path }) => path)).not.toContain("/aggregated/instances");
  });

  it("cannot be read if Compute Engine returns no list", async () => {
    addLabelled(ofMain);
    const text = JSON.stringify({ items: "none" });
    world.server.failNext({ kind: "Text", text }, { times: 4, match: /aggregated/ });
    await expect(beside("n0")).rejects.toMatchObject({ code: "CLOUD_UNREACHABLE" });
  });
});
