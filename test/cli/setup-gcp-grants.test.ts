import { spawnSync } from "node:child_process";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { makeFakeGcloud } from "../support/fake-gcloud.ts";
import { runSetupOn } from "../support/run-setup.ts";

const accountName = "lastcall-shop@my-project-1.iam.gserviceaccount.com";
const member = `serviceAccount:${accountName}`;
const account = { googleServiceAccount: "lastcall-shop" };
const condition = "with a condition";

let gcloud: ReturnType<typeof makeFakeGcloud>;
let printed: string;
let said: string;

beforeEach(() => {
  gcloud = makeFakeGcloud();
  [printed, said] = ["", ""];
});
afterEach(() => gcloud.remove());

async function codeOf(options: Readonly<Record<string, unknown>>): Promise<unknown> {
  const defaults = {
    ...{ cloud: "gcp", project: "my-project-1", serviceAccount: "lastcall", role: "lastcall" },
    release: "Recreate",
  };
  const { code, out, err } = await runSetupOn(gcloud, { ...defaults, ...options });
  printed += out;
  said += err;
  return code;
}

describe("lastcall setup gcp and what others granted", () => {
  it.each([
    ["another role over it", "binding", "user:a@example.com\troles/iam.serviceAccountTokenCreator"],
    ["other work for it", "other-roles", `roles/storage.admin\t${member}`],
  ] as const)("keeps an account of its own if others have %s", async (_, what, content) => {
    gcloud.put("service-account");
    await codeOf(account);
    const { binding = "" } = gcloud.standing();
    gcloud.put(what, what === "binding" ? `${binding}\n${content}` : content);
    expect(await codeOf({ ...account, undo: true })).toBe(0);
    expect(gcloud.standing()).toMatchObject({ account: "", [what]: content });
    expect(printed).toContain(`Kept: the account ${accountName}`);
    expect(printed).toContain(content.split("\t")[what === "binding" ? 1 : 0]);
  });

  it("says who gets a deleted role back, and takes nothing from them", async () => {
    await codeOf({ namespace: "other" });
    const { grant } = gcloud.standing();
    gcloud.put("role-deleted");
    gcloud.forget();
    expect(await codeOf({})).toBe(0);
    const update = gcloud.calls().find((call) => call.startsWith("gcloud|iam|roles|update"));
    expect(update).toContain("|--add-permissions|");
    expect(printed).toContain(`so it keeps the permissions that it has:\n${grant}\n`);
  });

  it("keeps a role that others have on a single resource", async () => {
    await codeOf({});
    const instance = "//compute.googleapis.com/projects/my-project-1/zones/z/instances/one";
    const path = "projects/my-project-1/roles/lastcall";
    const near = `${path}2\t${instance}\tuser:b@example.com`;
    gcloud.put("elsewhere", `${near}\n${path}\t${instance}\tuser:a@example.com`);
    expect(await codeOf({ undo: true })).toBe(0);
    expect(printed).toContain(`others have on single resources:\n${instance} user:a@example.com\n`);
    expect(printed).not.toContain("user:b@example.com");
    expect(gcloud.has("grant")).toBe(false);
    expect(gcloud.has("role-deleted")).toBe(false);
    gcloud.put("elsewhere", near);
    expect(await codeOf({ undo: true })).toBe(0);
    expect(gcloud.has("role-deleted")).toBe(true);
  });

  it("says how to restore the role if it could not search for grants on resources", async () => {
    await codeOf({});
    gcloud.put("assets-refused", "API [cloudasset.googleapis.com] not enabled on project");
    expect(await codeOf({ undo: true })).toBe(0);
    expect([gcloud.has("grant"), gcloud.has("role-deleted")]).toEqual([false, true]);
    expect(said).toContain("API [cloudasset.googleapis.com] not enabled on project");
    const command = /^gcloud iam roles undelete .*$/m.exec(printed)?.[0] ?? "";
    expect(spawnSync("bash", ["-c", command], { env: { PATH: gcloud.path } }).status).toBe(0);
    expect(gcloud.has("role-deleted")).toBe(false);
  });

  it("keeps the condition that others gave to its grant, in setup and undo", async () => {
    for (const what of ["service-account", "account"] as const) gcloud.put(what);
    const link = "serviceAccount:my-project-1.svc.id.goog[lastcall/lastcall]";
    const narrowed = {
      grant: `${member}\t${condition}`,
      binding: `${link}\troles/iam.workloadIdentityUser\t${condition}`,
    };
    for (const what of ["grant", "binding"] as const) gcloud.put(what, narrowed[what]);
    expect(await codeOf(account)).toBe(0);
    expect(gcloud.standing()).toMatchObject(narrowed);
    expect(await codeOf({ ...account, undo: true })).toBe(0);
    expect(gcloud.standing()).toMatchObject({ ...narrowed, account: "" });
    expect(gcloud.has("role-deleted")).toBe(false);
    for (const command of printed.match(/^gcloud .* remove-iam-policy-binding .*--all.*$/gm) ??
      []) {
      expect(spawnSync("bash", ["-c", command], { env: { PATH: gcloud.path } }).status).toBe(0);
    }
    expect(await codeOf({ ...account, undo: true })).toBe(0);
    expect(Object.keys(gcloud.standing())).toEqual(["role", "role-deleted", "service-account"]);
  });

  it("removes its own grant where the same member has one with a condition, and keeps that", async () => {
    await codeOf({});
    const { grant = "" } = gcloud.standing();
    gcloud.put("grant", `${grant}\n${grant}\t${condition}`);
    expect(await codeOf({ undo: true })).toBe(0);
    expect(gcloud.standing().grant).toBe(`${grant}\t${condition}`);
    expect(gcloud.has("role-deleted")).toBe(false);
  });
});
