/** A watch of Departures that stands still: the controller goes by what it has written itself. */
import { expect, it } from "vitest";
import type { KubeWatchRequest } from "../../src/contracts/kube-api.ts";
import { minutes, parseInstant, plus, seconds } from "../../src/core/time/time.ts";
import { departures, ModelWorld, nodes, spotPolicy, webWorkload } from "../support/model-world.ts";

it("a departure that was held meanwhile starts in time, with as few writes as any", async () => {
  const world = new ModelWorld();
  for (const name of ["n1", "n2"]) world.addNode(name, "a");
  webWorkload(world, { replicas: 2, maxUnavailable: 1 });
  spotPolicy(world, { lifetime: { max: "4h", reserve: "1h" }, spacing: { mode: "Late" } });
  const watch = world.watched.watch.bind(world.watched);
  let isStalled = false;
  world.watched.watch = async function* (request: KubeWatchRequest) {
    for await (const event of watch(request)) {
      if (request.path !== departures || !isStalled) yield event;
    }
  };
  const over = new AbortController();
  const controller = world.startController(over.signal);
  await world.pass(seconds(30));
  const { metadata, spec } = world.departureOf("n1") ?? {};
  const path = `${departures}/${metadata?.name}`;
  const { departAt } = spec as { readonly departAt: string };
  const dueAt = parseInstant(departAt) ?? world.clock.now();
  // Not for so long that nothing may start by what it shows.
  await world.clock.runUntil(plus(dueAt, minutes(-2)));
  isStalled = true;
  const hold = (value: string | null) =>
    world.api.handle({
      ...{ method: "PATCH", path: `${nodes}/n1`, patchType: "application/merge-patch+json" },
      body: { metadata: { annotations: { "lastcall.dev/hold": value } } },
    });
  const phase = () => (world.get(path)?.status as { readonly phase?: string } | undefined)?.phase;
  hold("true");
  await world.passUntil(() => phase() === "Held", minutes(1));
  hold(null);
  await world.clock.runUntil(plus(dueAt, seconds(5)));
  expect(phase()).not.toBe("Held");
  await world.passUntil(() => phase() === "Ended", minutes(10));
  await world.pass(minutes(10));
  expect(world.writes.filter((write) => write.includes(path)).length).toBeLessThan(30);
  over.abort();
  await controller;
});
