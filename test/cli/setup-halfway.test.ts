import { afterEach, describe, expect, it } from "vitest";
import { makeFakeAws } from "../support/fake-aws.ts";
import { makeFakeAz } from "../support/fake-az.ts";
import { makeFakeGcloud } from "../support/fake-gcloud.ts";
import type { FakeTools } from "../support/fake-tools.ts";
import { runSetupOn } from "../support/run-setup.ts";

interface Setup {
  readonly name: string;
  readonly make: () => FakeTools;
  readonly options: Readonly<Record<string, unknown>> & { readonly cloud: string };
  /** What exists before the set-up, with its content. */
  readonly standing: Readonly<Record<string, string>>;
  /** What the cloud keeps after the removal: Google reserves the id of a deleted role. */
  readonly kept?: readonly string[];
}

const issuer = "https://issuer.example";
const aws = {
  ...{ cloud: "aws", account: "123456789012", region: "eu-west-1", cluster: "main" },
  ...{ serviceAccount: "lastcall", role: "lastcall", release: "Recreate", sqsCompleteHooks: true },
};
const onAws = { cluster: issuer, addon: "", provider: "", "service-account": "" };
const gcp = {
  ...{ cloud: "gcp", project: "my-project-1", serviceAccount: "lastcall", role: "lastcall" },
  release: "Recreate",
};
const inCluster = { cluster: "main", location: "europe-west1" };
const onGcp = { "service-account": "", "workload-pool": "", clusters: "europe-west1/main" };
const account = { googleServiceAccount: "lastcall-shop" };
const azure = {
  ...{ cloud: "azure", subscription: "1b2e6f80-0000-4000-8000-000000000000" },
  ...{ resourceGroup: "shop", cluster: "main", serviceAccount: "lastcall" },
  ...{ managedIdentity: "lastcall", role: "lastcall" },
};

const ofGoogle = { make: makeFakeGcloud, standing: onGcp, kept: ["role", "role-deleted"] };
const setups: readonly Setup[] = [
  {
    ...{ name: "aws with Pod Identity", make: makeFakeAws, standing: onAws },
    options: { ...aws, identity: "PodIdentity", queue: "q" },
  },
  {
    ...{ name: "aws with IRSA", make: makeFakeAws, standing: onAws },
    options: { ...aws, identity: "IRSA" },
  },
  { ...ofGoogle, name: "gcp", options: { ...gcp, ...inCluster } },
  { ...ofGoogle, name: "gcp with an account", options: { ...gcp, ...inCluster, ...account } },
  { ...ofGoogle, name: "gcp with a key", options: { ...gcp, ...account, keyFile: true } },
  {
    ...{ name: "azure", make: makeFakeAz, options: azure },
    standing: { "service-account": "", webhook: "", cluster: issuer },
  },
];

const writes = /\|(create|update|put|set|add|annotate|delete|remove)[-|]/;

/** What tells a call from others: its words up to the first flag or file. */
function nameOf(call: string): string {
  const [tool = "", ...rest] = call.split("|");
  const words = tool === "kubectl" ? rest.slice(rest.indexOf("--namespace") + 2) : rest;
  const end = words.findIndex((word) => /^(--|\/)/.test(word));
  return words.slice(0, end === -1 ? undefined : end).join("|");
}

let tools: FakeTools;
afterEach(() => tools.remove());

function fresh({ make, standing }: Setup): void {
  tools = make();
  for (const [what, content] of Object.entries(standing)) tools.put(what, content);
}

interface Changes {
  /** By name: those of a whole set-up, and those of its removal. */
  readonly setup: readonly string[];
  readonly undo: readonly string[];
  /** What exists after the whole set-up. */
  readonly whole: Readonly<Record<string, string>>;
}

async function changesOf(setup: Setup): Promise<Changes> {
  fresh(setup);
  const changed = async (undo: boolean) => {
    tools.forget();
    const { code, err } = await runSetupOn(tools, { ...setup.options, undo });
    if (code !== 0) throw new Error(`${setup.name}: ${code} ${err}`);
    return [
      ...new Set(
        tools
          .calls()
          .filter((call) => writes.test(call))
          .map(nameOf),
      ),
    ];
  };
  try {
    const made = await changed(false);
    const whole = tools.standing();
    return { setup: made, undo: await changed(true), whole };
  } finally {
    tools.remove();
  }
}

const throttled = {
  exitCode: 254,
  message: "An error occurred (Throttling) when calling it (reached max retries: 2): Rate exceeded",
};

interface Row extends Pick<Setup, "name"> {
  readonly script: "setup" | "undo";
  readonly call: string;
  readonly setup: Setup;
  readonly whole: Changes["whole"];
}

const rows: Row[] = [];
for (const setup of setups) {
  const { name } = setup;
  const { whole, ...changes } = await changesOf(setup);
  for (const script of ["setup", "undo"] as const) {
    rows.push(...changes[script].map((call) => ({ name, script, call, setup, whole })));
  }
}

describe("lastcall setup that is throttled on its way", () => {
  it.each(rows)("($name, $script) at $call is completed, and removed", async (row) => {
    const { options, standing, kept = [] } = row.setup;
    fresh(row.setup);
    const rest = () => Object.keys(tools.standing()).filter((one) => !(one in standing));
    const set = async (undo: boolean) => runSetupOn(tools, { ...options, undo });
    if (row.script === "undo") expect((await set(false)).code).toBe(0);
    tools.break(row.call, throttled);
    const { code, err, out } = await set(row.script === "undo");
    expect(code).toMatchObject({ code: "SCRIPT_FAILED" });
    expect(err).toContain("Not finished: ");
    expect(out).not.toContain("Done");
    tools.mend();
    const half = tools.standing();
    expect(await set(true)).toMatchObject({ code: 0, err: "" });
    expect(rest()).toEqual(rest().length === 0 ? [] : kept);
    if (row.script === "undo") return;
    tools.remove();
    fresh(row.setup);
    for (const [what, content] of Object.entries(half)) tools.put(what, content);
    expect(await set(false)).toMatchObject({ code: 0, err: "" });
    expect(tools.standing()).toEqual(row.whole);
  });
});

describe("lastcall setup grants nothing", () => {
  const none = { exitCode: 0, message: "" };
  const absent = { exitCode: 3, message: "(ResourceNotFound) The Resource was not found." };

  it.each([
    ["gcp", "projects|describe", none, "as the number of the project my-project-1, expected"],
    ["azure", "--query|principalId", absent, "has no client id or no principal id yet"],
    ["azure", "--query|clientId", none, "has no client id or no principal id yet"],
  ] as const)("(%s) to what %s does not name", async (wanted, call, how, words) => {
    const setup = setups.find(({ name }) => name === wanted) as Setup;
    fresh(setup);
    tools.break(call, how);
    const { code, err } = await runSetupOn(tools, setup.options);
    expect(code).toMatchObject({ code: "SCRIPT_FAILED" });
    expect(err).toContain(words);
    expect(Object.keys(tools.standing()).join()).not.toMatch(/grant|annotation/);
  });
});
