import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { makeFakeAz } from "../support/fake-az.ts";
import type { FakeTools } from "../support/fake-tools.ts";
import { runSetupOn } from "../support/run-setup.ts";

const subscription = "1b2e6f80-0000-4000-8000-000000000000";
const plain = {
  cloud: "azure",
  subscription,
  resourceGroup: "shop",
  cluster: "main",
  serviceAccount: "lastcall",
  managedIdentity: "lastcall",
  role: "lastcall",
};
const clusterId = `/subscriptions/${subscription}/resourceGroups/shop/providers/Microsoft.ContainerService/managedClusters/main`;
const marked = {
  "annotation-lastcall-azure.workload.identity_client-id": "client-1",
  "annotation-lastcall-lastcall.dev_identity": `/subscriptions/${subscription}/resourceGroups/shop/providers/Microsoft.ManagedIdentity/userAssignedIdentities/lastcall/client-1`,
};
const issuer = "https://westeurope.oic.prod-aks.azure.com/tenant/cluster/";

let az: FakeTools;
beforeEach(() => {
  az = makeFakeAz();
  for (const what of ["webhook", "service-account"]) az.put(what);
  az.put("cluster", issuer);
});
afterEach(() => az.remove());

const writes = /\|(create|update|delete|annotate)\|/;
const changes = () => az.calls().filter((call) => writes.test(call));
const setup = (options: object) => runSetupOn(az, { ...plain, ...options });

function actionsOf(role: string): readonly string[] {
  return JSON.parse(az.standing()[`role-${role}`] ?? "{}").Actions;
}

describe("lastcall setup azure", () => {
  it("grants each role only on its own scope, and the identity to one ServiceAccount", async () => {
    expect(await setup({})).toMatchObject({ code: 0, err: "" });
    const group = `/subscriptions/${subscription}/resourceGroups`;
    expect(az.standing()).toMatchObject({
      "grant-lastcall-cluster": `${group}/shop/providers/Microsoft.ContainerService/managedClusters/main principal-1`,
      "grant-lastcall-nodes": `${group}/MC_shop_main_westeurope principal-1`,
      "grant-lastcall-operations": `/subscriptions/${subscription} principal-1`,
      credential: `system:serviceaccount:lastcall:lastcall by ${issuer}`,
      ...marked,
    });
    expect(actionsOf("lastcall-operations")).toEqual([
      "Microsoft.ContainerService/locations/operations/read",
    ]);
    expect(actionsOf("lastcall-cluster")).toContain(
      "Microsoft.ContainerService/managedClusters/agentPools/deleteMachines/action",
    );
  });

  it("creates nothing when run again", async () => {
    await setup({});
    const made = az.standing();
    az.forget();
    expect(await setup({})).toMatchObject({ code: 0, err: "" });
    expect(az.standing()).toEqual(made);
    expect(changes().filter((call) => call.includes("|create|"))).toEqual([]);
  });

  it("removes everything with --undo, and nothing when run again", async () => {
    const before = az.standing();
    await setup({});
    expect(await setup({ undo: true })).toMatchObject({ code: 0, err: "" });
    expect(az.standing()).toEqual(before);
    az.forget();
    expect(await setup({ undo: true })).toMatchObject({ code: 0, err: "" });
    expect(changes()).toEqual([]);
  });

  it("takes the same names in another case for the same cluster, as Azure does", async () => {
    await setup({});
    expect(await setup({ resourceGroup: "Shop" })).toMatchObject({ code: 0, err: "" });
    expect((await setup({ resourceGroup: "SHOP", undo: true })).code).toBe(0);
    expect(az.has("identity")).toBe(false);
  });

  it("fails with --undo if the annotation stays because kubectl failed, and removes it later", async () => {
    const before = az.standing();
    await setup({});
    az.put("cluster-gone");
    const { code, err, out } = await setup({ undo: true });
    expect(code).toMatchObject({ code: "SCRIPT_FAILED" });
    expect(err).toContain(
      "Not finished: kubectl failed, so the annotation azure.workload.identity/client-id of",
    );
    expect(out).not.toContain("Done");
    expect(az.standing()).toEqual({ ...before, ...marked, "cluster-gone": "" });
    rmSync(`${az.folder}/has-cluster-gone`);
    expect(await setup({ undo: true })).toMatchObject({ code: 0, err: "" });
    expect(az.standing()).toEqual(before);
  });

  it("links the ServiceAccount again if its identity was deleted and has another client id", async () => {
    await setup({});
    az.put(
      "annotation-lastcall-lastcall.dev_identity",
      `${marked["annotation-lastcall-lastcall.dev_identity"].replace(/client-1$/, "client-0")}`,
    );
    az.put("annotation-lastcall-azure.workload.identity_client-id", "client-0");
    expect(await setup({})).toMatchObject({ code: 0, err: "" });
    expect(az.standing()).toMatchObject(marked);
  });

  it("removes with --undo the annotation for an identity that is gone", async () => {
    const before = az.standing();
    await setup({});
    for (const what of Object.keys(az.standing())) {
      if (/^(identity|credential|grant-.*)$/.test(what)) rmSync(`${az.folder}/has-${what}`);
    }
    expect(await setup({ undo: true })).toMatchObject({ code: 0, err: "" });
    expect(az.standing()).toEqual(before);
  });

  it.each([
    [
      "a cluster of the same name elsewhere",
      { subscription: "1b2e6f80-0000-4000-8000-000000000001" },
    ],
    ["an installation in another namespace", { namespace: "other" }],
    ["another ServiceAccount", { serviceAccount: "other" }],
  ])("keeps with --undo what was made for %s", async (_, other) => {
    await setup({});
    const before = az.standing();
    const { code } = await setup({ undo: true, ...other });
    expect(code).toMatchObject({ code: "SCRIPT_FAILED" });
    expect(az.standing()).toEqual(before);
  });

  it("names with --undo what still has a role whose identity is gone", async () => {
    expect((await setup({})).code).toBe(0);
    // Azure keeps the assignments of an identity that somebody deletes.
    rmSync(`${az.folder}/has-identity`);
    const { code, out, err } = await setup({ undo: true });
    expect(code).toMatchObject({ code: "SCRIPT_FAILED" });
    expect(out).not.toContain("Done");
    const list = `az role assignment list --subscription ${subscription} --all`;
    expect(err).toContain(list);
    const command = /^az role assignment list .*$/m.exec(err)?.[0] ?? "";
    const listed = spawnSync("bash", ["-c", command], { env: { PATH: az.path }, encoding: "utf8" });
    expect(listed).toMatchObject({ status: 0, stdout: "grant-lastcall-cluster\n" });
  });

  it("waits for a new identity to propagate", async () => {
    az.put("slow-principal");
    expect((await setup({})).code).toBe(0);
    expect(az.calls()).toContain("sleep|5");
  });
});

describe("lastcall setup azure changes nothing", () => {
  it.each<[string, string, string, string]>([
    [
      "if the identity belongs to somebody else",
      "identity",
      "None",
      "the identity lastcall already exists",
    ],
    [
      "if a role belongs to somebody else",
      "role-lastcall-nodes",
      '{"Name": "lastcall-nodes", "Description": "Ours"}',
      "the role lastcall-nodes already exists for another purpose (Ours)",
    ],
    [
      "if the identity belongs to an installation in another namespace",
      "identity",
      `${clusterId} other/lastcall`,
      `without the tags lastcall-cluster=${clusterId} and lastcall-account=lastcall/lastcall`,
    ],
    ...["main", clusterId].map(
      (former) =>
        [
          `if the identity has the mark of an earlier version, ${former}`,
          "identity",
          former,
          `userAssignedIdentities/lastcall --operation merge --tags lastcall-cluster=${clusterId} lastcall-account=lastcall/lastcall`,
        ] as [string, string, string, string],
    ),
    [
      "if a role belongs to a cluster of the same names in another subscription",
      "role-lastcall-nodes",
      '{"Name": "lastcall-nodes", "Description": "Made by lastcall setup azure for /subscriptions/other/resourceGroups/shop/providers/Microsoft.ContainerService/managedClusters/main"}',
      "the role lastcall-nodes already exists for another purpose",
    ],
    [
      "if a role belongs to an installation in another namespace of the cluster",
      "role-lastcall-nodes",
      `{"Name": "lastcall-nodes", "Description": "Made by lastcall setup azure for ${clusterId} and other/lastcall"}`,
      "the role lastcall-nodes already exists for another purpose",
    ],
    [
      "if a role has the description of an earlier version, which names no ServiceAccount",
      "role-lastcall-nodes",
      `{"Name": "lastcall-nodes", "Description": "Made by lastcall setup azure for ${clusterId}"}`,
      "remove it with lastcall setup azure --undo of that version",
    ],
    [
      "if a role has the description of an earlier version",
      "role-lastcall-nodes",
      '{"Name": "lastcall-nodes", "Description": "Made by lastcall setup azure for the cluster main in shop"}',
      "remove it with lastcall setup azure --undo of that version",
    ],
    ["if the cluster has no issuer", "cluster", "", "az aks update"],
  ])("%s", async (_, what, content, sentence) => {
    az.put(what, content);
    const before = az.standing();
    const { code, err } = await setup({});
    expect(code).toMatchObject({ code: "SCRIPT_FAILED", exitCode: 1 });
    expect(err).toContain(sentence);
    expect(err).toContain("Not finished: nothing was changed\n");
    expect(az.standing()).toEqual(before);
    expect(changes()).toEqual([]);
  });

  it("without --apply", async () => {
    expect((await setup({ apply: false })).out).toMatch(/^#!\/usr\/bin\/env bash\n/);
    expect(az.calls()).toEqual([]);
  });

  it.each(["subscription", "resource-group", "cluster"])("without --%s", async (flag) => {
    const field = flag === "resource-group" ? "resourceGroup" : flag;
    const { code } = await setup({ [field]: undefined });
    expect(code).toMatchObject({ code: "USAGE", exitCode: 2 });
    expect(String(code)).toContain(`Cannot set up azure: --${flag} is required`);
    expect(az.calls()).toEqual([]);
  });
});
