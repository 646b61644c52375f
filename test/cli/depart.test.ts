import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { CommandIo } from "../../src/cli/command-line/command.ts";
import { runCommandLine } from "../../src/cli/command-line/command-line.ts";
import { seededRng } from "../../src/core/chance/chance.ts";
import {
  between,
  formatInstant,
  hours,
  instant,
  minus,
  minutes,
  parseInstant,
  plus,
  seconds,
} from "../../src/core/time/time.ts";
import { processIo } from "../../src/runtime/process-io.ts";
import { realClock } from "../../src/runtime/real-clock.ts";
import { type ModelServer, serveModel } from "../../src/sim/http/serve-model.ts";
import { departures, ModelWorld, nodes } from "../support/model-world.ts";

let world: ModelWorld;
let server: ModelServer;
let folder: string;

beforeEach(async () => {
  world = new ModelWorld();
  for (const name of ["n0", "n1"]) world.addNode(name, "a");
  server = await serveModel({ api: world.api });
  folder = await mkdtemp(join(tmpdir(), "lastcall-depart-"));
  await writeFile(join(folder, "kubeconfig"), server.kubeconfig);
});

afterEach(async () => {
  await server.close();
  await rm(folder, { recursive: true });
});

async function lastcall(...args: readonly string[]) {
  let [stdout, stderr] = ["", ""];
  const io: Partial<CommandIo> = {
    out: (text) => {
      stdout += text;
    },
    err: (text) => {
      stderr += text;
    },
    env: { KUBECONFIG: join(folder, "kubeconfig") },
    files: processIo().files,
    ...{ isTerminal: false, colour: false, columns: 80 },
    ...{ clock: realClock, rng: seededRng(1), signal: new AbortController().signal },
  };
  const exit = await runCommandLine(args, io as CommandIo);
  return { exit, stdout, stderr };
}

function made(): readonly object[] {
  return world.list(departures).map(({ spec }) => spec as object);
}

const at = "2030-01-01T00:00:00.000Z";
const by = "2030-01-01T06:00:00.000Z";

describe("lastcall depart", () => {
  it("creates a Departure for each node", async () => {
    const { exit, stdout } = await lastcall("depart", "n0", "n1", "--at", at, "--by", by);
    expect(exit).toBe(0);
    expect(
      stdout.match(/^departure\/n[01]-\w{8} created: n[01] leaves at .*, by .*$/gm),
    ).toHaveLength(2);
    const common = { cause: "Manual", source: "person", departAt: at, deadlineAt: by };
    expect(made()).toMatchObject([
      { node: { name: "n0", uid: world.firstUids[0], providerID: "gce://demo/a/n0" }, ...common },
      { node: { name: "n1", uid: world.firstUids[1], providerID: "gce://demo/a/n1" }, ...common },
    ]);
  });

  it.each([
    ["true", "n0 is on hold by its annotation lastcall.dev/hold"],
    [by, `n0 is on hold until ${by} by its annotation lastcall.dev/hold`],
    [at, undefined],
    ["false", undefined],
  ])("warns of a node that is on hold: %s", async (hold, told) => {
    world.patchNode("n0", { metadata: { annotations: { "lastcall.dev/hold": hold } } });
    const { exit, stdout, stderr } = await lastcall("depart", "n0", "--at", at, "--dry-run");
    expect(exit).toBe(0);
    expect(stdout).toContain("n0 leaves at");
    expect(stderr).toBe(
      told === undefined
        ? ""
        : `lastcall: ${told}, which applies only to planned departures: it leaves anyway\n`,
    );
  });

  it("names each node whose Departure could not be created", async () => {
    const send = world.api.send.bind(world.api);
    vi.spyOn(world.api, "send").mockImplementation((request) => {
      const isRefused = request.method === "POST" && JSON.stringify(request.body).includes("n0-");
      const body = { kind: "Status", reason: "InternalError", message: "the webhook failed" };
      return isRefused ? Promise.resolve({ status: 500, body }) : send(request);
    });
    const { exit, stdout, stderr } = await lastcall("depart", "n0", "n1", "--at", at);
    expect(exit).not.toBe(0);
    expect(stdout).toMatch(/^departure\/n1-\w+ created: n1 leaves at .*\n$/);
    expect(stderr).toMatch(/^lastcall: Cannot make n0 depart: cannot .*the webhook failed/);
  });

  it("moves an earlier request, and says if nothing changes", async () => {
    await lastcall("depart", "n0", "--at", at);
    expect((await lastcall("depart", "n0", "--at", at)).stdout).toContain(
      "unchanged: n0 has been requested to leave, phase Scheduled",
    );
    expect((await lastcall("depart", "n0", "--at", by)).stdout).toContain("moved: n0 leaves at");
    expect(made()).toMatchObject([{ departAt: by }]);
  });

  it("says that a node that is already leaving keeps its times", async () => {
    await lastcall("depart", "n0", "--at", at);
    const [{ name = "" } = {}] = world.list(departures).map(({ metadata }) => metadata ?? {});
    world.api.handle({
      ...{ method: "PATCH", path: `${departures}/${name}/status` },
      patchType: "application/merge-patch+json",
      body: { status: { phase: "Draining" } },
    });
    const { exit, stdout, stderr } = await lastcall("depart", "n0", "--by", by);
    expect(exit).toBe(0);
    expect(stdout).toContain("unchanged: n0 is already leaving, phase Draining");
    expect(stderr).toBe("lastcall: n0 is already leaving (Draining): --by is not applied\n");
  });

  it("rejects a past instant, but accepts one of a few seconds ago", async () => {
    const past = formatInstant(minus(realClock.now(), hours(1)));
    const { exit, stderr } = await lastcall("depart", "n0", "--at", past);
    expect(stderr).toBe(
      `lastcall: Cannot use --at ${past}: it is in the past, expected a future time, or no --at to start now\n`,
    );
    expect({ exit, made: made() }).toEqual({ exit: 2, made: [] });
    const justNow = formatInstant(minus(realClock.now(), seconds(5)));
    expect((await lastcall("depart", "n0", "--at", justNow)).exit).toBe(0);
    expect(made()).toMatchObject([{ departAt: justNow }]);
  });

  it("accepts a node as kubectl get -o name prints it", async () => {
    expect((await lastcall("depart", "node/n0", "--at", at)).exit).toBe(0);
    expect(made()).toMatchObject([{ node: { name: "n0" } }]);
  });

  it("warns of an instant past the deadline of the node's planned departure", async () => {
    const uid = world.get(`${nodes}/n0`)?.metadata?.uid ?? "";
    const spec = { node: { name: "n0", uid }, cause: "Planned", source: "plan" };
    world.create(departures, {
      ...{ apiVersion: "lastcall.dev/v1alpha1", kind: "Departure", metadata: { name: "planned" } },
      spec: { ...spec, departAt: "2029-12-31T00:00:00Z", deadlineAt: "2029-12-31T06:00:00Z" },
    });
    const { exit, stderr } = await lastcall("depart", "n0", "n1", "--at", at);
    expect(exit).toBe(0);
    expect(stderr).toMatch(
      /^lastcall: n0 was requested to leave after its deadline of 2029-12-31T06:00:00.000Z, .*set an earlier --at\n$/,
    );
    expect((await lastcall("depart", "n0", "--at", "2029-12-31T01:00:00Z")).stderr).toBe("");
  });

  it("writes nothing with --dry-run, and prints what it would write", async () => {
    const { stdout } = await lastcall("depart", "n0", "--at", at, "--dry-run", "-o", "json");
    expect(JSON.parse(stdout)).toMatchObject({
      kind: "List",
      items: [{ kind: "Departure", spec: { node: { name: "n0" }, departAt: at } }],
    });
    expect(made()).toEqual([]);
  });

  it.each([
    [1, ["n0", "nobody"], "Cannot make nobody depart: there is no such node, list"],
    [1, ["n00"], "Cannot make n00 depart: there is no such node"],
    [2, ["n0", "--by", "2020-01-01T00:00:00Z"], "Cannot use --by 2020-01-01T00:00:00.000Z"],
    [2, [], "NODE"],
  ] as const)("exits with %i on %j and writes nothing", async (code, args, says) => {
    const { exit, stdout, stderr } = await lastcall("depart", ...args);
    expect({ exit, stdout }).toEqual({ exit: code, stdout: "" });
    expect(stderr).toContain(says);
    expect(stderr.trim().split("\n")).toHaveLength(1);
    expect(made()).toEqual([]);
  });
});

describe("lastcall depart in a cluster with its own time, such as the demo's", () => {
  let model: ModelServer;

  beforeEach(async () => {
    model = await serveModel({ api: world.api, rate: () => 1 });
    await writeFile(join(folder, "kubeconfig"), model.kubeconfig);
  });

  afterEach(() => model.close());

  it("starts the departure now by that time", async () => {
    expect(await lastcall("depart", "n0")).toMatchObject({ exit: 0 });
    const [order] = made() as readonly { departAt: string }[];
    const departAt = parseInstant(order?.departAt ?? "") ?? instant(0);
    expect(between(world.clock.now(), departAt)).toBeLessThan(minutes(1));
  });

  it("accepts an instant that is in the future by that time", async () => {
    const soon = formatInstant(plus(world.clock.now(), hours(1)));
    expect(await lastcall("depart", "n0", "--at", soon)).toMatchObject({ exit: 0 });
    expect(made()).toEqual([expect.objectContaining({ departAt: soon })]);
  });

  it("rejects an instant that is past by that time", async () => {
    const past = formatInstant(minus(world.clock.now(), hours(1)));
    const { exit, stderr } = await lastcall("depart", "n0", "--at", past);
    expect(exit).toBe(2);
    expect(stderr).toContain(`Cannot use --at ${past}: it is in the past`);
    expect(made()).toEqual([]);
  });

  it("agrees with lastcall plan, which uses the same time", async () => {
    const policyFile = join(folder, "policy.yaml");
    const policy = { apiVersion: "lastcall.dev/v1alpha1", kind: "DeparturePolicy" };
    const spec = { lifetime: { max: "24h" } };
    await writeFile(policyFile, JSON.stringify({ ...policy, metadata: { name: "spot" }, spec }));
    const { stdout, stderr } = await lastcall("plan", "-f", policyFile, "-o", "json");
    expect(stderr).toBe("");
    const { policies } = JSON.parse(stdout) as {
      policies: { departures: { departAt: string; reason: string }[] }[];
    };
    const planned = policies[0]?.departures ?? [];
    expect(planned).toHaveLength(2);
    for (const { departAt, reason } of planned) {
      expect(parseInstant(departAt)).toBeGreaterThan(world.clock.now());
      expect(reason).not.toBe("Overdue");
    }
  });
});
