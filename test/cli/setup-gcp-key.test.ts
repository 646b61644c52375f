import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { LastcallError } from "../../src/errors.ts";
import { fakeKeyId, makeFakeGcloud } from "../support/fake-gcloud.ts";
import { runSetupOn, type SetupRun } from "../support/run-setup.ts";

const accountName = "lastcall-shop@my-project-1.iam.gserviceaccount.com";
const ourSecret = `${accountName} ${fakeKeyId}`;
const leftRole = ["role", "role-deleted"];

let gcloud: ReturnType<typeof makeFakeGcloud>;
/** Where a key file would be left behind. */
let temporary: string;

beforeEach(() => {
  gcloud = makeFakeGcloud();
  temporary = mkdtempSync(join(tmpdir(), "lastcall-key-"));
});
afterEach(() => {
  gcloud.remove();
  rmSync(temporary, { recursive: true });
});

function setup(more: Readonly<Record<string, unknown>> = {}): Promise<SetupRun> {
  return runSetupOn(
    gcloud,
    {
      ...{ cloud: "gcp", project: "my-project-1", serviceAccount: "lastcall", role: "lastcall" },
      ...{ release: "Recreate", undo: false },
      ...{ googleServiceAccount: "lastcall-shop", keyFile: true, ...more },
    },
    { TMPDIR: temporary },
  );
}

const undo = () => setup({ undo: true });

describe("lastcall setup gcp --key-file --apply", () => {
  it("puts a key into a Secret, leaves no file, and keeps the key when run again", async () => {
    const first = await setup();
    expect(first.code).toBe(0);
    expect(gcloud.standing()).toMatchObject({ keys: fakeKeyId, secret: ourSecret });
    expect(readdirSync(temporary)).toEqual([]);
    expect(first.out).toContain("--set secret.googleServiceAccountSecret.name=lastcall-key");
    gcloud.forget();
    expect((await setup()).code).toBe(0);
    expect(gcloud.calls().filter((call) => /\|(keys\|create|create\|secret)/.test(call))).toEqual(
      [],
    );
  });

  it("deletes the new key if the Secret cannot be created", async () => {
    gcloud.put("secret-refused");
    expect((await setup()).code).toBeInstanceOf(LastcallError);
    expect(gcloud.has("keys")).toBe(false);
    expect(readdirSync(temporary)).toEqual([]);
  });

  it("changes nothing if kubectl does not reach the cluster", async () => {
    gcloud.put("cluster-gone");
    expect((await setup()).err).toContain("Not finished: nothing was changed");
    expect(Object.keys(gcloud.standing())).toEqual(["cluster-gone"]);
  });

  it.each([
    ["a Secret that others created", "? ?", "this script did not create it for that account"],
    [
      "a Secret of another account",
      `other@my-project-1.iam.gserviceaccount.com ${fakeKeyId}`,
      "did",
    ],
    ["a key that was deleted", `${accountName} abc`, "has the key abc, which"],
  ])("stops at %s", async (_, found, words) => {
    gcloud.put("secret", found);
    expect((await setup()).err).toContain(words);
    expect(Object.keys(gcloud.standing())).toEqual(["secret"]);
  });

  it.each([
    ["no --google-service-account", { googleServiceAccount: undefined }],
    ["--cluster", { cluster: "main", location: "europe-west1" }],
  ])("is refused with %s", async (_, more) => {
    const { code } = await setup(more);
    expect((code as LastcallError).message).toContain("--key-file needs --google-service-account");
    expect(gcloud.calls()).toEqual([]);
  });
});

describe("lastcall setup gcp --key-file --undo --apply", () => {
  it("removes everything that was created, and nothing when run again", async () => {
    await setup();
    expect((await undo()).code).toBe(0);
    expect(Object.keys(gcloud.standing())).toEqual(leftRole);
    gcloud.forget();
    expect((await undo()).code).toBe(0);
    expect(gcloud.calls().filter((call) => /\|(delete|remove-)/.test(call))).toEqual([]);
  });

  it("keeps an account of which another cluster has a key, and that key", async () => {
    await setup();
    gcloud.put("keys", `1234\n${fakeKeyId}`);
    const { code, out } = await undo();
    expect(code).toBe(0);
    expect(gcloud.standing()).toMatchObject({ keys: "1234", account: "" });
    expect(gcloud.has("grant")).toBe(true);
    expect(gcloud.has("secret")).toBe(false);
    expect(out).toContain("its keys 1234\n");
  });

  it("names the keys that are left if the cluster is gone", async () => {
    await setup();
    gcloud.put("cluster-gone");
    const { code, err, out } = await undo();
    expect(code).toBeInstanceOf(LastcallError);
    expect(out).toContain(`its keys ${fakeKeyId}\n`);
    expect(err).toContain("Not finished: kubectl failed, so the Secret lastcall/lastcall-key");
  });

  it("keeps the Secret of another account", async () => {
    await setup();
    const { secret, keys } = gcloud.standing();
    const { code, out } = await setup({ undo: true, googleServiceAccount: "lastcall-other" });
    expect(code).toBe(0);
    expect(gcloud.standing()).toMatchObject({ secret, keys });
    expect(out).toContain("did not create for lastcall-other@my-project-1.iam.gserviceaccount.com");
    expect(out).toContain(", except for what is kept.");
  });

  it("keeps a Secret without the mark, also if it has a key of the account", async () => {
    await setup();
    const { keys, account } = gcloud.standing();
    gcloud.put("secret", `? ${fakeKeyId}`);
    const { code, out } = await undo();
    expect(code).toBe(0);
    expect(gcloud.standing()).toMatchObject({ keys, account, secret: `? ${fakeKeyId}` });
    expect(out).toContain(`its keys ${fakeKeyId}\n`);
    const { err } = await setup();
    const command = `kubectl --namespace lastcall annotate secret lastcall-key lastcall.dev/identity=${accountName}`;
    expect(err).toContain(command);
  });

  it("keeps a Secret that others created", async () => {
    gcloud.put("secret", "? ?");
    const { code, out } = await undo();
    expect(code).toBe(0);
    expect(gcloud.has("secret")).toBe(true);
    expect(out).toContain("Kept: the Secret lastcall/lastcall-key, which this script did not");
  });
});

describe("lastcall setup gcp --undo --apply with Workload Identity", () => {
  it("keeps an account of which others have a key", async () => {
    gcloud.put("service-account");
    await setup({ keyFile: false });
    gcloud.put("keys", "1234");
    const { code, out } = await setup({ keyFile: false, undo: true });
    expect(code).toBe(0);
    expect(gcloud.has("account")).toBe(true);
    expect(gcloud.has("grant")).toBe(true);
    expect(out).toContain("its keys 1234\n");
  });
});
