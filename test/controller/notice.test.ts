import { describe, expect, it } from "vitest";
import { formatInstant, hours, plus, seconds } from "../../src/core/time/time.ts";
import {
  dawn,
  departures,
  ModelWorld,
  nodes,
  spotPolicy,
  webWorkload,
} from "../support/model-world.ts";

function fleet(): ModelWorld {
  const world = new ModelWorld();
  for (const name of ["n0", "n1", "n2"]) world.addNode(name, name);
  webWorkload(world, { replicas: 6, maxUnavailable: 6 });
  return world;
}

interface Ledger {
  readonly phase: string;
  readonly timeline: readonly { readonly step: string }[];
}

function ledgerOf(world: ModelWorld): Ledger {
  return world.departureOf("n1")?.status as Ledger;
}

/**
 * Gives notice to n1; the controller dies before the write number `dieAt`, and another one starts.
 */
async function noticeWithDeath(dieAt: number) {
  const world = fleet();
  await world.pass(seconds(5));
  const pods = world.podsOn("n1").length;
  const first = new AbortController();
  let writes = 0;
  world.beforeWrite = () => {
    writes += 1;
    if (writes === dieAt) first.abort(new Error("killed"));
    if (writes >= dieAt) throw new Error("killed");
  };
  const running = world.startController(first.signal);
  world.notice("n1", seconds(120));
  await world.pass(seconds(20));
  first.abort();
  await running;
  world.beforeWrite = () => {};
  const writesOfTheFirst = [...world.writes];
  const second = new AbortController();
  const again = world.startController(second.signal);
  await world.pass(seconds(60));
  const stop = async (): Promise<void> => {
    second.abort();
    await again;
  };
  return { world, pods, writesOfTheFirst, stop };
}

describe("a notice", async () => {
  const undisturbed = await noticeWithDeath(Number.POSITIVE_INFINITY);
  await undisturbed.stop();
  const writes = undisturbed.writesOfTheFirst;

  it("shows on its node as a condition that names the deadline", () => {
    const status = undisturbed.world.get(`${nodes}/n1`)?.status as
      | { conditions: readonly { readonly type: string; readonly message?: string }[] }
      | undefined;
    const departing = status?.conditions.find(({ type }) => type === "Departing");
    expect(departing).toMatchObject({ status: "True", reason: "SpotInterruption" });
    expect(departing?.message).toContain(formatInstant(plus(dawn, seconds(125))));
  });

  it("cordons its node and evicts the pods before any status is written", () => {
    const cordon = writes.indexOf(`PATCH ${nodes}/n1`);
    const evictions = writes.flatMap((write, at) => (write.endsWith("/eviction") ? [at] : []));
    expect(undisturbed.pods).toBe(2);
    expect([cordon, ...evictions]).toEqual([0, expect.any(Number), expect.any(Number)]);
    const ledger = writes.findIndex((write) => /departures\/.*\/status$/.test(write));
    expect(Math.max(...evictions)).toBeLessThan(ledger);
  });

  it("leaves a complete timeline all the same", () => {
    const steps = ledgerOf(undisturbed.world).timeline.map(({ step }) => step);
    expect(steps).toEqual(["Preparing", "Draining", "Releasing"]);
  });

  it.each(writes.map((write, index) => [index + 1, write.replace(/[0-9a-f]{5,}/g, "*")] as const))(
    "is completed by the next controller if the first one died before write %i, %s",
    async (dieAt) => {
      const { world, stop } = await noticeWithDeath(dieAt);
      expect(world.podsOn("n1")).toEqual([]);
      expect(world.marksOf("n1")).toContain("unschedulable");
      expect(ledgerOf(world).phase).toBe("Releasing");
      world.api.handle({ method: "DELETE", path: `${nodes}/n1` });
      await world.pass(seconds(10));
      await stop();
      expect(world.statusOf("n1")).toMatchObject({ phase: "Ended", outcome: "Preempted" });
    },
  );
});

describe("a notice for a node", () => {
  async function underWay(how: {
    readonly exitAfterSeconds: number;
    readonly prepare?: (world: ModelWorld) => void;
  }) {
    const world = new ModelWorld();
    for (const name of ["n0", "n1", "n2"]) world.addNode(name, "a");
    webWorkload(world, { replicas: 6, maxUnavailable: 6, ...how });
    const stop = new AbortController();
    await world.pass(seconds(5));
    const running = world.startController(stop.signal);
    await world.pass(seconds(30));
    how.prepare?.(world);
    world.notice("n1", seconds(120));
    await world.pass(seconds(5));
    return {
      world,
      end: async () => {
        stop.abort();
        await running;
      },
    };
  }

  it("waits for its pods without a request for any of them", async () => {
    const { world, end } = await underWay({ exitAfterSeconds: 60 });
    const asked: string[] = [];
    world.afterRequest = ({ method, path }) => {
      if (path.includes("/pods")) asked.push(`${method} ${path}`);
    };
    expect(world.podsOn("n1")).toHaveLength(2);
    await world.pass(seconds(50));
    expect(asked).toEqual([]);
    await world.pass(seconds(20));
    expect(world.podsOn("n1")).toEqual([]);
    await end();
  });

  it("drains a node that somebody else has cordoned, too", async () => {
    const prepare = (world: ModelWorld) => world.patchNode("n1", { spec: { unschedulable: true } });
    const { world, end } = await underWay({ exitAfterSeconds: 3, prepare });
    await world.pass(seconds(5));
    expect(world.podsOn("n1")).toEqual([]);
    await end();
  });

  it("retries a refused cordon, and then drains", async () => {
    let refusals = 0;
    const prepare = (world: ModelWorld) => {
      world.api.failNext({
        match: { method: "PATCH", path: `${nodes}/n1` },
        answer: { status: 500, body: { kind: "Status", status: "Failure", message: "no" } },
        times: 5,
      });
      world.afterRequest = ({ path }, { status }) => {
        if (path === `${nodes}/n1` && status === 500) refusals += 1;
      };
    };
    const { world, end } = await underWay({ exitAfterSeconds: 3, prepare });
    await world.pass(seconds(30));
    expect(refusals).toBe(5);
    expect(world.marksOf("n1")).toContain("unschedulable");
    expect(world.stepsOf("n1").lastIndexOf("cordon")).toBeLessThan(
      world.stepsOf("n1").indexOf("evict"),
    );
    expect(world.podsOn("n1")).toEqual([]);
    await end();
  });

  it.each([
    ["with 500", { status: 500, body: { kind: "Status", status: "Failure", message: "no" } }],
    ["with an HTML page of a proxy", { status: 200, body: "<html>Please log in</html>" }],
    ["with another object", { status: 200, body: { kind: "Status", status: "Success" } }],
  ])(
    "does not take the node for drained if the list of its pods is answered %s",
    async (_, answer) => {
      const prepare = (world: ModelWorld) => {
        const { api } = world;
        const send = api.send.bind(api);
        api.send = async (request) => {
          const isHidden = world.clock.now() < dawn + 60_000 && request.path === "/api/v1/pods";
          if (!isHidden || request.method !== "GET") return send(request);
          return answer;
        };
      };
      const { world, end } = await underWay({ exitAfterSeconds: 3, prepare });
      await world.pass(seconds(15));
      expect(world.marksOf("n1")).toContain("unschedulable");
      expect(world.podsOn("n1")).toHaveLength(2);
      expect(world.statusOf("n1").phase).not.toBe("Releasing");
      await world.pass(seconds(30));
      expect(world.podsOn("n1")).toEqual([]);
      await end();
    },
  );

  it("leaves the machine to the cloud", async () => {
    const { world, end } = await underWay({ exitAfterSeconds: 3 });
    await world.pass(seconds(115));
    expect(world.podsOn("n1")).toEqual([]);
    expect(world.released).toEqual([]);
    expect(world.get(`${nodes}/n1`)).toBeDefined();
    await end();
  });
});

describe("a burst of notices", () => {
  it("cordons and drains every node at once, though each drain takes a minute", async () => {
    const world = new ModelWorld();
    const names = Array.from({ length: 60 }, (_, index) => `n${index}`);
    for (const name of names) world.addNode(name, "a");
    webWorkload(world, { replicas: 120, maxUnavailable: 120, exitAfterSeconds: 60 });
    await world.pass(seconds(5));
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    await world.pass(seconds(30));
    for (const name of names) world.notice(name, seconds(120));
    await world.pass(seconds(1));
    for (const name of names) {
      expect(world.marksOf(name)).toContain("unschedulable");
      for (const pod of world.podsOn(name))
        expect(pod.metadata).toHaveProperty("deletionTimestamp");
    }
    // More than the 120: some replacements are bound to a node just before its cordon.
    const evictions = world.writes.filter((write) => write.endsWith("/eviction"));
    expect(new Set(evictions).size).toBe(evictions.length);
    stop.abort();
    await running;
  });

  /** How often the drain of n0 runs in the half minute in which `others` nodes get notices. */
  async function looksBeside(others: number): Promise<number> {
    const world = new ModelWorld();
    for (let index = 0; index <= 20; index += 1) world.addNode(`n${index}`, "a");
    webWorkload(world, { replicas: 42, maxUnavailable: 42, exitAfterSeconds: 60 });
    await world.pass(seconds(5));
    let looks = 0;
    world.onLookAtPods = (node) => {
      if (node === "n0") looks += 1;
    };
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    world.notice("n0", seconds(120));
    await world.pass(seconds(5));
    for (let index = 1; index <= others; index += 1) world.notice(`n${index}`, seconds(120));
    await world.pass(seconds(30));
    stop.abort();
    await running;
    return looks;
  }

  it("does not wake a drain for pods of other nodes", async () => {
    const alone = await looksBeside(0);
    expect(alone).toBeGreaterThan(0);
    expect(await looksBeside(15)).toBe(alone);
  });
});

describe("a machine that was taken, and recreated behind the same Node object", () => {
  it("ends the departure as preempted, and is uncordoned at once", async () => {
    const world = fleet();
    await world.pass(seconds(5));
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    world.notice("n1", seconds(30));
    await world.pass(seconds(20));
    expect(ledgerOf(world).phase).toBe("Releasing");
    const path = `${nodes}/n1/status`;
    const patchType = "application/merge-patch+json";
    const body = { status: { nodeInfo: { bootID: "another boot" } } };
    world.api.handle({ method: "PATCH", path, patchType, body });
    await world.pass(seconds(5));
    expect(world.statusOf("n1")).toMatchObject({ phase: "Ended", outcome: "Preempted" });
    expect(world.marksOf("n1")).toEqual([]);
    stop.abort();
    await running;
  });
});

describe("a policy in dry run", () => {
  it.each([
    ["a notice", (world: ModelWorld) => world.notice("n1", seconds(120))],
    ["a recommendation", (world: ModelWorld) => departureFor(world, "RebalanceRecommendation")],
    ["a user's request", (world: ModelWorld) => departureFor(world, "Manual")],
  ] as const)("changes neither node nor pods at %s", async (_, ask) => {
    const world = fleet();
    spotPolicy(world, { lifetime: {}, dryRun: true, onNotice: { rebalance: "Drain" } });
    await world.pass(seconds(5));
    const pods = world.podsOn("n1").length;
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    ask(world);
    await world.pass(seconds(180));
    stop.abort();
    await running;
    expect(world.stepsOf("n1")).toEqual([]);
    expect(world.podsOn("n1")).toHaveLength(pods);
    expect(world.released).toEqual([]);
  });

  it("changes nothing at a notice without a time for a node that a user has requested", async () => {
    const world = fleet();
    spotPolicy(world, { lifetime: {}, dryRun: true });
    await world.pass(seconds(5));
    const pods = world.podsOn("n1").length;
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    const deadlineAt = formatInstant(plus(world.clock.now(), hours(1)));
    departureFor(world, "Manual", { deadlineAt });
    await world.pass(seconds(5));
    world.api.handle({
      method: "PATCH",
      path: `${departures}/n1-asked`,
      patchType: "application/merge-patch+json",
      body: { spec: { noticedAt: formatInstant(world.clock.now()) } },
    });
    await world.pass(seconds(30));
    stop.abort();
    await running;
    expect(world.stepsOf("n1")).toEqual([]);
    expect(world.marksOf("n1")).toEqual([]);
    expect(world.podsOn("n1")).toHaveLength(pods);
    expect(world.statusOf("n1")).toMatchObject({ outcome: "Cancelled", reason: "DryRun" });
    expect(world.events.some(({ reason }) => reason === "NoticeReceived")).toBe(true);
  });

  it("records in Departure and Event what a notice would have done", async () => {
    const world = fleet();
    spotPolicy(world, { lifetime: {}, dryRun: true });
    await world.pass(seconds(5));
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    world.notice("n1", seconds(120));
    await world.pass(seconds(5));
    stop.abort();
    await running;
    expect(world.statusOf("n1")).toMatchObject({ outcome: "Cancelled", reason: "DryRun" });
    const said = world.events.find(({ reason }) => reason === "NoticeReceived");
    expect(said?.message).toContain("n1 would leave now, but this is a dry run");
  });
});

function departureFor(world: ModelWorld, cause: string, more: object = {}): void {
  const uid = world.get(`${nodes}/n1`)?.metadata?.uid ?? "";
  const noticedAt = formatInstant(world.clock.now());
  world.create(departures, {
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "Departure",
    metadata: { name: "n1-asked" },
    spec: {
      ...{ node: { name: "n1", uid }, cause, source: "test" },
      ...(cause === "Manual" ? {} : { noticedAt }),
      ...more,
    },
  });
}
