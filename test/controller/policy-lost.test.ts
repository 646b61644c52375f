/** A departure under way whose policy is gone, or cannot be read any more, for the next leader. */
import { expect, it } from "vitest";
import { minutes, seconds } from "../../src/core/time/time.ts";
import { ModelWorld, policies, spotPolicy, webWorkload } from "../support/model-world.ts";
import { depart } from "./capacity-story.ts";

/** n0 drains slowly under `spot` when the leader dies; then `change` happens to the policy. */
async function orphaned(change: (world: ModelWorld) => void) {
  const world = new ModelWorld();
  for (const name of ["n0", "n1", "n2"]) world.addNode(name, name);
  webWorkload(world, { replicas: 6, maxUnavailable: 0, exitAfterSeconds: 30 });
  const drain = { timeout: "2h" };
  spotPolicy(world, { lifetime: {}, drain });
  // It would select the node as well, and release its machine sooner.
  spotPolicy(
    world,
    { weight: -1, lifetime: {}, drain: { timeout: "1m", onTimeout: "Proceed" } },
    "b",
  );
  const first = new AbortController();
  const running = world.startController(first.signal);
  await world.pass(seconds(10));
  depart(world, "n0");
  await world.passUntil(() => world.statusOf("n0").phase === "Draining", minutes(1));
  await world.pass(minutes(2));
  first.abort();
  await running;
  change(world);
  const second = new AbortController();
  const next = world.startController(second.signal);
  await world.pass(minutes(2));
  second.abort();
  await next;
  return world;
}

const unreadable = { spec: { windows: [{ timeZone: "Local", start: "22:00", end: "06:00" }] } };

it("a node whose policy can no longer be read is given back by the next leader", async () => {
  const world = await orphaned((one) => one.patchPolicy(unreadable));
  const reason = "PolicyInvalid";
  expect(world.statusOf("n0")).toMatchObject({ phase: "Ended", outcome: "RolledBack", reason });
  expect(world.marksOf("n0")).toEqual([]);
  expect(world.released).toEqual([]);
  const told = world.events.filter(({ about }) => about.kind === "Node" && about.name === "n0");
  expect(told.map(({ message }) => message).join("\n")).toContain("spec.windows[0].timeZone");
  const ended = "lastcall_departures_total policy=spot cause=Manual outcome=RolledBack";
  expect(world.counted).toContain(ended);
});

it("a node whose policy is deleted and written again is drained on by it", async () => {
  const world = await orphaned((one) => {
    one.api.handle({ method: "DELETE", path: `${policies}/spot` });
    spotPolicy(one, { lifetime: {}, drain: { timeout: "2h" } });
  });
  expect(world.statusOf("n0").phase).toBe("Draining");
});
