import { describe, expect, it } from "vitest";
import { minutes, seconds } from "../../src/core/time/time.ts";
import { ModelWorld, nodes, spotPolicy, webWorkload } from "../support/model-world.ts";
import { depart } from "./capacity-story.ts";

/** A cloud that finds no machine to describe, as one asked about another account's. */
async function start() {
  const world = new ModelWorld();
  for (const name of ["n0", "n1", "n2"]) world.addNode(name, "a");
  webWorkload(world, { replicas: 6, maxUnavailable: 6 });
  spotPolicy(world, { lifetime: {} });
  await world.pass(seconds(10));
  const stop = new AbortController();
  const describe = () => Promise.resolve({ kind: "Absent" } as const);
  const releaserFor = () => ({ ...world.releaser, describe });
  const running = world.startController(stop.signal, { releaserFor });
  await world.pass(seconds(10));
  depart(world, "n0");
  const end = async () => {
    stop.abort();
    await running;
  };
  return { world, end };
}

describe("a machine that its cloud does not find after the drain", () => {
  it("is not taken for gone while its kubelet reports: its node is given back", async () => {
    const { world, end } = await start();
    await world.pass(minutes(3));
    expect(world.get(`${nodes}/n0`)).toBeDefined();
    expect(world.marksOf("n0")).toEqual([]);
    expect(world.statusOf("n0")).toMatchObject({
      ...{ phase: "Ended", outcome: "Failed", reason: "ReleaseFailed" },
      message: expect.stringContaining("its kubelet still reports"),
    });
    await end();
  });

  it("is gone when its kubelet is silent as well", async () => {
    const { world, end } = await start();
    await world.pass(seconds(30));
    const path = `${nodes}/n0/status`;
    const patchType = "application/strategic-merge-patch+json";
    const body = { status: { conditions: [{ type: "Ready", status: "Unknown" }] } };
    world.api.handle({ method: "PATCH", path, patchType, body });
    await world.pass(minutes(1));
    expect(world.get(`${nodes}/n0`)).toBeUndefined();
    expect(world.statusOf("n0")).toMatchObject({ phase: "Ended", outcome: "Planned" });
    await end();
  });
});
