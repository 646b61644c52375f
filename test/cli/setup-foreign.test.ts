import { afterEach, describe, expect, it } from "vitest";
import { type CloudSetup, cloudSetups } from "../support/cloud-setups.ts";
import type { FakeTools } from "../support/fake-tools.ts";
import { runSetupOn } from "../support/run-setup.ts";

/**
 * What others made before: a set-up changes nothing of it, and either refuses before its first
 * change, or can be undone without a trace.
 */

const role = "arn:aws:iam::123456789012:role/lastcall";
const account = "lastcall-shop@my-project-1.iam.gserviceaccount.com";
const permission = "serviceAccount:my-project-1.svc.id.goog[lastcall/lastcall]";
const annotation = (key: string) => `annotation-lastcall-${key.replace("/", "_")}`;

type Things = Readonly<Record<string, Readonly<Record<string, string>>>>;

const foreign: Readonly<Record<string, Things>> = {
  "aws with Pod Identity": {
    "an association with a role of this name": { association: role },
    "another association": { association: `${role}-2` },
    "a queue that only its list shows": { queue: "None", "queue-hidden": "" },
    "a queue": { queue: "None" },
    "a rule": { "rule-q-health": "None" },
  },
  "aws with IRSA": {
    "an annotation with this role": { [annotation("eks.amazonaws.com/role-arn")]: role },
    "another annotation": { [annotation("eks.amazonaws.com/role-arn")]: `${role}-2` },
    "a role": { role: "None" },
  },
  "gcp with an account": {
    "the account": { account: "", "account-description": "Killer" },
    "the account, which may be impersonated": {
      ...{ account: "", "account-description": "Killer", binding: permission },
    },
    "an annotation with this account": { [annotation("iam.gke.io/gcp-service-account")]: account },
    "another annotation": { [annotation("iam.gke.io/gcp-service-account")]: `2-${account}` },
  },
  "gcp with a key": {
    "the account": { account: "", "account-description": "Killer" },
    "a Secret": { secret: "? ?" },
    "a Secret of another account": { secret: `2-${account} 1234` },
  },
  azure: {
    "an annotation with this client": {
      [annotation("azure.workload.identity/client-id")]: "client-1",
    },
    "another annotation": { [annotation("azure.workload.identity/client-id")]: "client-2" },
    "an identity": { identity: "None" },
  },
};

interface Row {
  readonly name: string;
  readonly what: string;
  readonly setup: CloudSetup;
  readonly before: Readonly<Record<string, string>>;
}

const rows = cloudSetups.flatMap((setup): readonly Row[] => {
  const { name } = setup;
  const things = Object.entries(foreign[name] ?? {});
  const sets = Array.from({ length: 2 ** things.length - 1 }, (_, at) =>
    things.filter((__, bit) => ((at + 1) >> bit) % 2 === 1),
  );
  const found = sets.map((set) => ({
    ...{ name, what: set.map(([one]) => one).join(", "), setup },
    before: Object.assign({}, setup.standing, ...set.map(([, content]) => content)),
  }));
  // Of two things in one place there is one: the same world as without the other.
  const worlds = new Map(found.toReversed().map((row) => [JSON.stringify(row.before), row]));
  return [...worlds.values()].toReversed();
});

let tools: FakeTools;
afterEach(() => tools.remove());

/** Google keeps the id of a deleted role. */
function standing(): Readonly<Record<string, string>> {
  const { "role-deleted": deleted, role: found, ...rest } = tools.standing();
  return deleted === undefined && found !== undefined ? { ...rest, role: found } : rest;
}

describe("lastcall setup where others have made something of these names", () => {
  it.each(rows)("($name: $what) leaves it as it is", async ({ setup, before }) => {
    tools = setup.make();
    for (const [what, content] of Object.entries(before)) tools.put(what, content);
    const done = await runSetupOn(tools, setup.options);
    if (done.code === 0) expect(standing()).toMatchObject(before);
    else {
      expect(done.err).toMatch(/^Cannot (continue|tell)/m);
      expect(done.err).toContain("Not finished: nothing was changed");
      expect(standing()).toEqual(before);
    }
    const undone = await runSetupOn(tools, { ...setup.options, undo: true });
    if (undone.code !== 0) {
      expect(done.code).not.toBe(0);
      expect(undone.err).toContain("Not finished: nothing was changed");
    }
    expect(standing()).toEqual(before);
  });
});
