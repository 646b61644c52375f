import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { grantOnly } from "../support/granted-rights.ts";
import { type ModelCli, modelCli } from "../support/model-cli.ts";
import { departures, ModelWorld, nodes, policies, spotPolicy } from "../support/model-world.ts";

let world: ModelWorld;
let cli: ModelCli;

beforeEach(async () => {
  world = new ModelWorld();
  for (const name of ["n1", "n2"]) world.addNode(name, "a");
  spotPolicy(world, { lifetime: { max: "24h" } });
  cli = await modelCli(world);
});

afterEach(async () => {
  vi.restoreAllMocks();
  await cli.close();
});

const readers = ["nodes", "departurepolicies", "departures"].flatMap((one) => [
  `get ${one}`,
  `list ${one}`,
]);
const held = () => world.get(`${nodes}/n1`)?.metadata?.annotations?.["lastcall.dev/hold"];
const frozen = () => world.get(`${policies}/spot`)?.spec;

describe("a caller who may only read", () => {
  beforeEach(() => grantOnly(world, readers));

  it.each([
    [["depart", "n1"], "Cannot make n1 depart: cannot create", "grant create on departures"],
    [["hold", "n1"], "Cannot write node/n1: cannot patch nodes n1", "grant patch on nodes"],
    [
      ["freeze", "--all", "--for", "1h"],
      "Cannot write departurepolicy/spot: cannot patch",
      "grant patch on departurepolicies.lastcall.dev",
    ],
  ] as const)("is refused %j with and without --dry-run alike", async (args, what, fix) => {
    const real = await cli.run([...args]);
    const dry = await cli.run([...args, "--dry-run"]);
    expect(dry).toEqual({ ...real, exit: 1, stdout: "" });
    expect(dry.stderr).toContain(`lastcall: ${what}`);
    expect(dry.stderr).toContain(fix);
  });
});

describe("a dry run", () => {
  it("stores nothing", async () => {
    const before = [held(), frozen()];
    for (const args of [["depart"], ["hold"], ["freeze", "--policy", "spot", "--for", "1h"]]) {
      const target = args[0] === "freeze" ? [] : ["n1"];
      const { exit, stdout } = await cli.run([...args, ...target, "--dry-run"]);
      expect({ exit, stdout }).toEqual({
        exit: 0,
        stdout: expect.stringMatching(/\(dry run\)\n$/),
      });
    }
    expect([held(), frozen(), world.list(departures)]).toEqual([...before, []]);
  });
});

describe("a caller who may read and write nothing but", () => {
  it("policies can freeze, and hears what is not known", async () => {
    grantOnly(world, ["get departurepolicies", "patch departurepolicies"]);
    const { exit, stdout, stderr } = await cli.run(["freeze", "--policy", "spot", "--for", "24h"]);
    expect(stdout).toMatch(/^No planned departure of policy spot starts before 2026-11-21T/);
    expect(exit).toBe(0);
    expect(stderr).toContain(
      "lastcall: What leaves even so is not known in full: grant list on nodes, departures.lastcall.dev, and departurepolicies.lastcall.dev to see it\n",
    );
    expect(frozen()).toMatchObject({ gates: { freezeUntil: expect.any(String) } });
  });

  it("nodes can hold one", async () => {
    grantOnly(world, ["get nodes", "patch nodes"]);
    const { exit, stdout, stderr } = await cli.run(["hold", "n1", "--for", "30h"]);
    expect(stdout).toMatch(/^n1 is on hold until 2026-11-21T/);
    expect(exit).toBe(0);
    expect(stderr).toContain("lastcall: What leaves even so is not known in full");
    expect(held()).toMatch(/^2026-11-21T/);
  });

  it("policies is told what freezing all of them needs", async () => {
    grantOnly(world, ["get departurepolicies", "patch departurepolicies"]);
    const { exit, stderr } = await cli.run(["freeze", "--all", "--for", "1h"]);
    expect(exit).toBe(1);
    expect(stderr).toMatch(/grant list on departurepolicies\.lastcall\.dev\n$/);
  });

  it("one of several nodes that does not exist writes nothing", async () => {
    grantOnly(world, ["get nodes", "patch nodes"]);
    const { exit, stderr } = await cli.run(["hold", "n1", "n9"]);
    expect(exit).toBe(1);
    expect(stderr).toContain("Cannot hold n9: there is no such node");
    expect(held()).toBeUndefined();
  });
});
