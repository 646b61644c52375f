import { describe, expect, it } from "vitest";
import type { KubeRequest } from "../../src/contracts/kube-api.ts";
import { formatInstant, seconds } from "../../src/core/time/time.ts";
import { dawn, departures, ModelWorld, webWorkload } from "../support/model-world.ts";

interface Leave {
  readonly verb: "evict" | "delete";
  readonly afterSeconds: number;
  readonly graceSeconds: number | undefined;
}

/**
 * Two pods on n1 that ask for more grace than a notice of 30 s leaves, and evictions that are
 * delayed by 8 s. `happens` runs three seconds after the notice.
 */
async function rush(happens: (world: ModelWorld) => void = () => {}) {
  const world = new ModelWorld();
  for (const name of ["n0", "n1", "n2"]) world.addNode(name, name);
  webWorkload(world, { replicas: 6, maxUnavailable: 6, exitAfterSeconds: 3 });
  await world.pass(seconds(5));
  const left: Leave[] = [];
  const { api } = world;
  const send = api.send.bind(api);
  const handle = api.handle.bind(api);
  api.handle = (request) => {
    const verb = verbOf(request);
    const afterSeconds = (world.clock.now() - dawn) / 1000;
    if (verb !== undefined) left.push({ verb, afterSeconds, graceSeconds: graceOf(request, verb) });
    return handle(request);
  };
  api.send = async (request) => {
    if (verbOf(request) !== undefined) await world.clock.sleep(seconds(8));
    return send(request);
  };
  const stop = new AbortController();
  const running = world.startController(stop.signal);
  world.notice("n1", seconds(30));
  await world.pass(seconds(3));
  happens(world);
  await world.pass(seconds(32));
  stop.abort();
  await running;
  return { world, left };
}

function verbOf({ method, path }: KubeRequest): Leave["verb"] | undefined {
  if (method === "POST" && path.endsWith("/eviction")) return "evict";
  return method === "DELETE" && path.includes("/pods/") ? "delete" : undefined;
}

function graceOf({ body }: KubeRequest, verb: Leave["verb"]): number | undefined {
  const asked = body as { deleteOptions?: object; gracePeriodSeconds?: number };
  const options = verb === "evict" ? asked.deleteOptions : asked;
  return (options as { gracePeriodSeconds?: number } | undefined)?.gracePeriodSeconds;
}

describe("evictions that wait in a burst of requests", () => {
  it("do not count as refused by a budget: no pod is deleted regardless of it", async () => {
    const { left, world } = await rush();
    expect(left.map(({ verb }) => verb)).toEqual(["evict", "evict"]);
    expect(world.statusOf("n1")).toMatchObject({ drain: { evicted: 2, forced: 0 } });
  });

  it("carry the grace that is left when they are sent", async () => {
    const { left } = await rush();
    const [first] = left;
    // The notice arrives 5 s after dawn; its deadline is 30 s later.
    const leftSeconds = 35 - (first?.afterSeconds ?? 0);
    expect(left.map(({ graceSeconds }) => graceSeconds)).toEqual([
      Math.floor(leftSeconds),
      Math.floor(leftSeconds),
    ]);
  });

  it("are not sent if the notice has been withdrawn meanwhile", async () => {
    const { left, world } = await rush((world) => {
      const path = `${departures}/${world.departureOf("n1")?.metadata?.name}`;
      const body = { spec: { withdrawnAt: formatInstant(world.clock.now()) } };
      const patchType = "application/merge-patch+json";
      world.api.handle({ method: "PATCH", path, patchType, body });
    });
    expect(left).toEqual([]);
    expect(world.podsOn("n1")).toHaveLength(2);
    expect(world.marksOf("n1")).toEqual([]);
  });
});
