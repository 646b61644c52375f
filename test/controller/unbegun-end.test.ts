/** Nodes that are gone before their departures start, and clouds that are asked why. */
import { describe, expect, it } from "vitest";
import type { InstanceReleaser } from "../../src/contracts/cloud.ts";
import { seconds } from "../../src/core/time/time.ts";
import { ModelWorld, nodes, spotPolicy } from "../support/model-world.ts";

type Start = Parameters<ModelWorld["startController"]>[1];

/** Deletes the Node objects of all but the first of so many nodes; their departures wait. */
async function deleteNodes(count: number, started: Start): Promise<ModelWorld> {
  const world = new ModelWorld();
  for (let place = 0; place <= count; place += 1) world.addNode(`n${place}`, "a");
  spotPolicy(world, { lifetime: { max: "24h" }, instance: { release: "Recreate" } });
  const stop = new AbortController();
  const running = world.startController(stop.signal, started);
  await world.pass(seconds(30));
  for (let place = 1; place <= count; place += 1) {
    world.api.handle({ method: "DELETE", path: `${nodes}/n${place}` });
  }
  await world.pass(seconds(15));
  stop.abort();
  await running;
  return world;
}

describe("a node that is gone before its departure starts", () => {
  it("ends its departure where no cloud can be asked about its machine", async () => {
    const world = await deleteNodes(1, { releaserFor: () => undefined });
    expect(world.statusOf("n1")).toMatchObject({ phase: "Ended", outcome: "Preempted" });
  });

  it("is not waited for one after another while the cloud does not respond", async () => {
    const world = await deleteNodes(100, { releaserFor: () => silent });
    const ended = Array.from({ length: 100 }, (_, at) => world.statusOf(`n${at + 1}`).phase);
    expect(new Set(ended)).toEqual(new Set(["Ended"]));
  });
});

const never = <T>(): Promise<T> => new Promise(() => undefined);

/** A cloud whose connections hang, and that ignores aborts. */
const silent = { describe: never, check: never, release: never } as unknown as InstanceReleaser;
