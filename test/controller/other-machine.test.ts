import { describe, expect, it } from "vitest";
import type { KubeObject, KubeWatchEvent, KubeWatchRequest } from "../../src/contracts/kube-api.ts";
import { millis, minutes, seconds } from "../../src/core/time/time.ts";
import { departures, ModelWorld, nodes, spotPolicy, webWorkload } from "../support/model-world.ts";

const podsPath = "/api/v1/namespaces/default/pods";

interface Stage {
  readonly world: ModelWorld;
  /**
   * Hides all further changes under these paths from the watches; by default nodes and Departures.
   */
  readonly stall: (...paths: readonly string[]) => void;
}

/** Three nodes; n1 is to leave while a budget holds its pods. */
async function stage(
  how: { readonly policy?: object; readonly maxUnavailable?: number } = {},
): Promise<Stage> {
  const world = new ModelWorld();
  for (const name of ["n0", "n1", "n2"]) world.addNode(name, name);
  webWorkload(world, { replicas: 6, maxUnavailable: how.maxUnavailable ?? 0 });
  spotPolicy(world, { drain: { timeout: "10m", onTimeout: "Wait" }, ...how.policy });
  await world.pass(seconds(10));
  let stalled: readonly string[] = [];
  const watch = world.watched.watch.bind(world.watched);
  world.watched.watch = (request) =>
    unlessStalled(watch, request, () => stalled.includes(request.path));
  return {
    world,
    stall: (...paths) => {
      stalled = paths.length === 0 ? [nodes, departures] : paths;
    },
  };
}

async function* unlessStalled(
  watch: ModelWorld["watched"]["watch"],
  request: KubeWatchRequest,
  isStalled: () => boolean,
): AsyncGenerator<KubeWatchEvent> {
  for await (const event of watch(request)) if (!isStalled()) yield event;
}

function depart({ world }: Stage): void {
  const node = world.get(`${nodes}/n1`);
  const { providerID } = (node?.spec ?? {}) as { providerID?: string };
  world.create(departures, {
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "Departure",
    metadata: { name: "n1-asked" },
    spec: {
      node: { name: "n1", uid: node?.metadata?.uid, providerID },
      cause: "Manual",
      source: "person",
    },
  } as KubeObject);
}

/**
 * The machine disappears with its pods, and the group has created another one of the same name,
 * with pods of its own.
 */
function replaceMachine({ world }: Stage): void {
  for (const pod of world.podsOn("n1")) {
    const path = `${podsPath}/${pod.metadata?.name}`;
    world.api.handle({ method: "DELETE", path, body: { gracePeriodSeconds: 0 } });
  }
  world.api.handle({ method: "DELETE", path: `${nodes}/n1` });
  world.addNode("n1", "n1");
  bind(world, "new-0", "new-1");
}

/** As a scheduler does that has not seen a cordon, or for pods that tolerate it. */
function bind(world: ModelWorld, ...names: readonly string[]): void {
  for (const name of names) {
    world.create(podsPath, {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name, namespace: "default", labels: { app: "new" } },
      spec: { nodeName: "n1", containers: [{ name: "c", image: "c:1" }] },
    });
  }
}

/** The pods of the new machine that are not terminating. */
function untouched(world: ModelWorld): readonly string[] {
  return world
    .list(podsPath)
    .filter(({ metadata }) => metadata?.name?.startsWith("new-"))
    .filter(({ metadata }) => metadata?.deletionTimestamp === undefined)
    .map(({ metadata }) => metadata?.name ?? "");
}

function asked(world: ModelWorld): readonly string[] {
  return world.writes.filter((write) => write.includes("/pods/new-"));
}

async function controlled(world: ModelWorld, during: () => Promise<void>): Promise<void> {
  const stop = new AbortController();
  const running = world.startController(stop.signal);
  await during();
  stop.abort();
  await running;
}

function ending(world: ModelWorld) {
  const { phase, reason } = world.statusOf("n1") as { phase?: string; reason?: string };
  return { phase, reason };
}

const replaced = { phase: "Ended", reason: "MachineReplaced" };

describe("a node whose machine was replaced under its name while the watches were stalled", () => {
  it("keeps the new machine's pods during a drain", async () => {
    const one = await stage();
    const { world } = one;
    await controlled(world, async () => {
      depart(one);
      await world.passUntil(() => ending(world).phase === "Draining", minutes(1));
      await world.pass(seconds(5));
      one.stall();
      replaceMachine(one);
      await world.pass(minutes(2));
    });
    expect(untouched(world)).toEqual(["new-0", "new-1"]);
    expect(asked(world)).toEqual([]);
    expect(ending(world)).toEqual(replaced);
    expect(world.marksOf("n1")).toEqual([]);
  });

  it("keeps the new machine's pods at a notice", async () => {
    const one = await stage();
    const { world } = one;
    await controlled(world, async () => {
      world.notice("n1", seconds(120));
      await world.pass(seconds(5));
      one.stall();
      replaceMachine(one);
      await world.pass(minutes(3));
    });
    expect(untouched(world)).toEqual(["new-0", "new-1"]);
    expect(asked(world)).toEqual([]);
    expect(ending(world)).toEqual(replaced);
  });

  it("keeps the new machine's pods while capacity is being reserved", async () => {
    const replacement = { when: "BeforeDrain", timeout: "2m", onTimeout: "Proceed" };
    const one = await stage({ policy: { replacement }, maxUnavailable: 6 });
    const { world } = one;
    await controlled(world, async () => {
      depart(one);
      await world.passUntil(() => ending(world).reason === "ReplacementWait", minutes(1));
      one.stall();
      replaceMachine(one);
      await world.pass(minutes(5));
    });
    expect(untouched(world)).toEqual(["new-0", "new-1"]);
    expect(asked(world)).toEqual([]);
    expect(ending(world)).toEqual(replaced);
  });

  it("keeps the new machine's pods if an interruption follows a recommendation that only cordoned", async () => {
    const one = await stage({ policy: { onNotice: { rebalance: "Cordon" } } });
    const { world } = one;
    await controlled(world, async () => {
      rebalance(world);
      await world.pass(seconds(30));
      expect(world.marksOf("n1")).toContain("unschedulable");
      one.stall(nodes);
      replaceMachine(one);
      const patchType = "application/merge-patch+json";
      const body = { spec: { cause: "SpotInterruption" } };
      const path = `${departures}/n1-rebalance`;
      expect(world.api.handle({ method: "PATCH", path, patchType, body }).status).toBe(200);
      await world.pass(minutes(2));
    });
    expect(untouched(world)).toEqual(["new-0", "new-1"]);
    expect(asked(world)).toEqual([]);
    expect(ending(world)).toEqual(replaced);
  });

  it("keeps its pods and its machine if the old machine was about to be released", async () => {
    const instance = { loadBalancerDelay: "2m" };
    const one = await stage({ policy: { instance }, maxUnavailable: 6 });
    const { world } = one;
    await controlled(world, async () => {
      depart(one);
      await world.passUntil(() => world.podsOn("n1").length === 0, minutes(1));
      one.stall();
      replaceMachine(one);
      await world.pass(minutes(5));
    });
    expect(untouched(world)).toEqual(["new-0", "new-1"]);
    expect(asked(world)).toEqual([]);
    expect(world.released).toEqual([]);
    // The cloud shows that the old machine is gone, which is all that its release was for.
    expect(ending(world)).toEqual({ phase: "Ended", reason: "Released" });
  });

  it.each([
    ["with no pod on its node", 0],
    ["with a pod that was bound to its node late", 1],
  ] as const)(
    "keeps its machine if its Departure was deleted during the release, %s",
    async (_, late) => {
      const one = await stage({ maxUnavailable: 6 });
      const { world } = one;
      const { release } = world.releaser;
      let isAsked = false;
      world.releaser.release = (request, signal) => {
        one.stall();
        world.api.handle({ method: "DELETE", path: `${departures}/n1-asked` });
        if (late > 0 && !isAsked) bind(world, "new-0");
        isAsked = true;
        return release(request, signal);
      };
      await controlled(world, async () => {
        depart(one);
        await world.passUntil(() => isAsked, minutes(1));
        await world.pass(minutes(5));
      });
      expect(world.podsOn("n1")).toHaveLength(late);
      expect(world.released).toEqual([]);
    },
  );

  it("keeps the new machine's pods if another controller continues the drain from a stale list", async () => {
    const one = await stage();
    const { world } = one;
    await controlled(world, async () => {
      depart(one);
      await world.passUntil(() => ending(world).phase === "Draining", minutes(1));
    });
    const stale = world.get(nodes);
    const send = world.watched.send.bind(world.watched);
    world.watched.send = (request) =>
      request.method === "GET" && request.path === nodes
        ? Promise.resolve({ status: 200, body: stale })
        : send(request);
    one.stall();
    replaceMachine(one);
    await controlled(world, () => world.pass(minutes(2)));
    expect(untouched(world)).toEqual(["new-0", "new-1"]);
    expect(asked(world)).toEqual([]);
    expect(ending(world)).toEqual(replaced);
  });
});

describe("a release that is retried", () => {
  it.each([
    { what: "the Node cannot be removed", method: "DELETE", path: /nodes\/n1$/ },
    {
      what: "nothing else can be written either",
      method: "DELETE",
      path: /nodes\/n1$/,
      silent: true,
    },
  ] as const)(
    "does not release the group's new machine if $what",
    async ({ method, path, ...how }) => {
      const one = await stage({ maxUnavailable: 6 });
      const { world } = one;
      world.bornAfterMs = millis(20);
      world.bootsAfterMs = seconds(10);
      world.onRelease = () => {
        const answer = { status: 500, body: "no" };
        world.api.failNext({ match: { method, path }, answer, times: 3 });
        if (!("silent" in how)) return;
        world.api.failNext({
          match: { method: "PATCH", path: /n1-asked\/status$/ },
          answer,
          times: 3,
        });
      };
      await controlled(world, async () => {
        depart(one);
        await world.passUntil(() => ending(world).phase === "Ended", minutes(3));
        await world.pass(minutes(2));
      });
      expect(world.releaseIds).toEqual(["machine-2"]);
      expect(world.marksOf("n1")).toEqual([]);
      expect(world.statusOf("n1")).toMatchObject({ phase: "Ended", outcome: "Planned" });
    },
  );
});

describe("with a stale view", () => {
  it("a node that is missing from a new leader's list does not count as gone", async () => {
    const one = await stage();
    const { world } = one;
    await controlled(world, async () => {
      depart(one);
      await world.passUntil(() => ending(world).phase === "Draining", minutes(1));
    });
    const send = world.watched.send.bind(world.watched);
    world.watched.send = async (request) => {
      const answer = await send(request);
      if (request.method !== "GET" || request.path !== nodes) return answer;
      const { items, ...list } = answer.body as { readonly items: readonly KubeObject[] };
      const others = items.filter(({ metadata }) => metadata?.name !== "n1");
      return { ...answer, body: { ...list, items: others } };
    };
    one.stall(nodes);
    await controlled(world, () => world.pass(minutes(1)));
    expect(ending(world).phase).toBe("Draining");
    expect(world.marksOf("n1")).toContain("unschedulable");
  });

  it("a node keeps the marks of a departure that the watch has not shown yet", async () => {
    const one = await stage();
    const { world } = one;
    await controlled(world, async () => {
      await world.pass(seconds(5));
      one.stall(departures);
      depart(one);
      const patchType = "application/merge-patch+json";
      const body = { status: { phase: "Draining" } };
      const path = `${departures}/n1-asked/status`;
      expect(world.api.handle({ method: "PATCH", path, patchType, body }).status).toBe(200);
      world.patchNode("n1", {
        metadata: { annotations: { "lastcall.dev/departure": "n1-asked" } },
        spec: { unschedulable: true },
      });
      await world.pass(minutes(1));
    });
    expect(world.marksOf("n1")).toContain("unschedulable");
    expect(world.logged.filter((line) => line.includes("orphaned-cordon-cleared"))).toEqual([]);
  });
});

describe("pods that are bound to a node while it drains", () => {
  it("are evicted like the others, once the node was read again", async () => {
    const one = await stage();
    const { world } = one;
    await controlled(world, async () => {
      world.notice("n1", seconds(120));
      await world.pass(seconds(5));
      bind(world, "new-0");
      await world.pass(seconds(5));
    });
    expect(untouched(world)).toEqual([]);
  });

  it("are left alone while the node cannot be read; the others are evicted", async () => {
    const one = await stage({ maxUnavailable: 6 });
    const { world } = one;
    await controlled(world, async () => {
      world.notice("n1", seconds(120));
      await world.pass(seconds(1));
      world.api.failNext({
        match: { method: "GET", path: /nodes\/n1$/ },
        answer: { status: 500, body: "no" },
        times: 12,
      });
      bind(world, "new-0");
      await world.pass(seconds(4));
      expect(world.podsOn("n1").map(({ metadata }) => metadata?.name)).toEqual(["new-0"]);
      expect(untouched(world)).toEqual(["new-0"]);
      await world.passUntil(() => world.podsOn("n1").length === 0, seconds(60));
    });
    expect(world.statusOf("n1")).toMatchObject({ phase: "Releasing", drain: { left: 0 } });
  });

  it("are left alone once the Departure is gone", async () => {
    const one = await stage();
    const { world } = one;
    await controlled(world, async () => {
      depart(one);
      await world.passUntil(() => ending(world).phase === "Draining", minutes(1));
      await world.pass(seconds(5));
      one.stall(departures);
      world.api.handle({ method: "DELETE", path: `${departures}/n1-asked` });
      bind(world, "new-0");
      await world.pass(minutes(1));
      // What changes has the controller decide again, by a watch that still shows the departure.
      world.patchNode("n2", { metadata: { labels: { turn: "1" } } });
      await world.pass(minutes(1));
    });
    expect(asked(world)).toEqual([]);
  });
});

function rebalance(world: ModelWorld): void {
  const uid = world.get(`${nodes}/n1`)?.metadata?.uid;
  world.create(departures, {
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "Departure",
    metadata: { name: "n1-rebalance" },
    spec: {
      node: { name: "n1", uid },
      cause: "RebalanceRecommendation",
      noticedAt: "2026-11-20T00:00:10Z",
      source: "test",
    },
  } as KubeObject);
}
