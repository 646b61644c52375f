import { afterEach, beforeEach, expect, it } from "vitest";
import type { PlanReport } from "../../src/core/plan/plan-report.ts";
import { type ModelCli, modelCli } from "../support/model-cli.ts";
import { ModelWorld, spotPolicy } from "../support/model-world.ts";

let cli: ModelCli;

// The model's day begins at midnight UTC, which is 01:00 in Berlin.
beforeEach(async () => {
  const world = new ModelWorld();
  world.addNode("n1", "a");
  spotPolicy(world, { lifetime: { max: "24h" } });
  cli = await modelCli(world);
});

afterEach(() => cli.close());

it.each([
  ["2h", "2026-11-20T02:00", "lastcall: --at is 03:00:01 Europe/Berlin (02:00:01Z), in 2h\n"],
  ["22:00", "2026-11-20T21:00", "lastcall: --at is 22:00 Europe/Berlin (21:00Z), in 21h\n"],
  ["2026-11-20T05:00:00Z", "2026-11-20T05:00", ""],
  ["now", "2026-11-20T00:00", ""],
])(
  "lastcall plan and drain-plan read --at %s, and say a relative time back",
  async (at, meant, said) => {
    const { exit, stdout, stderr } = await cli.run(["plan", "--at", at, "-o", "json"]);
    expect(exit).toBe(0);
    expect((JSON.parse(stdout) as PlanReport).at).toContain(meant);
    // The model's clock runs while the command starts.
    const seconds = /:\d\d(?= Europe)|:\d\d(?=Z)/g;
    expect(stderr.replace(seconds, "")).toBe(said.replace(seconds, ""));
    const drain = await cli.run(["drain-plan", "n1", "--at", at]);
    expect(drain).toMatchObject({ exit: 0 });
    expect(drain.stderr.includes("lastcall: --at is ")).toBe(said !== "");
    expect((await cli.run(["plan", "--at", at, "-q"])).stderr).toBe("");
  },
);
