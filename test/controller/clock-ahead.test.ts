import { expect, it } from "vitest";
import type { Clock } from "../../src/contracts/clock.ts";
import { instant, minutes, seconds } from "../../src/core/time/time.ts";
import { ModelWorld, spotPolicy, webWorkload } from "../support/model-world.ts";
import { depart } from "./capacity-story.ts";

/** Starts a controller on a machine whose clock is off. */
function startOff(world: ModelWorld, offMs: number, signal: AbortSignal): Promise<void> {
  const { clock: right } = world;
  const wrong: Clock = {
    now: () => instant(right.now() + offMs),
    monotonic: () => right.monotonic(),
    sleep: (span, until) => right.sleep(span, until),
    sleepUntil: (at, until) => right.sleepUntil(instant(at - offMs), until),
  };
  return world.startController(signal, { clock: wrong });
}

it.each([seconds(100), minutes(30), -minutes(30)])(
  "a machine is not released before its pods have gone if the controller's clock is off by %d ms",
  async (offMs) => {
    const world = new ModelWorld();
    for (const name of ["n0", "n1", "n2"]) world.addNode(name, "a");
    webWorkload(world, { replicas: 6, maxUnavailable: 6, graceSeconds: 30, exitAfterSeconds: 20 });
    spotPolicy(world, {});
    await world.pass(minutes(1));
    let lost: number | undefined;
    world.onRelease = (node) => {
      lost = world.podsOn(node).length;
    };
    const stop = new AbortController();
    const running = startOff(world, offMs, stop.signal);
    await world.pass(seconds(5));
    depart(world, "n0");
    await world.pass(minutes(3));
    expect(lost).toBe(0);
    stop.abort();
    await running;
  },
);
