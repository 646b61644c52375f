import { describe, expect, it } from "vitest";
import { type Millis, minutes, seconds } from "../../src/core/time/time.ts";
import { ModelWorld, nodes, spotPolicy, webWorkload } from "../support/model-world.ts";
import { depart } from "./capacity-story.ts";

const names = ["n0", "n1", "n2", "n3", "n4", "n5"];

/** Six nodes, whose pods need four of the five minutes of their grace. */
async function start(drain: object) {
  const world = new ModelWorld();
  for (const name of names) world.addNode(name, "a");
  webWorkload(world, { replicas: 12, maxUnavailable: 12, exitAfterSeconds: 240 });
  spotPolicy(world, { lifetime: {}, drain });
  await world.pass(seconds(10));
  const stop = new AbortController();
  const running = world.startController(stop.signal);
  await world.pass(seconds(10));
  const end = async () => {
    stop.abort();
    await running;
  };
  return { world, end };
}

/** The kubelet of n0 falls silent: it reports nothing, and confirms no deletion. */
function silence(world: ModelWorld): void {
  world.kubelet.powerOff("n0");
  const path = `${nodes}/n0/status`;
  const patchType = "application/strategic-merge-patch+json";
  const body = { status: { conditions: [{ type: "Ready", status: "Unknown" }] } };
  world.api.handle({ method: "PATCH", path, patchType, body });
}

describe("a node that falls silent", () => {
  it.each([
    ["before its drain", seconds(0)],
    ["in mid-drain", minutes(1)],
  ] as const)("%s is not released by a policy that rolls back", async (_, afterMs: Millis) => {
    const { world, end } = await start({ timeout: "10m", onTimeout: "RollBack" });
    if (afterMs === 0) silence(world);
    depart(world, "n0");
    await world.pass(minutes(1));
    if (afterMs > 0) silence(world);
    await world.pass(minutes(20));
    expect(world.released).toEqual([]);
    expect(world.statusOf("n0")).toMatchObject({ phase: "Ended", outcome: "RolledBack" });
    await end();
  });

  it("is released by a policy that proceeds after the timeout, and its pods are named", async () => {
    const { world, end } = await start({ timeout: "10m", onTimeout: "Proceed" });
    depart(world, "n0");
    await world.pass(minutes(1));
    silence(world);
    await world.pass(minutes(8));
    expect(world.released).toEqual([]);
    await world.pass(minutes(3));
    expect(world.released).toHaveLength(1);
    expect(world.statusOf("n0")).toMatchObject({
      drain: { notClean: [{ outcome: "LeftBehind" }, { outcome: "LeftBehind" }] },
    });
    await world.passUntil(() => world.statusOf("n0").phase === "Ended", minutes(5));
    // It is not said to be drained.
    const message = "n0 left 2 pods behind, and its machine is released.";
    expect(world.statusOf("n0")).toMatchObject({ message });
    await end();
  });
});
