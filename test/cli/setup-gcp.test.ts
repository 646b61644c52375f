import { spawnSync } from "node:child_process";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { CommandIo } from "../../src/cli/command-line/command.ts";
import { runSetup } from "../../src/cli/commands/setup.ts";
import { LastcallError } from "../../src/errors.ts";
import { fakeMark, makeFakeGcloud } from "../support/fake-gcloud.ts";

type Input = Parameters<typeof runSetup>[0];

const permissions =
  "compute.instances.get,compute.instances.list,compute.instanceGroupManagers.update,compute.instanceGroupManagers.get,compute.instanceGroupManagers.list,compute.zoneOperations.get";
const role = {
  look: "gcloud|iam|roles|describe|lastcall|--project|my-project-1|--format|value(description)",
  describe: "gcloud|iam|roles|describe|lastcall|--project|my-project-1|--format|value(deleted)",
  create: `gcloud|iam|roles|create|lastcall|--project|my-project-1|--title|Lastcall|--description|${fakeMark}|--stage|GA|--permissions|${permissions}|--quiet`,
  update: `gcloud|iam|roles|update|lastcall|--project|my-project-1|--permissions|${permissions}|--quiet`,
  undelete: "gcloud|iam|roles|undelete|lastcall|--project|my-project-1|--quiet",
};
const grantTo = (member: string) =>
  `gcloud|projects|add-iam-policy-binding|my-project-1|--condition=None|--role|projects/my-project-1/roles/lastcall|--member|${member}|--quiet`;
const holders = `gcloud|projects|get-iam-policy|my-project-1|--flatten|bindings[].members|--filter|bindings.role=projects/my-project-1/roles/lastcall|--format|value(bindings.members,bindings.condition.yesno(yes="with a condition",no=""))`;
const project = "gcloud|projects|describe|my-project-1|--format|value(projectNumber)";
const direct = [
  grantTo(
    "principal://iam.googleapis.com/projects/601024681890/locations/global/workloadIdentityPools/my-project-1.svc.id.goog/subject/ns/lastcall/sa/lastcall",
  ),
];
const annotations = [
  "annotation-lastcall-iam.gke.io_gcp-service-account",
  "annotation-lastcall-lastcall.dev_identity",
  "annotation-lastcall-lastcall.dev_identity-permission",
];
const accountName = "lastcall-shop@my-project-1.iam.gserviceaccount.com";

let gcloud: ReturnType<typeof makeFakeGcloud>;
let printed: string;
let said: string;

beforeEach(() => {
  gcloud = makeFakeGcloud();
  [printed, said] = ["", ""];
});
afterEach(() => gcloud.remove());

async function setup(options: object, signal = new AbortController().signal): Promise<number> {
  const io = {
    out: (text: string) => {
      printed += text;
    },
    err: (text: string) => {
      said += text;
    },
    env: { PATH: gcloud.path },
    signal,
  } as unknown as CommandIo;
  const defaults = {
    project: "my-project-1",
    serviceAccount: "lastcall",
    role: "lastcall",
    release: "Recreate",
    apply: true,
  };
  return runSetup({ words: ["gcp"], options: { ...defaults, ...options }, io } as unknown as Input);
}

async function faultOf(work: Promise<number>): Promise<LastcallError> {
  const error = await work.then(String, (thrown: unknown) => thrown);
  if (error instanceof LastcallError) return error;
  throw new Error(`no fault, but ${error}`);
}

describe("lastcall setup gcp", () => {
  it("prints the script and runs nothing without --apply", async () => {
    expect(await setup({ apply: false })).toBe(0);
    expect(printed).toMatch(/^#!\/usr\/bin\/env bash\n/);
    expect(gcloud.calls()).toEqual([]);
  });

  it.each([
    ["a project", { project: undefined }, "--project is required"],
    ["the location of its cluster", { cluster: "main" }, "--cluster needs --location"],
    ["the cluster at its location", { location: "europe-west1" }, "--location needs --cluster"],
  ])("fails without %s, and runs nothing", async (_, options, says) => {
    const fault = await faultOf(setup(options));
    expect(fault).toMatchObject({ code: "USAGE", exitCode: 2 });
    expect(fault.message).toContain(says);
    expect(gcloud.calls()).toEqual([]);
  });

  it("rejects shell syntax in a value, and runs nothing", async () => {
    const fault = await faultOf(setup({ project: "x'; gcloud projects delete y; '" }));
    expect(fault.code).toBe("USAGE");
    expect(gcloud.calls()).toEqual([]);
  });
});

describe("lastcall setup gcp --apply", () => {
  it("creates the role and grants it to the ServiceAccount", async () => {
    expect(await setup({})).toBe(0);
    // A lookup is repeated for its error.
    const looks = [role.look, role.look, project, holders, role.describe, role.describe];
    expect(gcloud.calls()).toEqual([...looks, role.create, ...direct]);
    expect(printed).toContain("Done: lastcall/lastcall has the role lastcall in my-project-1.");
  });

  it("creates nothing when run again", async () => {
    await setup({});
    gcloud.forget();
    expect(await setup({})).toBe(0);
    expect(gcloud.calls()).toEqual([
      role.look,
      project,
      holders,
      role.describe,
      role.update,
      ...direct,
    ]);
  });

  it("undeletes a deleted role", async () => {
    gcloud.put("role");
    gcloud.put("role-deleted");
    expect(await setup({})).toBe(0);
    expect(gcloud.calls()).toEqual([
      role.look,
      project,
      holders,
      role.describe,
      role.undelete,
      role.update,
      ...direct,
    ]);
  });

  it("changes nothing if the cluster has no Workload Identity", async () => {
    const cluster = { cluster: "main", location: "europe-west1" };
    const fault = await faultOf(setup(cluster));
    expect(fault).toMatchObject({ code: "SCRIPT_FAILED", exitCode: 1 });
    expect(said).toContain("the cluster main does not use Workload Identity of my-project-1");
    expect(gcloud.calls()).toHaveLength(1);
    gcloud.put("workload-pool");
    expect(await setup(cluster)).toBe(0);
  });

  it.each(["Preemptible killer", ""])(
    "does not change a role of the same ID that others described as %j",
    async (description) => {
      gcloud.put("role");
      gcloud.put("role-description", description);
      const before = gcloud.standing();
      expect((await faultOf(setup({}))).code).toBe("SCRIPT_FAILED");
      const words = `the role lastcall has the description '${description}', expected '${fakeMark}'`;
      expect(said).toContain(words);
      expect(gcloud.standing()).toEqual(before);
      expect(gcloud.calls()).toEqual([role.look]);
    },
  );

  it("stops at a step that fails, and shows its error", async () => {
    gcloud.put("role-deleted");
    gcloud.put("slow-account");
    expect((await faultOf(setup({}))).message).toContain("the script ended with exit code 1");
    expect(said).toContain("ERROR: no such account yet");
    expect(printed).not.toContain("Done");
  });

  it("runs nothing once it is interrupted", async () => {
    const reason = new Error("interrupted");
    await expect(setup({}, AbortSignal.abort(reason))).rejects.toBe(reason);
    expect(gcloud.calls()).toEqual([]);
  });
});

describe("lastcall setup gcp --google-service-account --apply", () => {
  const context = `it's "mine"; $(touch "$here/pwned") \`id\` | &`;
  const options = { googleServiceAccount: "lastcall-shop", context };
  const kubectl = `kubectl|--context|${context}|--namespace|lastcall`;
  const find = `gcloud|iam|service-accounts|describe|${accountName}|--project|my-project-1|--format|value(description)`;
  const make = `gcloud|iam|service-accounts|create|lastcall-shop|--project|my-project-1|--display-name|Lastcall|--description|${fakeMark}|--quiet`;
  const users = `gcloud|iam|service-accounts|get-iam-policy|${accountName}|--project|my-project-1|--flatten|bindings[].members|--format|value(bindings.members,bindings.role,bindings.condition.yesno(yes="with a condition",no=""))`;
  const bind = [
    `${kubectl}|annotate|serviceaccount|lastcall|iam.gke.io/gcp-service-account=${accountName}|lastcall.dev/identity=${accountName}`,
    `${kubectl}|annotate|serviceaccount|lastcall|--overwrite|lastcall.dev/identity-permission=${accountName}`,
    `gcloud|iam|service-accounts|add-iam-policy-binding|${accountName}|--project|my-project-1|--condition=None|--role|roles/iam.workloadIdentityUser|--member|serviceAccount:my-project-1.svc.id.goog[lastcall/lastcall]|--quiet`,
  ];
  const look = `${kubectl}|get|serviceaccount|lastcall|--ignore-not-found|--output|jsonpath={.metadata.name}|{.metadata.annotations.lastcall\\.dev/identity}|{.metadata.annotations.iam\\.gke\\.io/gcp-service-account}`;
  const grant = grantTo(`serviceAccount:${accountName}`);

  it("creates and binds the account, and creates nothing when run again", async () => {
    gcloud.put("service-account");
    expect(await setup(options)).toBe(0);
    const looks = [role.look, role.look, find, find, holders, role.describe, role.describe];
    const made = [look, ...looks, role.create, make, grant, ...bind];
    expect(gcloud.calls()).toEqual(made);
    gcloud.forget();
    expect(await setup(options)).toBe(0);
    expect(gcloud.calls()).toEqual([
      look,
      role.look,
      find,
      users,
      holders,
      role.describe,
      role.update,
      grant,
    ]);
  });

  it("waits for a new account to propagate", async () => {
    gcloud.put("service-account");
    gcloud.put("slow-account");
    expect(await setup(options)).toBe(0);
    expect(gcloud.calls().filter((call) => call === grant)).toHaveLength(2);
    expect(gcloud.calls()).toContain("sleep|1");
  });

  it("changes nothing if the ServiceAccount does not exist", async () => {
    expect((await faultOf(setup(options))).code).toBe("SCRIPT_FAILED");
    expect(said).toContain("the ServiceAccount lastcall/lastcall does not exist");
    expect(gcloud.calls()).toEqual([look]);
  });
});

describe("lastcall setup gcp --undo --apply", () => {
  const account = { googleServiceAccount: "lastcall-shop" };

  it.each([
    ["the ServiceAccount itself", {}],
    ["a Google service account", account],
  ])("removes everything created for %s, and nothing when run again", async (_, options) => {
    gcloud.put("service-account");
    await setup(options);
    expect(gcloud.has("grant")).toBe(true);
    expect(await setup({ ...options, undo: true })).toBe(0);
    // Google keeps a deleted role under its ID, and the ServiceAccount belongs to the chart.
    expect(Object.keys(gcloud.standing())).toEqual(["role", "role-deleted", "service-account"]);
    gcloud.forget();
    expect(await setup({ ...options, undo: true })).toBe(0);
    expect(gcloud.calls().filter((call) => /\|(delete|remove-|annotate)/.test(call))).toEqual([]);
  });

  it("keeps a role that others created", async () => {
    gcloud.put("service-account");
    await setup(account);
    gcloud.put("role-description", "Ours");
    const before = gcloud.standing();
    expect((await faultOf(setup({ ...account, undo: true }))).code).toBe("SCRIPT_FAILED");
    expect(said).toContain("the role lastcall has the description 'Ours'");
    expect(gcloud.standing()).toEqual(before);
  });

  it.each(["Estafette killer", ""])(
    "takes back all that it gave to an account that others described as %j, and keeps it",
    async (description) => {
      for (const what of ["service-account", "account"] as const) gcloud.put(what);
      gcloud.put("account-description", description);
      await setup(account);
      expect(gcloud.has("binding")).toBe(true);
      expect(await setup({ ...account, undo: true })).toBe(0);
      const kept = ["account", "account-description", "role", "role-deleted", "service-account"];
      expect(Object.keys(gcloud.standing())).toEqual(kept);
      expect(printed).toContain(`(description: ${description}), which this script did not create`);
    },
  );

  it("names the command that removes the grant of an account that others use", async () => {
    for (const what of ["service-account", "account"] as const) gcloud.put(what);
    const killer = "serviceAccount:my-project-1.svc.id.goog[estafette/killer]";
    gcloud.put("binding", killer);
    await setup(account);
    expect(await setup({ ...account, undo: true })).toBe(0);
    expect(gcloud.standing().binding).toBe(killer);
    expect(gcloud.has("grant")).toBe(true);
    expect(printed).toContain(
      `${killer} roles/iam.workloadIdentityUser\nIf none of these is a Lastcall controller,`,
    );
    const command = /^gcloud projects remove-iam-policy-binding .*$/m.exec(printed)?.[0] ?? "";
    expect(command).toContain("--role projects/my-project-1/roles/lastcall");
    spawnSync("bash", ["-c", command], { env: { PATH: gcloud.path } });
    expect(gcloud.has("grant")).toBe(false);
    expect(await setup({ ...account, undo: true })).toBe(0);
    expect(gcloud.has("role-deleted")).toBe(true);
  });

  it.each([
    ["a role", {}],
    ["a role and an account", account],
  ])("keeps %s that another installation still uses", async (_, options) => {
    const [one, other] = [
      { ...options, namespace: "one" },
      { ...options, namespace: "other" },
    ];
    gcloud.put("service-account");
    await setup(other);
    const before = gcloud.standing();
    await setup(one);
    expect(await setup({ ...one, undo: true })).toBe(0);
    expect(gcloud.standing()).toEqual(before);
    expect(printed).toContain("Kept: the role lastcall, which others still have:");
    expect(printed).toContain(", except for what is kept.");
    expect(await setup({ ...other, undo: true })).toBe(0);
    expect(Object.keys(gcloud.standing())).toEqual(["role", "role-deleted", "service-account"]);
  });

  it("deletes a role that only a deleted account still has", async () => {
    await setup({});
    const gone = "deleted:serviceAccount:a@my-project-1.iam.gserviceaccount.com?uid=1";
    gcloud.put("grant", `${gone}\n${gcloud.standing().grant}`);
    expect(await setup({ undo: true })).toBe(0);
    expect(gcloud.standing()).toEqual({ role: "", "role-deleted": "", grant: gone });
  });

  it("fails if the annotation stays because kubectl failed, and removes the rest", async () => {
    gcloud.put("service-account");
    await setup(account);
    gcloud.put("cluster-gone");
    await faultOf(setup({ ...account, undo: true }));
    const left = [...annotations, "cluster-gone", "role", "role-deleted", "service-account"];
    expect(Object.keys(gcloud.standing())).toEqual(left);
    expect(said).toContain(
      "Not finished: kubectl failed, so the annotation iam.gke.io/gcp-service-account of",
    );
  });

  it("succeeds if kubectl failed and the named cluster is gone", async () => {
    gcloud.put("service-account");
    await setup(account);
    gcloud.put("cluster-gone");
    const cluster = { cluster: "main", location: "europe-west1" };
    expect(await setup({ ...account, ...cluster, undo: true })).toBe(0);
    expect(printed).toContain("The cluster main is gone, and the annotation");
  });
});

describe("lastcall setup gcp with other clusters in the project", () => {
  const cluster = { cluster: "main", location: "europe-west1" };
  const account = { googleServiceAccount: "lastcall-shop" };

  beforeEach(() => {
    for (const what of ["service-account", "workload-pool"] as const) gcloud.put(what);
    gcloud.put("clusters", "europe-west1/main\nus-east1/main");
  });

  it.each([
    ["the grant", {}],
    ["the binding", account],
  ])("keeps %s with --undo, and prints the command that removes it", async (_, options) => {
    await setup({ ...options, ...cluster });
    const { grant, binding } = gcloud.standing();
    expect(await setup({ ...options, ...cluster, undo: true })).toBe(0);
    expect(gcloud.standing()).toMatchObject({ grant, ...(binding ? { binding } : {}) });
    expect(printed).toContain("of these clusters has the same name in IAM:\nus-east1/main\n");
    expect(printed).toContain(", except for what is kept.");
    const remove = /^gcloud (projects|iam service-accounts) remove-iam-policy-binding .*$/m;
    const command = remove.exec(printed)?.[0] ?? "";
    expect(spawnSync("bash", ["-c", command], { env: { PATH: gcloud.path } }).status).toBe(0);
    expect(await setup({ ...options, ...cluster, undo: true })).toBe(0);
    const kept = ["clusters", "role", "role-deleted", "service-account", "workload-pool"];
    expect(Object.keys(gcloud.standing())).toEqual(kept);
  });

  it("does not know without --cluster which one is meant, and keeps the grant", async () => {
    await setup({});
    expect(await setup({ undo: true })).toBe(0);
    expect(gcloud.has("grant")).toBe(true);
    gcloud.put("clusters", "europe-west1/main");
    expect(await setup({ undo: true })).toBe(0);
    expect(gcloud.has("grant")).toBe(false);
  });

  it("does not take a list with a location that did not respond for all clusters", async () => {
    await setup(cluster);
    const before = gcloud.standing();
    gcloud.put("clusters", "europe-west1/main");
    const warning =
      "WARNING: The following zones did not respond: us-east1-b. List results may be incomplete.";
    gcloud.put("silent-zone", warning);
    await faultOf(setup({ ...cluster, undo: true }));
    expect(said).toContain(`Cannot tell which clusters use the grant: ${warning}`);
    expect(gcloud.standing()).toMatchObject({ grant: before.grant, role: "" });
    expect(gcloud.has("role-deleted")).toBe(false);
  });

  it("adds to a role that others have, and takes nothing from them", async () => {
    await setup({ namespace: "other" });
    gcloud.forget();
    expect(await setup({ release: "DeleteInstance" })).toBe(0);
    const update = gcloud.calls().find((call) => call.startsWith("gcloud|iam|roles|update"));
    expect(update).toContain("|--add-permissions|compute.instances.get,");
    expect(printed).toContain("so it keeps the permissions that it has:");
  });
});
