import { expect, it } from "vitest";
import type { Leadership } from "../../src/contracts/leadership.ts";
import { seconds } from "../../src/core/time/time.ts";
import { ModelWorld } from "../support/model-world.ts";

it("a controller that is stopped does not end before it has given up its lead", async () => {
  const world = new ModelWorld();
  let isGivenUp = false;
  const leadership: Leadership = {
    isLeader: () => true,
    async run({ onLeading }, signal) {
      await onLeading(signal);
      // The time that a write of the Lease takes.
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
