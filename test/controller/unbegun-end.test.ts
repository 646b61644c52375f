/** Nodes that are gone before their departures start, and clouds that are asked why. */
import { describe, expect, it } from "vitest";
import type { InstanceReleaser } from "../../src/contracts/cloud.ts";
import { seconds } from "../../src/core/time/time.ts";
import { departures, ModelWorld, nodes, spotPolicy } from "../support/model-world.ts";

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

describe("a request about a machine that nobody has seen", () => {
  async function ask(node: Readonly<Record<string, string>>, later?: () => void) {
    const world = new ModelWorld();
    for (const name of ["n0", "n1"]) world.addNode(name, "a");
    spotPolicy(world, { lifetime: { max: "24h" } });
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    await world.pass(seconds(30));
    later?.();
    const { uid = "" } = world.get(`${nodes}/n1`)?.metadata ?? {};
    world.create(departures, {
      apiVersion: "lastcall.dev/v1alpha1",
      kind: "Departure",
      metadata: { name: "asked" },
      spec: { node: { name: "n1", uid, ...node }, cause: "Manual", source: "person" },
    });
    await world.pass(seconds(15));
    stop.abort();
    await running;
    return world.get(`${departures}/asked`)?.status as { message?: string } | undefined;
  }
  const wrong = { phase: "Ended", outcome: "Cancelled", reason: "WrongMachine" };

  it.each([
    ["another uid", { uid: "0b5b2f0e-5a4e-4b6f-9f0f-000000000000" }],
    ["another machine", { providerID: "gce://project-1/europe-west1-b/another" }],
  ])("is not the end of the machine that the Node has: %s", async (_, node) => {
    const status = await ask(node);
    expect(status).toMatchObject(wrong);
    expect(status?.message).toMatch(/: the Node n1 had .+ before the departure was requested\.$/);
  });

  it("proves nothing if no such Node exists and no cloud can be asked", async () => {
    const status = await ask({ name: "n7" });
    expect(status).toMatchObject(wrong);
    expect(status?.message).toMatch(/: no Node n7 has the uid .+, and it names no providerID\.$/);
  });
});

const never = <T>(): Promise<T> => new Promise(() => undefined);

/** A cloud whose connections hang, and that ignores aborts. */
const silent = { describe: never, check: never, release: never } as unknown as InstanceReleaser;
