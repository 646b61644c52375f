import { describe, expect, it } from "vitest";
import { hours, seconds } from "../../src/core/time/time.ts";
import { departures, ModelWorld, nodes, spotPolicy, webWorkload } from "../support/model-world.ts";

describe("a node that is shutting down according to its kubelet", () => {
  function say(world: ModelWorld, condition: object): void {
    const path = `${nodes}/n1/status`;
    const patchType = "application/strategic-merge-patch+json";
    const body = { status: { conditions: [{ type: "Ready", ...condition }] } };
    const answer = world.api.handle({ method: "PATCH", path, patchType, body });
    expect(answer.status).toBe(200);
  }

  it("is cordoned and drained without an agent, and uncordoned if the shutdown is cancelled", async () => {
    const world = new ModelWorld();
    for (const name of ["n0", "n1", "n2"]) world.addNode(name, "a");
    webWorkload(world, { replicas: 6, maxUnavailable: 6 });
    spotPolicy(world, { lifetime: {} });
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    await world.pass(seconds(30));
    expect(world.podsOn("n1").length).toBeGreaterThan(0);

    say(world, { status: "False", reason: "KubeletNotReady", message: "node is shutting down" });
    await world.pass(seconds(1));
    expect(world.marksOf("n1")).toContain("unschedulable");
    await world.pass(seconds(20));
    expect(world.podsOn("n1")).toEqual([]);
    expect(world.list(departures)).toHaveLength(1);
    expect(world.writes.filter((write) => write === `POST ${departures}`)).toHaveLength(1);

    say(world, { status: "True", reason: "KubeletReady", message: "ready" });
    await world.pass(seconds(2));
    expect(world.marksOf("n1")).toEqual([]);
    expect(world.departureOf("n1")?.status).toMatchObject({ reason: "NoticeWithdrawn" });
    stop.abort();
    await running;
  });

  it("turns its planned departure into a forced one, and gets no second one", async () => {
    const world = new ModelWorld();
    for (const name of ["n0", "n1", "n2"]) world.addNode(name, "a");
    webWorkload(world, { replicas: 6, maxUnavailable: 6 });
    spotPolicy(world, { lifetime: { max: "24h", reserve: "30m" } });
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    await world.pass(hours(1));
    const planned = world.departureOf("n1")?.metadata?.uid;
    say(world, { status: "False", reason: "KubeletNotReady", message: "node is shutting down" });
    await world.pass(seconds(20));
    expect(world.podsOn("n1")).toEqual([]);
    expect(world.list(departures)).toHaveLength(3);
    const forced = world.departureOf("n1");
    expect(forced?.metadata?.uid).toBe(planned);
    expect(forced?.spec).toMatchObject({ source: expect.stringMatching(/^node\/Ready\//) });
    // The plan's deadline no longer counts, and the kubelet gave none.
    expect(forced?.spec).not.toHaveProperty("deadlineAt");
    stop.abort();
    await running;
  });
});
