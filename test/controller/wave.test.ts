import { describe, expect, it } from "vitest";
import type { KubeRequest } from "../../src/contracts/kube-api.ts";
import { formatInstant, hours, minutes, plus } from "../../src/core/time/time.ts";
import { dawn, ModelWorld, policies, spotPolicy, webWorkload } from "../support/model-world.ts";

const names = ["n0", "n1", "n2", "n3"];

/** Four nodes with one launch time, over an hour apart, and a webhook that denies all evictions. */
function stuckFleet(): { readonly world: ModelWorld; readonly allow: () => void } {
  const world = new ModelWorld();
  for (const [index, name] of names.entries()) world.addNode(name, "abc"[index % 3] as string);
  webWorkload(world, { replicas: 6, maxUnavailable: 6 });
  const send = world.api.send.bind(world.api);
  const code = 403;
  const body = { kind: "Status", status: "Failure", reason: "Forbidden", code, message: "not now" };
  world.api.send = async (request: KubeRequest) =>
    request.path.endsWith("/eviction") ? { status: code, body } : send(request);
  spotPolicy(world, {
    // The pods have to run, and their budget to count them, before the first node leaves.
    lifetime: { min: "10m", max: "4h", reserve: "30m" },
    spacing: { mode: "Even" },
    drain: { timeout: "2m", onTimeout: "RollBack" },
    waves: { sizes: [1, 2] },
  });
  const allow = () => {
    world.api.send = send;
  };
  return { world, allow };
}

function starts(world: ModelWorld): readonly string[] {
  return world.steps.filter((step) => step.startsWith("cordon"));
}

function conditionOf(world: ModelWorld): unknown {
  const status = world.get(`${policies}/spot`)?.status as { conditions?: { type: string }[] };
  return status.conditions?.find(({ type }) => type === "WavesPassed");
}

describe("a canary that cannot be drained", () => {
  it("halts the waves until a person restarts them, and then all nodes leave", async () => {
    const { world, allow } = stuckFleet();
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    // The first leaves at 00:10 and the last at 03:30, so another two are due by 02:30.
    await world.pass(hours(2.5));
    expect(starts(world)).toHaveLength(1);
    expect(conditionOf(world)).toMatchObject({ status: "False", reason: "Halted" });
    const held = names.filter((name) => world.statusOf(name).phase === "Held");
    expect(held.length).toBeGreaterThan(0);

    allow();
    const restartedAt = formatInstant(plus(dawn, hours(2.5)));
    world.patchPolicy({ spec: { waves: { sizes: [1, 2], restartedAt } } });
    await world.pass(minutes(5));
    expect(starts(world)).toHaveLength(2);
    await world.pass(hours(1));
    const left = names.filter((name) => world.stepsOf(name).includes("release"));
    expect(left).toEqual(names);
    stop.abort();
    await running;
  });
});
