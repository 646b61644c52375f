/** Drains during which nobody can act for a while: no replica leads, or the API server is away. */
import { describe, expect, it } from "vitest";
import type { KubeAnswer, KubeRequest } from "../../src/contracts/kube-api.ts";
import { hours, type Millis, minutes, seconds } from "../../src/core/time/time.ts";
import { LastcallError } from "../../src/errors.ts";
import { ModelWorld, spotPolicy, webWorkload } from "../support/model-world.ts";
import { depart, ledgerOf } from "./capacity-story.ts";

interface Story {
  readonly world: ModelWorld;
  /** The pods on the machine when it was released. */
  readonly lost: () => readonly string[] | undefined;
}

async function story(onTimeout: string): Promise<Story> {
  const world = new ModelWorld();
  for (const name of ["n0", "n1", "n2"]) world.addNode(name, "a");
  webWorkload(world, { replicas: 6, maxUnavailable: 6, graceSeconds: 60, exitAfterSeconds: 30 });
  spotPolicy(world, { drain: { timeout: "5m", onTimeout } });
  await world.pass(seconds(60));
  let lost: readonly string[] | undefined;
  world.onRelease = (node) => {
    lost = world.podsOn(node).map(({ metadata }) => metadata?.name ?? "");
  };
  return { world, lost: () => lost };
}

/** Kills the leader before its first eviction; the next one starts after `awayMs`. */
async function leaderless({ world }: Story, awayMs: Millis): Promise<void> {
  depart(world, "n0");
  const killed = new AbortController();
  world.beforeWrite = ({ path }) => {
    if (!path.endsWith("/eviction")) return;
    killed.abort(new Error("killed"));
    throw new Error("killed");
  };
  const running = world.startController(killed.signal);
  await world.pass(seconds(30));
  await running;
  expect(ledgerOf(world, "n0").phase).toBe("Draining");
  world.beforeWrite = () => undefined;
  await world.pass(awayMs);
  const stop = new AbortController();
  const again = world.startController(stop.signal);
  await world.pass(minutes(8));
  stop.abort();
  await again;
}

/** From the first request that `isFirst` on, the API server cannot be reached for `awayMs`. */
async function unreachable(
  { world }: Story,
  awayMs: Millis,
  isFirst: (request: KubeRequest) => boolean,
): Promise<void> {
  depart(world, "n0");
  let until: number | undefined;
  const send = world.watched.send.bind(world.watched);
  world.watched.send = async (request: KubeRequest): Promise<KubeAnswer> => {
    if (until === undefined && isFirst(request)) until = world.clock.now() + awayMs;
    if (until === undefined || world.clock.now() >= until) return send(request);
    await world.clock.sleep(seconds(1));
    throw new LastcallError("API_UNREACHABLE", "connection refused", { retryable: true });
  };
  const stop = new AbortController();
  const running = world.startController(stop.signal);
  await world.pass(awayMs);
  await world.pass(minutes(8));
  expect(until).toBeDefined();
  stop.abort();
  await running;
}

const away = [minutes(6), hours(3)];

describe.each(["Proceed", "RollBack"])("a drain with onTimeout: %s", (onTimeout) => {
  it.each(away)("is carried out by the leader that comes %d ms later", async (awayMs) => {
    const one = await story(onTimeout);
    await leaderless(one, awayMs);
    expect(one.world.stepsOf("n0")).toContain("evict");
    expect(one.lost()).toEqual([]);
    expect(ledgerOf(one.world, "n0")).toMatchObject({ outcome: "Planned" });
  });

  it.each(away)("is carried out when the API server is back after %d ms", async (awayMs) => {
    const one = await story(onTimeout);
    await unreachable(one, awayMs, ({ path }) => path.endsWith("/eviction"));
    expect(one.world.stepsOf("n0")).toContain("evict");
    expect(one.lost()).toEqual([]);
    expect(ledgerOf(one.world, "n0")).toMatchObject({ outcome: "Planned" });
  });
});

it("is rolled back within twice its timeout if no request about its pods is ever answered", async () => {
  const one = await story("Proceed");
  const { world } = one;
  depart(world, "n0");
  const send = world.watched.send.bind(world.watched);
  world.watched.send = async (request: KubeRequest): Promise<KubeAnswer> => {
    const isOfPod = /\/pods\/[^/]+(\/eviction)?$/.test(request.path) && request.method !== "GET";
    if (!isOfPod) return send(request);
    await world.clock.sleep(seconds(1));
    throw new LastcallError("API_UNREACHABLE", "connection refused", { retryable: true });
  };
  const stop = new AbortController();
  const running = world.startController(stop.signal);
  await world.pass(minutes(9));
  expect(ledgerOf(world, "n0").phase).toBe("Draining");
  await world.pass(minutes(2));
  expect(one.lost()).toBeUndefined();
  expect(ledgerOf(world, "n0")).toMatchObject({ phase: "Ended", outcome: "RolledBack" });
  stop.abort();
  await running;
});
