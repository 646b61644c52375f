import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import type { CommandIo } from "../../src/cli/command-line/command.ts";
import { runCommandLine } from "../../src/cli/command-line/command-line.ts";
import { seededRng } from "../../src/core/chance/chance.ts";
import { processIo } from "../../src/runtime/process-io.ts";
import { realClock } from "../../src/runtime/real-clock.ts";

const folder = mkdtempSync(join(tmpdir(), "lastcall-simulate-"));

afterAll(() => rmSync(folder, { recursive: true }));

function file(name: string, content: unknown): string {
  const path = join(folder, name);
  writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
  return path;
}

async function lastcall(...args: readonly string[]) {
  const [out, err]: [string[], string[]] = [[], []];
  const io: CommandIo = {
    out: (text) => void out.push(text),
    err: (text) => void err.push(text),
    ...{ files: processIo().files, isTerminal: false, colour: false, columns: 100, env: {}, fetch },
    ...{ clock: realClock, rng: seededRng(1), signal: new AbortController().signal },
  };
  const code = await runCommandLine(["simulate", ...args], io);
  return { code, out: out.join(""), err: err.join("") };
}

async function report(...args: readonly string[]) {
  const { code, out, err } = await lastcall(...args, "-o", "json");
  expect({ code, err }).toEqual({ code: 0, err: "" });
  const { wallSeconds: _, ...rest } = JSON.parse(out);
  return rest;
}

const policy = (name: string, spec: object) => ({
  ...{ apiVersion: "lastcall.dev/v1alpha1", kind: "DeparturePolicy", metadata: { name }, spec },
});
const small = file("small.yaml", "nodes: 6\nhours: 8\npreemptions: None\n");
const rotating = file("rotating.yaml", policy("rotating", { lifetime: { max: "24h" } }));
const ofPlatform = file("platform.yaml", policy("spot", { lifetime: { max: "Platform" } }));
const noticesOnly = file("notices.yaml", policy("notices", { lifetime: {} }));

describe("lastcall simulate", () => {
  it("reports what a policy does beside the same fleet without Lastcall", async () => {
    const found = await report(small, "--policy", rotating);
    expect(found).toMatchObject({
      ...{ kind: "SimulationReport", seed: 3, runs: 1, nodeHours: 48, violations: [] },
      policies: [
        { name: "none", plannedDepartures: 0, preempted: 6, preemptedAtLimit: 6 },
        { name: "lastcall", plannedDepartures: 6, preempted: 0, podsLost: 0 },
      ],
    });
  });

  it("compares several policies on the same course", async () => {
    const policies = ["--policy", rotating, "--policy", noticesOnly];
    const found = await report(small, ...policies, "--compare");
    expect(found.policies).toMatchObject([
      { name: "none", preempted: 6 },
      { name: rotating, plannedDepartures: 6, preempted: 0 },
      { name: noticesOnly, plannedDepartures: 0, preempted: 6, podsLost: 0 },
    ]);
  });

  it("adds up several runs, each of which the seed alone decides", async () => {
    const some = file("some.yaml", "nodes: 6\nhours: 8\nages: Spread\n");
    const both = await report(some, "--seed", "5", "--runs", "2");
    expect(both).toMatchObject({ seed: 5, runs: 2, nodeHours: 96, violations: [] });
    const alone = [];
    for (const seed of ["5", "6"]) alone.push(await report(some, "--seed", seed));
    const launched = (one: { policies: { replacements: number }[] }) =>
      one.policies.map(({ replacements }) => replacements);
    const sums = alone.map(launched).reduce((a, b) => a.map((count, at) => count + (b[at] ?? 0)));
    expect(launched(both)).toEqual(sums);
  });

  it("takes half of the fleet at once in a storm, and no pod is killed with Lastcall", async () => {
    const storm = "nodes: 12\nhours: 2\nages: Spread\nstorm: {after: 1h, share: 50%}\n";
    const { policies, violations } = await report(file("storm.yaml", storm));
    const [none, ours] = policies;
    expect(none.largestLossIn60s).toBeGreaterThanOrEqual(3);
    expect(none.largestLossIn60s).toBeLessThanOrEqual(9);
    expect(ours.largestLossIn60s).toBe(none.largestLossIn60s);
    expect(none.podsLost).toBeGreaterThan(0);
    expect({ podsLost: ours.podsLost, violations }).toEqual({ podsLost: 0, violations: [] });
  });

  it("takes the limit of the platform, as a policy of the same length in hours", async () => {
    const [own, platforms] = [
      file("own.yaml", policy("spot", { lifetime: { max: "24h" } })),
      ofPlatform,
    ];
    expect(await report(small, "--policy", platforms)).toEqual(
      await report(small, "--policy", own),
    );
  });

  it("simulates the Spot nodes that kubectl wrote, at their ages", async () => {
    const node = (name: string, createdAt: string, spot = "true") => ({
      metadata: {
        ...{ name, uid: name, creationTimestamp: createdAt },
        labels: { "cloud.google.com/gke-spot": spot, "topology.kubernetes.io/zone": "zone-a" },
      },
      status: { conditions: [{ type: "Ready", lastHeartbeatTime: "2026-11-20T00:00:00Z" }] },
    });
    const items = [
      node("old", "2026-11-18T00:00:00Z"),
      node("young", "2026-11-19T23:00:00Z"),
      node("other", "2026-11-18T00:00:00Z", "false"),
    ];
    const nodes = file("nodes.json", { apiVersion: "v1", kind: "NodeList", items });
    const found = await report(nodes, "--policy", noticesOnly);
    expect(found).toMatchObject({ nodeHours: 96, violations: [] });
    expect(found.policies[0].preempted).toBeGreaterThanOrEqual(2);
  });

  it("says why nothing leaves as planned in a pool without room for the pods of a node", async () => {
    const labels = { "cloud.google.com/gke-spot": "true" };
    const metadata = { name: "a", uid: "a", creationTimestamp: "2026-11-19T05:00:00Z", labels };
    const status = { conditions: [{ type: "Ready", lastHeartbeatTime: "2026-11-20T00:00:00Z" }] };
    const items = [{ metadata, status }];
    const nodes = file("one.json", { apiVersion: "v1", kind: "NodeList", items });
    const { policies } = await report(nodes, "--policy", rotating);
    expect(policies[1]).toMatchObject({ plannedDepartures: 0 });
    expect(policies[1].setbacks[0]).toMatchObject({
      ...{ outcome: "RolledBack", reason: "DrainTimeout" },
      example: expect.stringMatching(/was not drained within the drain timeout: shop\//),
    });
    expect(policies[1].setbacks[0].podsWithoutNode).toBeGreaterThan(1);
    const { out } = await lastcall(nodes, "--policy", rotating);
    expect(out).toMatch(
      /\nlastcall: \d+ planned departures? w\w+ rolled back \(DrainTimeout\), with no node for up to \d+ pods, such as: /,
    );
  });

  it("keeps the labels of recorded nodes, and names a policy that selects none", async () => {
    const labels = { "cloud.google.com/gke-spot": "true", pool: "batch" };
    const items = ["a", "b", "c"].map((name) => ({
      metadata: { name, uid: name, creationTimestamp: "2026-11-19T06:00:00Z", labels },
      status: { conditions: [{ type: "Ready", lastHeartbeatTime: "2026-11-20T00:00:00Z" }] },
    }));
    const nodes = file("pool.json", { apiVersion: "v1", kind: "NodeList", items });
    const selecting = (pool: string) => ({
      nodeSelectorTerms: [{ matchExpressions: [{ key: "pool", operator: "In", values: [pool] }] }],
    });
    const spec = { lifetime: { max: "24h" } };
    const batch = file(
      "batch.yaml",
      policy("batch", { ...spec, nodeSelector: selecting("batch") }),
    );
    const web = file("web.yaml", policy("web", { ...spec, nodeSelector: selecting("web") }));
    const found = await lastcall(nodes, "--policy", batch, "--policy", web, "--compare");
    expect(found.err).toBe("lastcall: Policy web selects none of the 3 Spot nodes\n");
    expect(found.out).toMatch(/batch.yaml +[1-9]/);
    expect(found.out).toMatch(/web.yaml +0/);
  });

  it("accepts recorded zones of any name", async () => {
    const zones = ["Rack_A.1", "", "Z".repeat(63)];
    const items = zones.map((zone, place) => ({
      metadata: {
        ...{ name: `n${place}`, uid: `n${place}`, creationTimestamp: "2026-11-19T06:00:00Z" },
        labels: { "cloud.google.com/gke-spot": "true", "topology.kubernetes.io/zone": zone },
      },
      status: { conditions: [{ type: "Ready", lastHeartbeatTime: "2026-11-20T00:00:00Z" }] },
    }));
    const nodes = file("rack.json", { apiVersion: "v1", kind: "NodeList", items });
    const inZone = { key: "topology.kubernetes.io/zone", operator: "In", values: zones };
    const nodeSelector = { nodeSelectorTerms: [{ matchExpressions: [inZone] }] };
    const rack = file("rack.yaml", policy("rack", { lifetime: { max: "24h" }, nodeSelector }));
    const found = await report(nodes, "--policy", rack);
    // Each departs twice in 48 hours at most: two of the zones would have four at most.
    expect(found.policies[1].plannedDepartures).toBeGreaterThan(4);
  });

  it("lists its scenarios", async () => {
    const { code, out } = await lastcall("--list");
    expect(code).toBe(0);
    expect(out).toMatch(/^SCENARIO +NODES +HOURS +WHAT HAPPENS\npool +18 +48 +a node pool/);
    const { out: json } = await lastcall("--list", "-o", "json");
    const names = JSON.parse(json).items.map(({ name }: { name: string }) => name);
    expect(names).toEqual(["pool", "spread", "limit", "storm"]);
  });

  it.each([
    ["nodes: many\n", /bad.yaml:1: nodes: found "many", expected a whole number from 1 to 5000$/],
    ["nodes: 3\nhours: 0\n", /bad.yaml:2: hours: found 0, expected a number above 0$/],
    ["zones: []\n", /zones: found \[\], expected a list of zones such as europe-west1-b$/],
    ["zones: [Zone A]\n", /zones: found \["Zone A"\], expected a list of zones such as/],
    ["[3, 4]\n", /bad.yaml:1: found \[3,4\], expected a scenario$/],
    ["ages: Old\n", /ages: found "Old", expected Together or Spread$/],
    ["preemptions: Often\n", /preemptions: found "Often", expected Measured or None$/],
    ["storm: {share: half}\n", /storm: found .*, expected after, a duration shorter than hours/],
    ["storm: {after: 1h, share: 150%}\n", /storm: found .*, expected .* from 1% to 100%/],
    [
      "hours: 2\nstorm: {after: 6h, share: 50%}\n",
      /bad.yaml:2: storm: found .*, a duration shorter than hours/,
    ],
    ["node: 3\n", /bad.yaml:1: node: found 3, expected a field of a scenario: nodes, hours/],
    ['{"kind": "NodeList", "items": []}', /found 0 nodes and no Spot node, expected the output/],
  ])("rejects the scenario %j with line and field", async (text, sentence) => {
    const { code, out, err } = await lastcall(file("bad.yaml", text));
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err.trimEnd()).toMatch(sentence);
  });

  it.each([
    [["--compare"], "none was given, add --policy FILE"],
    [[small, "--scenario", "pool"], "expected one of the two"],
    [["--policy", file("p.yaml", policy("p", { lifetime: { max: "1 day" } }))], '"1 day"'],
    [["--policy", "-"], "from standard input, expected a file"],
    [["--scenario", "tsunami"], "expected pool, spread, limit or storm"],
  ])("rejects %j", async (args, sentence) => {
    const { code, out, err } = await lastcall(...args);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toContain(sentence);
  });
});
