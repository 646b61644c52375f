/** Departures that somebody deletes while they are under way. */
import { describe, expect, it } from "vitest";
import type { InstanceReleaser } from "../../src/contracts/cloud.ts";
import type { KubeAnswer, KubeRequest } from "../../src/contracts/kube-api.ts";
import { hours, minutes, seconds } from "../../src/core/time/time.ts";
import { silence, useActionStage } from "../support/action-stage.ts";
import { departures, ModelWorld, nodes, spotPolicy, webWorkload } from "../support/model-world.ts";
import { depart } from "./capacity-story.ts";

const stage = useActionStage();

function isThere(world: ModelWorld, node: string): boolean {
  return world.departureOf(node) !== undefined;
}

function remove(world: ModelWorld, node: string): void {
  const name = world.departureOf(node)?.metadata?.name;
  world.api.handle({ method: "DELETE", path: `${departures}/${name}` });
}

/** What is left of a departure on its node. */
function marksOf(world: ModelWorld, node: string): readonly string[] {
  return world.marksOf(node).filter((one) => one !== "Ready");
}

describe("a departure that is deleted while nobody leads", () => {
  it("is undone by the next leader, its actions too, and is then gone", async () => {
    const killed = stage.start([{ name: "mute", at: "AtNotice", ...silence }]);
    await stage.giveNotice();
    const { world } = stage;
    await world.pass(seconds(5));
    expect(stage.mute.inEffect).toHaveLength(1);
    killed.abort();
    await world.pass(seconds(1));
    stage.deleteDeparture();
    await world.pass(minutes(60));
    expect(isThere(world, "n1")).toBe(true);
    stage.startController();
    await world.pass(minutes(1));
    expect(stage.mute.inEffect).toEqual([]);
    expect(marksOf(world, "n1")).toEqual([]);
    expect(isThere(world, "n1")).toBe(false);
  });
});

/** Three nodes, of which n0 is asked to leave. */
async function leaving(options: object = {}) {
  const world = new ModelWorld();
  for (const name of ["n0", "n1", "n2"]) world.addNode(name, "a");
  webWorkload(world, { replicas: 6, maxUnavailable: 6, graceSeconds: 30, exitAfterSeconds: 20 });
  spotPolicy(world, {});
  await world.pass(seconds(30));
  const stop = new AbortController();
  const running = world.startController(stop.signal, options);
  await world.pass(seconds(5));
  return { world, stop: () => stop.abort(), running };
}

it("a departure that is deleted during its drain is undone, and is then gone", async () => {
  const { world, stop, running } = await leaving();
  depart(world, "n0");
  await world.pass(seconds(5));
  expect(world.departureOf("n0")?.status).toMatchObject({ phase: "Draining" });
  remove(world, "n0");
  await world.pass(seconds(10));
  expect(marksOf(world, "n0")).toEqual([]);
  expect(isThere(world, "n0")).toBe(false);
  expect(world.released).toEqual([]);
  stop();
  await running;
});

it("a departure that is deleted while it waits for its instant is gone at once", async () => {
  const { world, stop, running } = await leaving();
  depart(world, "n0", { departAt: "2026-11-21T00:00:00Z" });
  await world.pass(seconds(5));
  remove(world, "n0");
  expect(isThere(world, "n0")).toBe(false);
  stop();
  await running;
});

it("a node stays cordoned until its machine is gone, if its departure is deleted meanwhile", async () => {
  const releaser: { slow?: InstanceReleaser } = {};
  const { world, stop, running } = await leaving({ releaserFor: () => releaser.slow });
  releaser.slow = {
    ...world.releaser,
    release: async (request, signal) => {
      if ((await request.lastLook()) !== "Clear") return { kind: "Kept" };
      // The cloud has accepted the deletion, and needs 90 s for it.
      await world.clock.sleep(seconds(90), signal);
      return world.releaser.release({ ...request, lastLook: async () => "Clear" }, signal);
    },
  };
  depart(world, "n0");
  await world.pass(seconds(40));
  expect(world.departureOf("n0")?.status).toMatchObject({ phase: "Releasing" });
  remove(world, "n0");
  await world.pass(seconds(30));
  expect(world.get(`${nodes}/n0`)?.spec).toMatchObject({ unschedulable: true });
  expect(world.podsOn("n0")).toEqual([]);
  await world.pass(minutes(3));
  expect(world.released).toHaveLength(1);
  expect(isThere(world, "n0")).toBe(false);
  stop();
  await running;
});

it("a node whose planned departure is deleted rests as after any that a person cancelled", async () => {
  const world = new ModelWorld();
  for (const name of ["n0", "n1", "n2"]) world.addNode(name, "a");
  webWorkload(world, { replicas: 6, maxUnavailable: 6, graceSeconds: 60, exitAfterSeconds: 50 });
  spotPolicy(world, { lifetime: { max: "3h", reserve: "1h" }, spacing: { min: "15m" } });
  const abort = new AbortController();
  const running = world.startController(abort.signal);
  const leaving = () =>
    ["n0", "n1", "n2"].find((name) => world.statusOf(name).phase === "Draining");
  await world.passUntil(() => leaving() !== undefined, hours(3));
  const node = leaving() ?? "";
  remove(world, node);
  await world.pass(minutes(9));
  expect(world.released).toEqual([]);
  expect(marksOf(world, node)).toEqual([]);
  await world.passUntil(() => world.released.length > 0, minutes(20));
  abort.abort();
  await running;
});

it("a planned departure does not start while its finalizer is refused", async () => {
  const { world, stop, running } = await leaving({});
  const send = world.watched.send.bind(world.watched);
  let isRefused = true;
  const message = 'User "lastcall" cannot patch resource "departures.lastcall.dev"';
  const body = { kind: "Status", status: "Failure", reason: "Forbidden", code: 403, message };
  world.watched.send = async (request: KubeRequest): Promise<KubeAnswer> =>
    isRefused && JSON.stringify(request.body ?? "").includes("finalizers")
      ? { status: 403, body }
      : send(request);
  depart(world, "n0");
  await world.pass(minutes(10));
  expect(marksOf(world, "n0")).toEqual([]);
  expect(world.statusOf("n0").phase ?? "Scheduled").toBe("Scheduled");
  expect(world.logged.join("\n")).toContain(JSON.stringify(message).slice(1, -1));
  isRefused = false;
  await world.passUntil(() => world.statusOf("n0").phase === "Draining", minutes(5));
  stop();
  await running;
});

it("a notice is acted on and recorded, with its actions, though the finalizer is refused", async () => {
  stage.start([{ name: "mute", at: "AtNotice", ...silence }]);
  const { world } = stage;
  const send = world.watched.send.bind(world.watched);
  const body = { kind: "Status", status: "Failure", reason: "Forbidden", code: 403, message: "no" };
  world.watched.send = async (request: KubeRequest): Promise<KubeAnswer> =>
    JSON.stringify(request.body ?? "").includes("finalizers")
      ? { status: 403, body }
      : send(request);
  await stage.giveNotice();
  await world.pass(seconds(20));
  expect(world.stepsOf("n1")).toContain("evict");
  expect(stage.states).toEqual({ mute: "Done" });
  expect(world.departureOf("n1")?.status).toMatchObject({ phase: "Releasing" });
  expect(world.logged.join("\n")).toContain("finalizer-not-added");
});
