import { describe, expect, it } from "vitest";
import { seconds } from "../../src/core/time.ts";
import { ModelWorld, nodes, webWorkload } from "../support/model-world.ts";

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

/** Gives notice to n1; the controller dies before its write number `dieAt`, and another comes. */
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

  it("has its node cordoned and its pods evicted before anything is written down", () => {
    const cordon = writes.indexOf(`PATCH ${nodes}/n1`);
    const evictions = writes.flatMap((write, at) => (write.endsWith("/eviction") ? [at] : []));
    expect(undisturbed.pods).toBe(2);
    expect([cordon, ...evictions]).toEqual([0, expect.any(Number), expect.any(Number)]);
    const ledger = writes.findIndex((write) => /departures\/.*\/status$/.test(write));
    expect(Math.max(...evictions)).toBeLessThan(ledger);
  });

  it("is written down whole all the same", () => {
    const steps = ledgerOf(undisturbed.world).timeline.map(({ step }) => step);
    expect(steps).toEqual(["Preparing", "Draining", "Releasing"]);
  });

  it.each(writes.map((write, index) => [index + 1, write.replace(/[0-9a-f]{5,}/g, "*")] as const))(
    "is finished by a successor where the first controller died before write %i, %s",
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

describe("a burst of notices", () => {
  /** How often the drain of n0 thinks in the half minute in which so many others get notices. */
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

  it("makes no drain think anew of what is not its own", async () => {
    const alone = await looksBeside(0);
    expect(alone).toBeGreaterThan(0);
    expect(await looksBeside(15)).toBe(alone);
  });
});

describe("a machine that was taken, and made anew behind the same Node object", () => {
  it("ends the departure as the cloud's doing, and is put to work at once", async () => {
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
