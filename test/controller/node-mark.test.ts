import { describe, expect, it } from "vitest";
import { hours, minutes, seconds } from "../../src/core/time/time.ts";
import { departures, ModelWorld, nodes, spotPolicy, webWorkload } from "../support/model-world.ts";

/** What kube-controller-manager writes when a kubelet has been silent for 50 seconds. */
const silent = {
  ...{ status: "Unknown", reason: "NodeStatusUnknown" },
  message: "Kubelet stopped posting node status.",
};

function say(world: ModelWorld, condition: object): void {
  const path = `${nodes}/n1/status`;
  const patchType = "application/strategic-merge-patch+json";
  const body = { status: { conditions: [{ type: "Ready", ...condition }] } };
  const answer = world.api.handle({ method: "PATCH", path, patchType, body });
  expect(answer.status).toBe(200);
}

async function start(spec: object = { lifetime: {} }) {
  const world = new ModelWorld();
  for (const name of ["n0", "n1", "n2"]) world.addNode(name, "a");
  webWorkload(world, { replicas: 6, maxUnavailable: 6 });
  spotPolicy(world, { ...spec });
  const stop = new AbortController();
  const running = world.startController(stop.signal);
  await world.pass(seconds(30));
  const end = async () => {
    stop.abort();
    await running;
  };
  return { world, end };
}

describe("a node that is shutting down according to its kubelet", () => {
  it("is cordoned and drained without an agent, and uncordoned if the shutdown is cancelled", async () => {
    const { world, end } = await start();
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
    await end();
  });

  it("turns its planned departure into a forced one, and gets no second one", async () => {
    const { world, end } = await start({ lifetime: { max: "24h", reserve: "30m" } });
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
    await end();
  });

  it("stays cordoned when its kubelet falls silent, for however long its Node object stays", async () => {
    const { world, end } = await start();
    say(world, { status: "False", reason: "KubeletNotReady", message: "node is shutting down" });
    await world.pass(seconds(50));
    say(world, silent);
    await world.pass(hours(24));
    expect(world.marksOf("n1")).toContain("unschedulable");
    expect(world.statusOf("n1")).toMatchObject({ phase: "Releasing", reason: "AwaitingMachine" });
    expect(world.list(departures)).toHaveLength(1);
    await end();
  });

  it("is drained again by the next shutdown of the same boot, after a cancelled one", async () => {
    const { world, end } = await start();
    for (const shutdowns of [1, 2]) {
      say(world, { status: "False", reason: "KubeletNotReady", message: "node is shutting down" });
      await world.pass(seconds(20));
      expect(world.marksOf("n1")).toContain("unschedulable");
      expect(world.podsOn("n1")).toEqual([]);
      expect(world.list(departures)).toHaveLength(shutdowns);
      say(world, { status: "True", reason: "KubeletReady", message: "ready" });
      await world.pass(minutes(1));
      expect(world.marksOf("n1")).toEqual([]);
    }
    await end();
  });
});

describe("a machine that its cloud stops, while its Node object stays", () => {
  it("keeps its marks as long as its kubelet is silent, and loses them when it has started again", async () => {
    const { world, end } = await start();
    world.notice("n1", minutes(2));
    await world.pass(minutes(1));
    say(world, silent);
    await world.pass(hours(3));
    expect(world.marksOf("n1")).toContain("unschedulable");
    expect(world.statusOf("n1")).toMatchObject({ phase: "Releasing" });
    expect(JSON.stringify(world.departureOf("n1")?.status)).not.toMatch(/withdr/i);

    const body = { status: { nodeInfo: { bootID: "boot-after-stop" } } };
    const patchType = "application/merge-patch+json";
    world.api.handle({ method: "PATCH", path: `${nodes}/n1/status`, patchType, body });
    say(world, { status: "True", reason: "KubeletReady", message: "ready" });
    await world.pass(seconds(10));
    expect(world.statusOf("n1")).toMatchObject({ phase: "Ended", outcome: "Preempted" });
    expect(world.marksOf("n1")).toEqual([]);
    await end();
  });

  it("is uncordoned if the same boot reports after its notice, which nobody withdrew", async () => {
    const { world, end } = await start();
    world.notice("n1", minutes(2));
    await world.pass(minutes(1));
    say(world, silent);
    await world.pass(minutes(30));
    say(world, { status: "True", reason: "KubeletReady", message: "ready" });
    await world.pass(minutes(1));
    expect(world.marksOf("n1")).toEqual([]);
    expect(world.statusOf("n1")).toMatchObject({
      ...{ phase: "Ended", outcome: "Cancelled", reason: "NoticeOutlived" },
      message: "n1 stays, because its machine still runs after its notice.",
    });
    await end();
  });
});
