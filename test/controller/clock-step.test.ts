import { expect, it } from "vitest";
import { seconds } from "../../src/core/time/time.ts";
import { ModelWorld, spotPolicy, webWorkload } from "../support/model-world.ts";

/** When a job's pods are evicted, in seconds of the monotonic clock after the notice. */
async function askedAfter(noticeSeconds: number, setForwardBy: number): Promise<number> {
  const world = new ModelWorld();
  for (const name of ["n0", "n1"]) world.addNode(name, name);
  webWorkload(world, { replicas: 2, maxUnavailable: 2, graceSeconds: 30 });
  const job = { selector: { matchLabels: { app: "web" } }, action: "WaitCompleted" };
  spotPolicy(world, { drain: { podRules: [job] }, instance: { release: "None" } });
  await world.pass(seconds(30));
  let askedMs: number | undefined;
  world.afterRequest = ({ path }) => {
    if (path.endsWith("/eviction")) askedMs ??= world.clock.monotonic();
  };
  const stop = new AbortController();
  const running = world.startController(stop.signal);
  await world.pass(seconds(5));
  const noticedMs = world.clock.monotonic();
  world.notice("n0", seconds(noticeSeconds));
  await world.pass(seconds(10));
  world.clock.setForward(seconds(setForwardBy));
  await world.pass(seconds(noticeSeconds));
  stop.abort();
  await running;
  return ((askedMs ?? Number.NaN) - noticedMs) / 1000;
}

it("a late eviction at a notice moves forward with the wall clock when that is set forward", async () => {
  const asked = await askedAfter(300, 0);
  expect(asked).toBeGreaterThan(240);
  expect(await askedAfter(300, 100)).toBeCloseTo(asked - 100, 1);
});
