import { describe, expect, it } from "vitest";
import type { KubeRequest } from "../../src/contracts/kube-api.ts";
import { type Millis, seconds } from "../../src/core/time.ts";
import { dawn, ModelWorld, webWorkload } from "../support/model-world.ts";

interface Leave {
  readonly verb: "evict" | "delete";
  readonly afterSeconds: number;
  readonly graceSeconds: number | undefined;
}

/** Two pods of 30 s of grace on n1, and evictions that wait so long before they go out. */
async function rush(waitMs: Millis) {
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
    if (verbOf(request) !== undefined) await world.clock.sleep(waitMs);
    return send(request);
  };
  const stop = new AbortController();
  const running = world.startController(stop.signal);
  world.notice("n1", seconds(30));
  await world.pass(seconds(35));
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

describe("evictions that wait for their turn in a rush of notices", () => {
  it("are no answer of a budget: no pod is deleted past it", async () => {
    const { left, world } = await rush(seconds(8));
    expect(left.map(({ verb }) => verb)).toEqual(["evict", "evict"]);
    expect(world.statusOf("n1")).toMatchObject({ drain: { evicted: 2, forced: 0 } });
  });

  it("name the grace that is left as they go out", async () => {
    const { left } = await rush(seconds(8));
    const [first] = left;
    // The notice comes 5 s after dawn, its deadline 30 s later.
    const leftSeconds = 35 - (first?.afterSeconds ?? 0);
    expect(left.map(({ graceSeconds }) => graceSeconds)).toEqual([
      Math.floor(leftSeconds),
      Math.floor(leftSeconds),
    ]);
  });
});
