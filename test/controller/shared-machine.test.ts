/** Two Nodes that name the same machine: a kubelet chooses the providerID of its own Node. */
import { expect, it } from "vitest";
import { hours, seconds } from "../../src/core/time/time.ts";
import { ModelWorld, nodes, spotPolicy, webWorkload } from "../support/model-world.ts";

/**
 * n0 and n1 have machines of their own, and db has no Node; `guest` registers as the machine of n1,
 * or another one.
 */
async function visited(
  spec: Readonly<Record<string, unknown>>,
  claimed = "n1",
): Promise<{
  readonly world: ModelWorld;
  readonly stop: () => Promise<void>;
}> {
  const world = new ModelWorld();
  for (const name of ["n0", "n1"]) world.addNode(name, "a");
  world.addNode("db", "a");
  world.api.handle({ method: "DELETE", path: `${nodes}/db` });
  world.addNode("guest", "b", {}, `gce://demo/a/${claimed}`);
  webWorkload(world, { replicas: 3, maxUnavailable: 3 });
  spotPolicy(world, spec);
  const over = new AbortController();
  const running = world.startController(over.signal);
  await world.pass(seconds(10));
  const stop = async () => {
    over.abort();
    await running;
  };
  return { world, stop };
}

it("no machine is released by plan that two Nodes name", async () => {
  const { world, stop } = await visited({ lifetime: { max: "4h" } });
  await world.pass(hours(5));
  await stop();
  expect(world.released).toEqual(["gce://demo/a/n0"]);
  expect(world.statusOf("guest")).toMatchObject({ phase: "Held", reason: "ReleaseImpossible" });
  expect(JSON.stringify(world.statusOf("guest"))).toContain("n1");
});

it("no machine is released on a notice that two Nodes name, and its node stays drained", async () => {
  const { world, stop } = await visited({
    lifetime: { max: "240h" },
    onNotice: { spotInterruption: "Release" },
  });
  world.notice("guest", seconds(120));
  await world.pass(seconds(110));
  expect(world.marksOf("guest")).toContain("unschedulable");
  expect(world.stepsOf("guest").filter((step) => step === "uncordon")).toEqual([]);
  await stop();
  expect(world.released).toEqual([]);
  expect(world.podsOn("guest")).toEqual([]);
});

it("no machine is released by plan that its cloud knows under another name", async () => {
  const { world, stop } = await visited({ lifetime: { max: "4h" } }, "db");
  await world.pass(hours(5));
  await stop();
  expect(world.released.toSorted()).toEqual(["gce://demo/a/n0", "gce://demo/a/n1"]);
  expect(world.statusOf("guest")).toMatchObject({ phase: "Held", reason: "ReleaseImpossible" });
  expect(JSON.stringify(world.statusOf("guest"))).toContain("is called db by its cloud");
  expect(world.stepsOf("guest")).toEqual([]);
});

it("no machine is released on a notice that its cloud knows under another name", async () => {
  const spec = { lifetime: { max: "240h" }, onNotice: { spotInterruption: "Release" } };
  const { world, stop } = await visited(spec, "db");
  world.notice("guest", seconds(120));
  await world.pass(seconds(110));
  expect(world.marksOf("guest")).toContain("unschedulable");
  await stop();
  expect(world.released).toEqual([]);
  expect(world.podsOn("guest")).toEqual([]);
});
