import { describe, expect, it } from "vitest";
import type { InstanceReleaser } from "../../src/contracts/cloud.ts";
import { between, formatInstant, minutes, plus, seconds } from "../../src/core/time/time.ts";
import { ModelWorld, nodes, spotPolicy, webWorkload } from "../support/model-world.ts";

interface Ledger {
  readonly outcome: string;
  readonly drain: object;
}

/** As a scheduler does that had chosen the node before the cordon. */
function bindLate(world: ModelWorld, node: string): void {
  world.create("/api/v1/namespaces/default/pods", {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "late", namespace: "default", labels: { app: "late" } },
    spec: { nodeName: node, containers: [{ name: "late", image: "late:1" }] },
  });
}

function askForN1(world: ModelWorld): void {
  const uid = world.get(`${nodes}/n1`)?.metadata?.uid ?? "";
  world.create("/apis/lastcall.dev/v1alpha1/departures", {
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "Departure",
    metadata: { name: "n1-asked" },
    spec: { node: { name: "n1", uid }, cause: "Manual", source: "person" },
  });
}

/**
 * When the pod arrives. `Drained`: as the end of the drain is written; `MachineLookedUp`: while the
 * release looks up the machine; `LetGo`: after the last check, as the machine is released.
 */
type Coming = "Never" | "Drained" | "MachineLookedUp" | "LetGo";

const patient = { drain: { timeout: "5m", onTimeout: "Wait" } };

/** A rotation of n1, to which a pod is bound late. */
async function rotation(comes: Coming, policy: Record<string, unknown> = patient) {
  const world = new ModelWorld();
  for (const name of ["n0", "n1", "n2"]) world.addNode(name, name);
  webWorkload(world, { replicas: 6, maxUnavailable: 6 });
  spotPolicy(world, policy);
  await world.pass(seconds(5));
  let came = false;
  const come = (when: Coming) => {
    if (when !== comes || came) return;
    came = true;
    bindLate(world, "n1");
  };
  world.beforeWrite = ({ path, body }) => {
    const isOver = path.endsWith("/status") && JSON.stringify(body).includes('"phase":"Releasing"');
    if (isOver) come("Drained");
  };
  const onNode: number[] = [];
  world.onRelease = () => {
    onNode.push(world.podsOn("n1").length);
    come("LetGo");
  };
  const stop = new AbortController();
  const { releaser } = world;
  const release: InstanceReleaser["release"] = async (request, signal) => {
    come("MachineLookedUp");
    return releaser.release(request, signal);
  };
  const releaserFor = () => ({ ...releaser, release });
  const running = world.startController(stop.signal, { releaserFor });
  askForN1(world);
  await world.passUntil(() => world.statusOf("n1").phase === "Ended", minutes(5));
  stop.abort();
  await running;
  const { outcome, drain } = world.statusOf("n1") as unknown as Ledger;
  const said = world.events.filter(({ about }) => about.kind === "Node");
  return { onNode, steps: world.stepsOf("n1"), outcome, drain, said };
}

describe("a pod that is bound to an empty node before the scheduler has seen the cordon", () => {
  it("is evicted, too, as the machine is not released that soon", async () => {
    const world = new ModelWorld();
    world.addNode("n1", "n1");
    spotPolicy(world, { drain: { timeout: "5m", onTimeout: "Wait" } });
    await world.pass(seconds(5));
    const onNode: number[] = [];
    world.onRelease = () => onNode.push(world.podsOn("n1").length);
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    askForN1(world);
    await world.passUntil(() => world.stepsOf("n1").includes("cordon"), seconds(5));
    await world.pass(seconds(0.5));
    bindLate(world, "n1");
    await world.passUntil(() => world.statusOf("n1").phase === "Ended", minutes(5));
    stop.abort();
    await running;
    expect(onNode).toEqual([0]);
    expect(world.stepsOf("n1")).toEqual(["cordon", "evict", "release", "remove"]);
  });
});

describe("a pod that is bound late to a node with a lifecycle hook's notice", () => {
  it.each([
    { by: "one controller", handsOver: false },
    { by: "a controller that took over right after the cordon", handsOver: true },
  ])("is evicted before the node counts as drained by $by", async ({ handsOver }) => {
    const world = new ModelWorld();
    world.addNode("n1", "n1");
    await world.pass(seconds(5));
    const before: { pods: number; steps: readonly string[] }[] = [];
    world.beforeWrite = ({ path, body }) => {
      const isOver =
        path.endsWith("/status") && JSON.stringify(body).includes('"phase":"Releasing"');
      if (isOver) before.push({ pods: world.podsOn("n1").length, steps: world.stepsOf("n1") });
    };
    let stop = new AbortController();
    let running = world.startController(stop.signal);
    const noticedAt = world.clock.now();
    world.create("/apis/lastcall.dev/v1alpha1/departures", {
      apiVersion: "lastcall.dev/v1alpha1",
      kind: "Departure",
      metadata: { name: "n1-noticed" },
      spec: {
        node: { name: "n1", uid: world.get(`${nodes}/n1`)?.metadata?.uid ?? "" },
        ...{ cause: "LifecycleHook", source: "queue" },
        noticedAt: formatInstant(noticedAt),
        deadlineAt: formatInstant(plus(noticedAt, minutes(2))),
      },
    });
    await world.passUntil(() => world.stepsOf("n1").includes("cordon"), seconds(5));
    if (handsOver) {
      stop.abort();
      await running;
      stop = new AbortController();
      running = world.startController(stop.signal);
    }
    await world.pass(seconds(0.5));
    bindLate(world, "n1");
    await world.passUntil(() => before.length > 0, minutes(2));
    stop.abort();
    await running;
    expect(before[0]).toEqual({ pods: 0, steps: ["cordon", "evict"] });
    const [toLastPod] = world.observed.filter(
      ({ name }) => name === "lastcall_notice_to_last_pod_seconds",
    );
    expect(toLastPod?.value).toBeLessThan(between(noticedAt, world.clock.now()) / 1000);
  });
});

describe("a pod that is bound to a node after its last pod has left", () => {
  it.each(["Drained", "MachineLookedUp"] as const)(
    "is evicted like the others before the machine is released (%s)",
    async (comes) => {
      const { onNode, steps } = await rotation(comes);
      expect(onNode).toEqual([0]);
      expect(steps).toEqual(["cordon", "evict", "evict", "evict", "release", "remove"]);
    },
  );

  it("gets the whole drain timeout, even if the node was drained longer ago than that", async () => {
    const drain = { timeout: "30s", onTimeout: "RollBack" };
    const slow = { drain, instance: { loadBalancerDelay: "1m" } };
    const { onNode, steps, outcome } = await rotation("MachineLookedUp", slow);
    expect(onNode).toEqual([0]);
    expect(steps).toEqual(["cordon", "evict", "evict", "evict", "release", "remove"]);
    expect(outcome).toBe("Planned");
  });

  it("gets the whole drain timeout, too, if the next controller finds it", async () => {
    const world = new ModelWorld();
    for (const name of ["n1", "n2"]) world.addNode(name, name);
    const drain = { timeout: "30s", onTimeout: "RollBack" };
    spotPolicy(world, { drain, instance: { loadBalancerDelay: "1m" } });
    await world.pass(seconds(5));
    const onNode: number[] = [];
    world.onRelease = () => onNode.push(world.podsOn("n1").length);
    const first = new AbortController();
    world.afterRequest = ({ path, body }) => {
      const isStatus = path.endsWith("/status");
      if (isStatus && JSON.stringify(body).includes('"phase":"Releasing"')) first.abort();
    };
    const leading = world.startController(first.signal);
    askForN1(world);
    await world.passUntil(() => first.signal.aborted, minutes(2));
    await leading;
    expect(world.statusOf("n1").phase).toBe("Releasing");
    bindLate(world, "n1");
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    await world.passUntil(() => world.statusOf("n1").phase === "Ended", minutes(5));
    stop.abort();
    await running;
    expect(onNode).toEqual([0]);
    expect(world.statusOf("n1").outcome).toBe("Planned");
  });

  it("is the only reason for a further eviction", async () => {
    const { steps, outcome, drain } = await rotation("Never");
    expect(steps).toEqual(["cordon", "evict", "evict", "release", "remove"]);
    expect(outcome).toBe("Planned");
    expect(drain).toMatchObject({ total: 2, left: 0, leftBehind: 0, notClean: [] });
  });

  it("is in status, outcome and Event if it arrives while the machine is released", async () => {
    const { onNode, steps, outcome, drain, said } = await rotation("LetGo");
    expect(onNode).toEqual([0]);
    expect(steps).toEqual(["cordon", "evict", "evict", "release", "remove"]);
    expect(outcome).toBe("Forced");
    const notClean = [{ namespace: "default", name: "late", outcome: "LeftBehind" }];
    expect(drain).toMatchObject({ total: 3, left: 1, evicted: 2, leftBehind: 1, notClean });
    expect(said.filter(({ reason }) => reason === "PodLeftBehind")).toMatchObject([
      { type: "Warning", message: "default/late was left behind on the node" },
    ]);
  });
});
