import { expect, it } from "vitest";
import type { Leadership } from "../../src/contracts/leadership.ts";
import { seconds } from "../../src/core/time/time.ts";
import { ModelWorld } from "../support/model-world.ts";

it("a controller that is asked to stop has not ended before its lead is given up", async () => {
  const world = new ModelWorld();
  let isGivenUp = false;
  const leadership: Leadership = {
    isLeader: () => true,
    async run({ onLeading }, signal) {
      await onLeading(signal);
      // As long as it takes to write the Lease.
      await world.clock.sleep(seconds(1));
      isGivenUp = true;
    },
  };
  const stop = new AbortController();
  const ended = world.startController(stop.signal, { leadership }).then(() => isGivenUp);
  await world.pass(seconds(5));
  stop.abort();
  await world.pass(seconds(5));
  expect(await ended).toBe(true);
});
