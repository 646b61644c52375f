import { spawnSync } from "node:child_process";
import { afterEach, describe, expect, it } from "vitest";
import { type CloudSetup, cloudSetups } from "../support/cloud-setups.ts";
import type { FakeTools } from "../support/fake-tools.ts";
import { runSetupOn } from "../support/run-setup.ts";

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

function fresh({ make, standing }: CloudSetup, made: Changes["whole"] = {}): void {
  tools = make();
  for (const [what, content] of Object.entries({ ...standing, ...made })) tools.put(what, content);
}

interface Changes {
  /** By name: those of a whole set-up, and those of its removal. */
  readonly setup: readonly string[];
  readonly undo: readonly string[];
  /** What exists after the whole set-up. */
  readonly whole: Readonly<Record<string, string>>;
}

async function changesOf(setup: CloudSetup): Promise<Changes> {
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

interface Row extends Pick<CloudSetup, "name"> {
  readonly script: "setup" | "undo";
  readonly call: string;
  readonly setup: CloudSetup;
  readonly whole: Changes["whole"];
}

const rows: Row[] = [];
for (const setup of cloudSetups) {
  const { name } = setup;
  const { whole, ...changes } = await changesOf(setup);
  for (const script of ["setup", "undo"] as const) {
    rows.push(...changes[script].map((call) => ({ name, script, call, setup, whole })));
  }
}

/** An error does not tell whether the call took effect. */
const ways = rows.flatMap((row) => [
  { ...row, way: "without effect", effective: false },
  { ...row, way: "with its effect", effective: true },
]);

/** Several errors leave the same state, and the same follows from it: it is tried once. */
const [removed, completed] = [new Set<string>(), new Set<string>()];

function isNew(known: Set<string>, state: string): boolean {
  return known.size < known.add(state).size;
}

describe("lastcall setup that is interrupted on its way", () => {
  it.each(ways)("($name, $script) at $call $way is completed, and removed", async (row) => {
    const { options, standing, kept = [] } = row.setup;
    fresh(row.setup, row.script === "undo" ? row.whole : {});
    const rest = () => Object.keys(tools.standing()).filter((one) => !(one in standing));
    const set = async (undo: boolean) => runSetupOn(tools, { ...options, undo });
    tools.break(row.call, { ...throttled, effective: row.effective });
    const { code, err, out } = await set(row.script === "undo");
    tools.mend();
    // Where a step looks before it tries again, it finds what was done.
    if (code !== 0) {
      expect(code).toMatchObject({ code: "SCRIPT_FAILED" });
      expect(err).toContain("Not finished: ");
      expect(out).not.toContain("Done");
    }
    // What the script cannot know to be its own, it says how to remove.
    for (const command of out.match(/^gcloud .* keys delete .*$/gm) ?? []) {
      expect(spawnSync("bash", ["-c", command], { env: { PATH: tools.path } }).status).toBe(0);
    }
    const half = tools.standing();
    const state = JSON.stringify([row.name, half]);
    if (isNew(removed, state)) {
      expect(await set(true)).toMatchObject({ code: 0, err: "" });
      expect(rest()).toEqual(rest().length === 0 ? [] : kept);
    }
    if (row.script === "undo" || !isNew(completed, state)) return;
    tools.remove();
    fresh(row.setup, half);
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
    const setup = cloudSetups.find(({ name }) => name === wanted) as CloudSetup;
    fresh(setup);
    tools.break(call, how);
    const { code, err } = await runSetupOn(tools, setup.options);
    expect(code).toMatchObject({ code: "SCRIPT_FAILED" });
    expect(err).toContain(words);
    expect(Object.keys(tools.standing()).join()).not.toMatch(/grant|annotation/);
  });
});
