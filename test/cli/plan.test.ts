import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import type { CommandIo } from "../../src/cli/command-line/command.ts";
import { runCommandLine } from "../../src/cli/command-line/command-line.ts";
import { seededRng } from "../../src/core/chance/chance.ts";
import type { PlanReport } from "../../src/core/plan/plan-report.ts";
import { formatInstant } from "../../src/core/time/time.ts";
import { processIo } from "../../src/runtime/process-io.ts";
import { realClock } from "../../src/runtime/real-clock.ts";

const folders: string[] = [];

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

function node(name: string, owner: Readonly<Record<string, string>> = {}) {
  return {
    ...{ apiVersion: "v1", kind: "Node" },
    metadata: {
      ...{ name, uid: `uid-${name}`, creationTimestamp: "2026-11-20T00:00:00Z" },
      labels: { "cloud.google.com/gke-spot": "true", ...owner },
    },
    spec: { providerID: `gce://p/z/${name}` },
  };
}

function policy(spec: object, conditions: readonly object[] = []) {
  return {
    ...{ apiVersion: "lastcall.dev/v1alpha1", kind: "DeparturePolicy" },
    ...{ metadata: { name: "spot" }, spec: { lifetime: { max: "24h" }, ...spec } },
    status: { conditions },
  };
}

async function plan(items: readonly object[], more: readonly string[] = []) {
  const { code, out, err } = await printed(items, ["-o", "json", ...more]);
  const report = JSON.parse(out) as PlanReport;
  return { code, forecast: report.policies[0]?.forecast, err };
}

/** The Departure of a node as the controller plans it. */
function departureOf(name: string, spec: object) {
  return {
    ...{ apiVersion: "lastcall.dev/v1alpha1", kind: "Departure" },
    metadata: { name: `${name}-1`, uid: `d-${name}` },
    spec: {
      node: { name, uid: `uid-${name}`, providerID: `gce://p/z/${name}` },
      ...{ cause: "Planned", policy: "spot", source: "planner", ...spec },
    },
    status: { phase: "Scheduled", timeline: [] },
  };
}

async function printed(
  items: readonly object[],
  more: readonly string[] = [],
  at: readonly string[] = ["--at", "2026-11-20T01:00:00Z"],
) {
  const folder = mkdtempSync(join(tmpdir(), "lastcall-plan-"));
  folders.push(folder);
  const file = join(folder, "fleet.json");
  writeFileSync(file, JSON.stringify({ apiVersion: "v1", kind: "List", items }));
  const [out, err]: [string[], string[]] = [[], []];
  const io: CommandIo = {
    out: (text) => void out.push(text),
    err: (text) => void err.push(text),
    ...{ files: processIo().files, isTerminal: false, colour: false, columns: 100, env: {}, fetch },
    ...{ clock: realClock, rng: seededRng(1), signal: new AbortController().signal },
  };
  const words = ["plan", "--from", file, ...at, ...more];
  const code = await runCommandLine(words, io);
  return { code, out: out.join(""), err: err.join("") };
}

const karpenters = ["i-0a", "i-0b"].map((id) => node(id, { "karpenter.sh/nodepool": "spot" }));
const past = { instance: { release: "Delete" } };

it("shows when the turn comes of a departure that a budget held before", async () => {
  const began = departureOf("n0", { departAt: "2026-11-20T00:45:00Z" });
  const startedAt = "2026-11-20T00:50:00Z";
  const draining = { ...began, status: { phase: "Draining", startedAt, timeline: [] } };
  const due = departureOf("n1", {
    ...{ departAt: "2026-11-20T00:45:00Z", deadlineAt: "2026-11-20T23:30:00Z" },
  });
  const held = { ...due, status: { phase: "Held", reason: "BudgetSpent", timeline: [] } };
  const fleet = [node("n0"), node("n1"), draining, held, policy({ spacing: { min: "15m" } })];
  const { out } = await printed(fleet);
  expect(out).toMatch(/n1 .* due 15m ago, expected in 5m .* Spaced\n/);
  const { out: later } = await printed(fleet, [], ["--at", "2026-11-20T01:05:00Z"]);
  expect(later).toMatch(/n1 .* due 20m ago .*held: BudgetSpent\n/);
});

describe("a machine that is older than its Node object", () => {
  const at = { departAt: "2026-11-20T02:00:00Z", deadlineAt: "2026-11-20T02:00:00Z" };
  const known = departureOf("n1", { ...at, launchedAt: "2026-11-19T02:30:00.000Z" });

  it("is planned as by the controller, which has recorded its launch time", async () => {
    const windows = [
      { name: "late", type: "Allow", timeZone: "UTC", start: "20:00", end: "22:00" },
    ];
    const { forecast } = await plan([node("n1"), known, policy({ windows })]);
    expect(forecast).toMatchObject({ feasible: false, late: ["n1"] });
  });

  it("is planned so by other policies, too", async () => {
    const { out } = await printed(
      [node("n1"), known, policy({ lifetime: { max: "48h" } })],
      [...["-o", "json"]],
    );
    const [departure] = (JSON.parse(out) as PlanReport).policies[0]?.departures ?? [];
    expect(departure).toMatchObject({
      bornAt: "2026-11-19T02:30:00.000Z",
      bornFrom: "Instance",
      deadlineAt: "2026-11-21T02:00:00.000Z",
    });
  });
});

describe("a plan of machines that cannot be released", () => {
  it("is infeasible, and says so in its forecast, in a field and on stderr", async () => {
    const { code, forecast, err } = await plan([...karpenters, policy(past)], ["--strict"]);
    expect(forecast?.explain).toMatch(
      /^Neither departure can start: the machine belongs to Karpenter/,
    );
    const release = { possible: false, reason: "ReleaseImpossible", nodes: ["i-0a", "i-0b"] };
    // No node is late: it is the start that is impossible.
    expect(forecast).toMatchObject({ feasible: false, late: [], widenBySeconds: 0, release });
    expect(err).toContain("Policy spot: Neither departure can start");
    expect(code).toBe(3);
  });

  it("names the nodes concerned", async () => {
    const { forecast } = await plan([node("n1"), ...karpenters.slice(1), policy(past)]);
    expect(forecast?.explain).toMatch(/^1 of 2 departures cannot start/);
    expect(forecast?.release?.nodes).toEqual(["i-0b"]);
  });

  it("does not mention it if the policy releases nothing", async () => {
    const { forecast, err } = await plan([
      ...karpenters,
      policy({ instance: { release: "None" } }),
    ]);
    expect(forecast?.feasible).toBe(true);
    expect(forecast).not.toHaveProperty("release");
    expect(err).toBe("");
  });
});

describe("what the controller found out from the cloud", () => {
  const found = (reason: string) => [
    { type: "Feasible", status: "False", reason, message: "1 of 1 departures: no token" },
  ];
  const onGce = node("n1");

  it.each(["ReleaseImpossible", "CloudUnreachable"])(
    "is repeated by the plan: %s",
    async (reason) => {
      const { code, forecast, err } = await plan([onGce, policy({}, found(reason))], ["--strict"]);
      expect([code, forecast?.feasible]).toEqual([3, false]);
      expect(forecast?.release).toEqual({ possible: false, reason, nodes: [] });
      expect(forecast?.explain).toContain("the controller found: 1 of 1 departures: no token");
      expect(err).toContain("no token");
    },
  );

  it("is not repeated if it is about deadlines", async () => {
    const { forecast } = await plan([onGce, policy({}, found("Late"))]);
    expect(forecast).not.toHaveProperty("release");
  });
});

describe("a plan of which the controller starts no departure", () => {
  const at = { lastHeartbeatTime: "2026-11-20T00:59:00Z" };
  const reported = (name: string, status: "True" | "False") => ({
    ...node(name),
    status: { conditions: [{ type: "Ready", status, ...at }] },
  });

  it("is infeasible if the fleet is unhealthy", async () => {
    const nodes = ["n1", "n2"].map((name) => reported(name, "False"));
    const { code, forecast } = await plan([...nodes, policy({})], ["--strict"]);
    expect([code, forecast?.feasible]).toEqual([3, false]);
    expect(forecast?.explain).toMatch(
      /^No voluntary departure starts, because the fleet is unhealthy: 2 of 2 nodes/,
    );
  });

  it("is feasible if no report of a kubelet shows how the nodes are", async () => {
    const { forecast } = await plan([node("n1"), node("n2"), policy({})]);
    expect(forecast).toMatchObject({ feasible: true, explain: "Both departures are on schedule" });
  });

  it("is infeasible if a policy that cannot be read may own its nodes", async () => {
    const weighty = {
      ...policy({ weight: 5, lifetime: { max: "soon" } }),
      metadata: { name: "a" },
    };
    const nodes = [reported("n1", "True")];
    const { code, out } = await printed([...nodes, weighty, policy({})], ["-o", "json"]);
    const [spot] = (JSON.parse(out) as PlanReport).policies;
    expect(code).toBe(0);
    expect(spot?.forecast.feasible).toBe(false);
    expect(spot?.forecast.explain).toMatch(/^1 node is held back, because a policy that might own/);
  });
});

describe("a policy that selects no node", () => {
  const nodeSelector = {
    nodeSelectorTerms: [{ matchExpressions: [{ key: "pool", operator: "In", values: ["none"] }] }],
  };

  it("is named on stderr and in the table, and fails under --strict", async () => {
    const items = [node("n1"), policy({ nodeSelector })];
    const { code, out, err } = await printed(items, ["--strict"]);
    expect(code).toBe(3);
    expect(err).toContain("Policy spot selects no node");
    expect(out).toMatch(/^Policy spot: 0 nodes\. It selects no node/);
    expect(await printed(items)).toMatchObject({ code: 0 });
  });

  it("is not said to select none if another one takes all that it selects", async () => {
    const heavy = { ...policy({ weight: 1 }), metadata: { name: "heavy" } };
    const { code, out, err } = await printed([node("n1"), policy({}), heavy], ["--strict"]);
    expect(code).toBe(3);
    expect(err).toContain("Policy spot applies to no node that it selects");
    expect(out).toMatch(/^Policy spot: 0 nodes\. It applies to no node: policies of more weight/m);
  });
});

describe("the table of a plan", () => {
  const held = (name: string, departAt: string) => ({
    ...{ apiVersion: "lastcall.dev/v1alpha1", kind: "Departure" },
    metadata: { name: `${name}-x`, creationTimestamp: "2026-11-20T00:10:00Z" },
    spec: {
      node: { name, uid: `uid-${name}`, providerID: `gce://p/z/${name}` },
      ...{ cause: "Planned", departAt, policy: "spot" },
    },
    status: { phase: "Held", reason: "BudgetSpent" },
  });

  it("calls a departure due whose time has come but which has not started", async () => {
    const { out } = await printed([node("n1"), policy({}), held("n1", "2026-11-20T00:57:00Z")]);
    expect(out).toMatch(
      /^Policy spot: 1 node\. The departure is held back\. Held: Waits for the budget \(1\)\.\n/,
    );
    expect(out).toMatch(/^n1 +due 3m ago +in 22h30m +Spaced, held: BudgetSpent$/m);
  });

  it("says how many departures have moved since the last plan", async () => {
    const stale = ["n1", "n2"].map((name) => held(name, "2026-11-20T23:00:00Z"));
    const status = { conditions: [{ type: "Ready", status: "True" }] };
    const nodes = ["n1", "n2"].map((name) => ({ ...node(name), status }));
    const { out } = await printed([...nodes, policy({}), ...stale]);
    expect(out).toContain(
      "on schedule; 1 departure is at a different time than in the previous plan.\n",
    );
  });
});

describe("the input of a plan", () => {
  const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "a" } };

  it.each([
    ["only policies", [policy({})], "DeparturePolicy"],
    ["pods and policies", [policy({}), pod], "DeparturePolicy, Pod"],
    ["only an API error", [{ apiVersion: "v1", kind: "Status", status: "Failure" }], "Status"],
  ])("with %s but no node is rejected, since that is no fleet", async (_, items, kinds) => {
    const { code, out, err } = await printed(items);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toMatch(
      new RegExp(`^lastcall: Cannot read .*: found ${kinds} and no Node, expected [^\\n]+\\n$`),
    );
  });

  it("may be an empty list: a cluster without nodes", async () => {
    expect(await printed([])).toMatchObject({ code: 0 });
  });

  it("may have policies in a folder, and in UTF-16 as PowerShell writes it", async () => {
    const folder = mkdtempSync(join(tmpdir(), "lastcall-plan-"));
    folders.push(folder);
    writeFileSync(join(folder, "a.json"), JSON.stringify(policy({})));
    const other = { ...policy({}), metadata: { name: "other" } };
    writeFileSync(join(folder, "b.yaml"), `\ufeff${JSON.stringify(other)}`, "utf16le");
    writeFileSync(join(folder, ".hidden.yaml"), "{");
    writeFileSync(join(folder, "README.md"), "{");
    const { out } = await printed([node("n1")], ["-f", folder]);
    expect(out).toMatch(/^Policy other: 1 node\..*\nPolicy spot: 0 nodes\./s);
  });

  it("is rejected with every mistake, the first one in the sentence", async () => {
    const folder = mkdtempSync(join(tmpdir(), "lastcall-plan-"));
    folders.push(folder);
    const file = join(folder, "policy.yaml");
    const spec = { lifetime: { max: "1 day", reserve: "soon" }, spacing: { min: "often" } };
    writeFileSync(file, JSON.stringify({ ...policy({}), spec }, null, 1));
    const { code, out, err } = await printed([node("n1")], ["-f", file]);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    const [sentence = "", ...others] = err.trimEnd().split("\n");
    expect(sentence).toMatch(/spec\.lifetime\.max: found "1 day".* \(and 2 more mistakes\)$/);
    expect(others).toEqual([
      expect.stringMatching(`^  ${file}:\\d+: spec\\.lifetime\\.reserve: found "soon", expected`),
      expect.stringMatching(`^  ${file}:\\d+: spec\\.spacing\\.min: found "often", expected`),
    ]);
  });

  it("is rejected with a folder that contains no policy", async () => {
    const folder = mkdtempSync(join(tmpdir(), "lastcall-plan-"));
    folders.push(folder);
    const { code, err } = await printed([node("n1")], ["-f", folder]);
    expect({ code, err }).toEqual({
      code: 2,
      err: `lastcall: Cannot read ${folder}: found no .yaml, .yml or .json file, expected one with a DeparturePolicy\n`,
    });
  });
});

describe("a plan with a policy of the cluster", () => {
  it("that this version cannot read names the problem, and fails under --strict", async () => {
    const newer = { ...policy({}), apiVersion: "lastcall.dev/v1" };
    const { code, out, err } = await printed([node("n1"), newer], ["--strict"]);
    expect(code).toBe(3);
    expect(out).toMatch(/^n1 +PolicyInvalid /m);
    expect(err).toBe(
      'lastcall: Policy spot cannot be read, so its nodes stay: apiVersion: found "lastcall.dev/v1", expected lastcall.dev/v1alpha1\n',
    );
  });

  it("with a field of a newer version names the field", async () => {
    const { code, err } = await printed([node("n1"), policy({ moonPhase: "full" })]);
    expect({ code, err }).toEqual({
      code: 0,
      err: "lastcall: Policy spot: spec.moonPhase is ignored: this version does not know the field\n",
    });
  });
});

describe("nodes from a file", () => {
  function reportedAt(at: string) {
    const conditions = [{ type: "Ready", status: "True", lastHeartbeatTime: at }];
    return [{ ...node("n1"), status: { conditions } }, policy({})];
  }

  it("that was recorded long ago are planned with a hint to use --at", async () => {
    const { err } = await printed(reportedAt("2025-11-20T06:00:00Z"), [], []);
    expect(err).toContain("--at 2025-11-20T06:00:00.000Z plans them as of that time");
    const { err: quiet } = await printed(reportedAt("2025-11-20T06:00:00Z"), ["-q"], []);
    expect(quiet).toBe("");
  });

  it.each([
    ["of this hour", formatInstant(realClock.now()), []],
    ["that are planned as of then", "2025-11-20T06:00:00Z", ["--at", "2025-11-20T07:00:00Z"]],
  ])("%s are planned without that hint", async (_, reported, at) => {
    const { err } = await printed(reportedAt(reported), [], at);
    expect(err).not.toContain("plans them as of that time");
  });
});
