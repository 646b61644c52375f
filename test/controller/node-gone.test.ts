import { describe, expect, it } from "vitest";
import type { KubeWatchEvent, KubeWatchRequest } from "../../src/contracts/kube-api.ts";
import { minutes, seconds } from "../../src/core/time/time.ts";
import { ModelWorld, nodes, spotPolicy, webWorkload } from "../support/model-world.ts";

const podsPath = "/api/v1/pods";

/** n1 with two pods is drained at a notice; once the drain has started, `then` runs. */
async function noticed(
  maxUnavailable: number,
  then: (world: ModelWorld, stall: () => void) => Promise<void>,
): Promise<ModelWorld> {
  const world = new ModelWorld();
  for (const name of ["n0", "n1", "n2"]) world.addNode(name, name);
  webWorkload(world, { replicas: 6, maxUnavailable });
  spotPolicy(world, {});
  await world.pass(seconds(10));
  let isStalled = false;
  const watch = world.watched.watch.bind(world.watched);
  world.watched.watch = (request) =>
    unless(() => isStalled && request.path === podsPath, watch, request);
  const stop = new AbortController();
  const running = world.startController(stop.signal);
  world.notice("n1", seconds(120));
  await world.passUntil(() => world.statusOf("n1").phase === "Draining", minutes(1));
  await then(world, () => {
    isStalled = true;
  });
  world.api.handle({ method: "DELETE", path: `${nodes}/n1` });
  await world.pass(seconds(5));
  stop.abort();
  await running;
  return world;
}

async function* unless(
  isStalled: () => boolean,
  watch: ModelWorld["watched"]["watch"],
  request: KubeWatchRequest,
): AsyncGenerator<KubeWatchEvent> {
  for await (const event of watch(request)) if (!isStalled()) yield event;
}

describe("a node that is gone", () => {
  it("leaves no pod behind that had left before, even if the watch had not shown that", async () => {
    const world = await noticed(6, async (noticedWorld, stall) => {
      stall();
      await noticedWorld.passUntil(() => noticedWorld.podsOn("n1").length === 0, minutes(2));
    });
    expect(world.statusOf("n1")).toMatchObject({
      ...{ phase: "Ended", reason: "NodeGone", outcome: "Preempted" },
      drain: { total: 2, left: 0, cleanExit: 2 },
    });
  });

  it("counts as preempted, once, if its departure had not started", async () => {
    const world = new ModelWorld();
    for (const name of ["n0", "n1"]) world.addNode(name, name);
    spotPolicy(world, { lifetime: { max: "24h" } });
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    await world.pass(seconds(10));
    world.machines.delete("gce://demo/n1/n1");
    world.api.handle({ method: "DELETE", path: `${nodes}/n1` });
    await world.pass(minutes(2));
    stop.abort();
    await running;
    expect(world.statusOf("n1")).toMatchObject({ phase: "Ended", outcome: "Preempted" });
    expect(world.counted.filter((one) => one.startsWith("lastcall_departures_total"))).toEqual([
      "lastcall_departures_total policy=spot cause=Planned outcome=Preempted",
    ]);
  });

  it("is looked for once more: an answer that lacks it is no evidence", async () => {
    const world = new ModelWorld();
    for (const name of ["n0", "n1"]) world.addNode(name, name);
    spotPolicy(world, { lifetime: { max: "24h" } });
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    await world.pass(seconds(10));
    const send = world.watched.send.bind(world.watched);
    world.watched.send = async (request) => {
      const answer = await send(request);
      if (request.method !== "GET" || request.path !== nodes) return answer;
      const body = answer.body as { readonly items: readonly { metadata: { name: string } }[] };
      const items = body.items.filter(({ metadata }) => metadata.name !== "n1");
      return { ...answer, body: { ...body, items } };
    };
    world.api.compactHistory();
    world.api.dropWatches(nodes);
    await world.pass(minutes(2));
    stop.abort();
    await running;
    expect(world.statusOf("n1")).toMatchObject({ phase: "Scheduled" });
  });

  it("leaves behind the pods that are still listed", async () => {
    const world = await noticed(0, async () => {});
    expect(world.statusOf("n1")).toMatchObject({
      ...{ phase: "Ended", reason: "NodeGone", outcome: "Expired" },
      drain: { total: 2, left: 2 },
    });
  });
});
