/**
 * `lastcall setup --apply` and `--undo` by a user with exactly the permissions in the cluster that
 * docs/security.md lists: with the real kubectl and fake command lines of the clouds.
 */
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildControlPlane } from "../controlplane/build.ts";
import { type ControlPlane, startControlPlane } from "../support/control-plane.ts";
import { makeFakeAws } from "../support/fake-aws.ts";
import { makeFakeAz } from "../support/fake-az.ts";
import { fakeKeyId, makeFakeGcloud } from "../support/fake-gcloud.ts";
import type { FakeTools } from "../support/fake-tools.ts";
import { runLastcall } from "../support/lastcall-process.ts";
import { mustRun } from "./must-run.ts";
import { type SetupRights, setupRights } from "./setup-rights.ts";

const root = join(import.meta.dirname, "../..");
const [gcloud, aws, az] = [makeFakeGcloud(), makeFakeAws(), makeFakeAz()];
let plane: ControlPlane;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "lastcall-setup-"));
  plane = await startControlPlane({ withKwok: false, withScheduler: false });
  await mustRun(plane, ["create", "namespace", "lastcall"]);
  await mustRun(plane, ["create", "serviceaccount", "lastcall", "-n", "lastcall"]);
  for (const one of setupRights) await grant(one);
  const kubectl = join(folder, "kubectl");
  const { controlplane } = buildControlPlane();
  writeFileSync(kubectl, `#!/bin/bash\nexec '${controlplane}' kubectl "$@"\n`);
  chmodSync(kubectl, 0o755);
  const { body } = await plane.request({ path: "/.well-known/openid-configuration" });
  for (const tools of [aws, az]) tools.put("cluster", body.issuer);
  aws.put("provider");
  az.put("webhook");
});

afterAll(async () => {
  for (const tools of [gcloud, aws, az]) tools.remove();
  await plane?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Creates an account with the permissions for this setup. */
async function grant({ name, kind, rules }: SetupRights): Promise<void> {
  const metadata = { name: `setup-${name}`, namespace: "lastcall" };
  const rbac = "rbac.authorization.k8s.io";
  const about = { apiVersion: `${rbac}/v1`, metadata };
  const subjects = [{ kind: "ServiceAccount", ...metadata }];
  const roleRef = { apiGroup: rbac, kind, name: metadata.name };
  const items = [
    { apiVersion: "v1", kind: "ServiceAccount", metadata },
    { ...about, kind, rules },
    { ...about, kind: `${kind}Binding`, subjects, roleRef },
  ];
  await mustRun(plane, ["apply", "-f", "-"], { apiVersion: "v1", kind: "List", items });
}

async function setup(name: string, tools: FakeTools | undefined, flags: readonly string[]) {
  const account = `setup-${name}`;
  const kubeconfig = plane.kubeconfigFor(account, await plane.tokenFor("lastcall", account));
  const PATH = [folder, tools?.path ?? [], process.env.PATH ?? ""].flat().join(delimiter);
  const args = ["setup", name, "--apply", "--kubeconfig", kubeconfig, ...flags];
  const { code, stderr } = await runLastcall(args, { folder, env: { PATH } });
  return { code, stderr };
}

async function annotations(): Promise<Readonly<Record<string, string>>> {
  const path = "/api/v1/namespaces/lastcall/serviceaccounts/lastcall";
  return (await plane.request({ path })).body.metadata.annotations ?? {};
}

async function annotate(pair: string): Promise<void> {
  await mustRun(plane, ["annotate", "serviceaccount", "lastcall", "-n", "lastcall", pair]);
}

const ofAws = ["--account=123456789012", "--region=eu-west-1", "--cluster=main"];
const awsFlags = [...ofAws, "--identity=IRSA"];
const subscription = "--subscription=1b2e6f80-0000-4000-8000-000000000000";
const azureFlags = [subscription, "--resource-group=a", "--cluster=b"];

const done = { code: 0, stderr: "" };

describe("with its documented permissions and no others", () => {
  test.each([
    ["crds", []],
    ["admission", ["--platform", "gke"]],
  ])("lastcall setup %s applies its objects twice without an error", async (name, flags) => {
    expect(await setup(name, undefined, flags)).toEqual(done);
    // Again, on the existing objects.
    expect(await setup(name, undefined, flags)).toEqual(done);
  });

  test.each([
    [
      ...["gcp", gcloud],
      ["--project", "my-project-1", "--google-service-account", "lastcall-shop"],
      "iam.gke.io/gcp-service-account",
    ],
    [...["aws", aws], awsFlags, "eks.amazonaws.com/role-arn"],
    [...["azure", az], azureFlags, "azure.workload.identity/client-id"],
  ] as const)(
    "lastcall setup %s annotates the ServiceAccount, and --undo reverts that",
    async (...row) => {
      const [name, tools, flags, annotation] = row;
      expect(await setup(name, tools, flags)).toMatchObject({ code: 0, stderr: "" });
      const written = await annotations();
      expect(Object.keys(written)).toEqual(
        expect.arrayContaining([annotation, "lastcall.dev/identity"]),
      );
      // Again, with what it wrote.
      expect(await setup(name, tools, flags)).toMatchObject({ code: 0, stderr: "" });
      expect(await annotations()).toEqual(written);
      expect(await setup(name, tools, [...flags, "--undo"])).toMatchObject({ code: 0, stderr: "" });
      expect(await annotations()).toEqual({});
      await annotate(`${annotation}=somebody`);
      const { code, stderr } = await setup(name, tools, flags);
      expect(code).toBe(1);
      expect(stderr).toContain(`${annotation} of lastcall/lastcall names somebody, expected`);
      expect((await setup(name, tools, [...flags, "--undo"])).code).toBe(0);
      expect(await annotations()).toEqual({ [annotation]: "somebody" });
      await annotate(`${annotation}-`);
    },
  );

  test.each([
    ["aws", aws, awsFlags],
    ["azure", az, azureFlags],
  ] as const)("lastcall setup %s changes nothing in another cluster", async (...row) => {
    const [name, tools, flags] = row;
    const { cluster = "" } = tools.standing();
    tools.put("cluster", "https://elsewhere.example");
    for (const more of [[], ["--undo"]]) {
      const { code, stderr } = await setup(name, tools, [...flags, ...more]);
      expect(code).toBe(1);
      expect(stderr).toContain(`kubectl reaches the cluster with the issuer ${cluster}, and `);
    }
    expect(await annotations()).toEqual({});
    tools.put("cluster", cluster);
  });
});

test("lastcall setup gcp --key-file creates a Secret with the key, and --undo deletes it", async () => {
  const path = "/api/v1/namespaces/lastcall/secrets/lastcall-key";
  const account = ["--project", "my-project-1", "--google-service-account", "lastcall-shop"];
  const flags = [...account, "--key-file"];
  expect((await setup("gcp", gcloud, flags)).code).toBe(0);
  const { data, metadata } = (await plane.request({ path })).body;
  const accountName = "lastcall-shop@my-project-1.iam.gserviceaccount.com";
  expect(metadata.annotations).toEqual({ "lastcall.dev/identity": accountName });
  const textOf = (key: string) => Buffer.from(data[key], "base64").toString();
  expect(textOf("key-id")).toBe(fakeKeyId);
  expect(JSON.parse(textOf("service-account-key.json"))).toMatchObject({
    private_key_id: fakeKeyId,
  });
  // Again, with the existing Secret.
  expect((await setup("gcp", gcloud, flags)).code).toBe(0);
  const other = ["--project", "my-project-1", "--google-service-account", "lastcall-other"];
  expect((await setup("gcp", gcloud, [...other, "--key-file", "--undo"])).code).toBe(0);
  expect((await plane.request({ path })).status).toBe(200);
  gcloud.put("role");
  expect((await setup("gcp", gcloud, [...flags, "--undo"])).code).toBe(0);
  expect((await plane.request({ path })).status).toBe(404);
  expect(gcloud.has("keys")).toBe(false);
});

test("a Secret of that name that others created is not touched", async () => {
  const path = "/api/v1/namespaces/lastcall/secrets";
  const others = { metadata: { name: "lastcall-key" }, stringData: { password: "x" } };
  await plane.request({ method: "POST", path, body: others });
  const flags = ["--project", "my-project-1", "--google-service-account", "lastcall-shop"];
  const { code, stderr } = await setup("gcp", gcloud, [...flags, "--key-file"]);
  expect(code).toBe(1);
  expect(stderr).toContain("lastcall/lastcall-key has the annotation lastcall.dev/identity=?,");
  const { body } = await plane.request({ path: `${path}/lastcall-key` });
  expect(Object.keys(body.data)).toEqual(["password"]);
});

test("docs/security.md lists these permissions, and no others", () => {
  const page = readFileSync(join(root, "docs/security.md"), "utf8");
  const rows = page.split("\n").flatMap((line) => {
    const [, name, rights] = /^\| `setup ([a-z]+)` \| ([^|]*) \|/.exec(line) ?? [];
    const listed = [...(rights ?? "").matchAll(/`([a-z]+ [a-z.0-9]+)`/g)].map(([, right]) => right);
    return name === undefined ? [] : [[name, listed]];
  });
  const wanted = setupRights.map(({ name, rules }) => [
    name,
    rules.flatMap(({ apiGroups: [group], resources, verbs }) =>
      verbs.flatMap((verb) =>
        resources.map((one) => `${verb} ${one}${group === "" ? "" : `.${group}`}`),
      ),
    ),
  ]);
  expect(rows).toEqual(wanted);
});
