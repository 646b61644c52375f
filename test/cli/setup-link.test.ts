import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import { type CloudSetup, cloudSetups } from "../support/cloud-setups.ts";
import type { FakeTools } from "../support/fake-tools.ts";
import { runSetupOn, type SetupRun } from "../support/run-setup.ts";

/** The annotation that links the ServiceAccount to an identity. */
const links = [
  ["aws with IRSA", "eks.amazonaws.com/role-arn", "arn:aws:iam::123456789012:role/lastcall"],
  [
    "gcp with an account",
    "iam.gke.io/gcp-service-account",
    "lastcall-shop@my-project-1.iam.gserviceaccount.com",
  ],
  ["azure", "azure.workload.identity/client-id", "that of the identity lastcall"],
] as const;
const fileOf = (key: string) => `annotation-lastcall-${key.replace("/", "_")}`;
const mark = fileOf("lastcall.dev/identity");

let tools: FakeTools;
let options: CloudSetup["options"];
afterEach(() => tools.remove());

function fresh(wanted: string): void {
  const found = cloudSetups.find(({ name }) => name === wanted) as CloudSetup;
  tools = found.make();
  options = found.options;
  for (const [what, content] of Object.entries(found.standing)) tools.put(what, content);
}

const setup = (more: object = {}): Promise<SetupRun> => runSetupOn(tools, { ...options, ...more });
const undo = () => setup({ undo: true });
const without = (what: string) => rmSync(`${tools.folder}/has-${what}`);

describe.each(links)("the ServiceAccount of lastcall setup %s", (name, annotation, identity) => {
  it("is not taken from another identity; the error names both, and the way out", async () => {
    fresh(name);
    tools.put(fileOf(annotation), "somebody");
    const { code, err } = await setup();
    expect(code).toMatchObject({ code: "SCRIPT_FAILED" });
    const words = `the annotation ${annotation} of lastcall/lastcall names somebody, expected ${identity};`;
    expect(err).toContain(words);
    const command = /^kubectl .*annotate.*$/m.exec(err)?.[0] ?? "";
    expect(spawnSync("bash", ["-c", command], { env: { PATH: tools.path } }).status).toBe(0);
    expect(await setup()).toMatchObject({ code: 0, err: "" });
  });

  it("loses with --undo what it was given, and nothing that it was given since", async () => {
    fresh(name);
    await setup();
    tools.put(fileOf(annotation), "somebody");
    expect(await undo()).toMatchObject({ code: 0, err: "" });
    expect(tools.standing()).toMatchObject({ [fileOf(annotation)]: "somebody" });
    expect(tools.has(mark)).toBe(false);
  });

  it("keeps with --undo an annotation that others wrote for the same identity", async () => {
    fresh(name);
    await setup();
    without(mark);
    const { code, out } = await undo();
    expect(code).toBe(0);
    expect(out).toContain(`Kept: the annotation ${annotation} of lastcall/lastcall`);
    expect(out).toContain(", except for what is kept.");
    const command = /^kubectl .*annotate.*$/m.exec(out)?.[0] ?? "";
    expect(spawnSync("bash", ["-c", command], { env: { PATH: tools.path } }).status).toBe(0);
    expect(tools.has(fileOf(annotation))).toBe(false);
  });

  it("is marked again after a mark that nothing belongs to anymore", async () => {
    fresh(name);
    tools.put(mark, "gone");
    expect(await setup()).toMatchObject({ code: 0, err: "" });
    expect(await undo()).toMatchObject({ code: 0, err: "" });
    expect(tools.has(mark)).toBe(false);
  });

  it.each(["setup", "undo"])("is not that of another cluster of kubectl (%s)", async (script) => {
    fresh(name);
    if (script === "undo") await setup();
    tools.put("issuer", "https://elsewhere.example/");
    const before = tools.standing();
    const { code, err } = await setup({ undo: script === "undo" });
    expect(code).toMatchObject({ code: "SCRIPT_FAILED" });
    expect(err).toContain("kubectl reaches the cluster with the issuer https://elsewhere.example/");
    expect(err).toContain("Not finished: nothing was changed");
    expect(tools.standing()).toEqual(before);
  });

  it("is not looked for with --undo in a cluster that is gone, whatever kubectl reaches", async () => {
    fresh(name);
    await setup();
    // A cluster of Google is one of the listed ones.
    if (tools.has("clusters")) tools.put("clusters", "us-east1/other");
    else without("cluster");
    tools.put("issuer", "https://elsewhere.example/");
    tools.forget();
    const { code, out } = await undo();
    expect(code).toBe(0);
    expect(out).toContain(`The cluster main is gone, and the annotation ${annotation} with it;`);
    expect(tools.calls().filter((call) => call.startsWith("kubectl"))).toEqual([]);
  });

  it("is taken as that of the cluster with a note if kubectl may not read the issuer", async () => {
    fresh(name);
    tools.put("issuer-refused");
    const { code, err } = await setup();
    expect(code).toBe(0);
    expect(err).toContain("Note: it is not known whether kubectl reaches main");
  });

  it("is left alone if kubectl fails, which does not show that it is missing", async () => {
    fresh(name);
    tools.break("get|serviceaccount", { exitCode: 1, message: "error: You must be logged in" });
    const { code, err } = await setup();
    expect(code).toMatchObject({ code: "SCRIPT_FAILED" });
    expect(err).toContain("error: You must be logged in");
    expect(err).not.toContain("does not exist");
    expect(err).toContain("Not finished: nothing was changed");
  });
});

it("is still annotated in a cluster of Google that does not use Workload Identity anymore", async () => {
  fresh("gcp with an account");
  await setup();
  tools.put("clusters", "europe-west1/main none");
  expect(await undo()).toMatchObject({ code: 0, err: "" });
  expect(Object.keys(tools.standing()).join()).not.toContain("annotation");
});

it("of a Google account of others is told what the undo takes back, and what not", async () => {
  fresh("gcp with an account");
  const permission = "serviceAccount:my-project-1.svc.id.goog[lastcall/lastcall]";
  const before = { account: "", "account-description": "Killer", binding: permission };
  for (const [what, content] of Object.entries(before)) tools.put(what, content);
  await setup();
  const { out } = await undo();
  expect(out).toContain("Kept: the permission to impersonate lastcall-shop@");
  expect(tools.standing()).toMatchObject(before);
  expect(tools.has("grant")).toBe(false);
  const command = /^gcloud .*remove-iam-policy-binding.*$/m.exec(out)?.[0] ?? "";
  expect(spawnSync("bash", ["-c", command], { env: { PATH: tools.path } }).status).toBe(0);
  expect(tools.has("binding")).toBe(false);
});
