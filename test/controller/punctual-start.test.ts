import { expect, it } from "vitest";
import { hours, millis, minus, minutes, parseInstant, plus } from "../../src/core/time/time.ts";
import { dawn, ModelWorld, policies } from "../support/model-world.ts";

it("a departure starts at its instant although a timer ends a millisecond early", async () => {
  const world = new ModelWorld();
  world.addNode("n1", "a");
  world.create(policies, {
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "DeparturePolicy",
    metadata: { name: "spot" },
    spec: { lifetime: { max: "2h", reserve: "30m" } },
  });
  const dueAt = plus(dawn, hours(1.5));
  const sleepUntil = world.clock.sleepUntil.bind(world.clock);
  const early = minus(dueAt, millis(1));
  let count = 0;
  world.clock.sleepUntil = (until, signal) => {
    const isEarly = until === dueAt && world.clock.now() < early;
    if (isEarly) count += 1;
    return sleepUntil(isEarly ? early : until, signal);
  };
  const stop = new AbortController();
  const running = world.startController(stop.signal);
  await world.pass(minutes(95));
  stop.abort();
  await running;
  const status = world.departureOf("n1")?.status as { startedAt: string } | undefined;
  expect(count).toBeGreaterThan(0);
  expect((parseInstant(status?.startedAt ?? "") ?? 0) - dueAt).toBeLessThan(100);
});
