import { expect, it } from "vitest";
import type { FleetChange } from "../../src/contracts/fleet.ts";
import { seededRng } from "../../src/core/rng.ts";
import { seconds } from "../../src/core/time.ts";
import { KubeFleet } from "../../src/kube/fleet.ts";
import { departures, ModelWorld, nodes, policies, spotPolicy } from "../support/model-world.ts";

it("A fleet tells which nodes and departures have changed, and whether a policy has", async () => {
  const world = new ModelWorld();
  const { api, clock } = world;
  const fleet = new KubeFleet({
    ...{ api, clock, rng: seededRng(1), onTrouble: () => {} },
    readPolicy: ({ metadata }) => ({ name: metadata?.name ?? "", problem: "not read here" }),
  });
  const stop = new AbortController();
  const running = fleet.run(stop.signal);
  await world.pass(seconds(1));
  const changes: FleetChange[] = [];
  fleet.onChange((change) => changes.push(change));
  const told = async (): Promise<readonly FleetChange[]> => {
    await world.pass(seconds(1));
    return changes.splice(0);
  };
  const nothing = { nodes: new Set(), departures: new Set(), policies: false };

  world.addNode("n0", "a");
  expect(await told()).toContainEqual({ ...nothing, nodes: new Set(["n0"]) });
  // What a kubelet reports again and again is no news.
  world.patchNode("n0", { metadata: { annotations: { "example.com/seen": "again" } } });
  expect(await told()).toEqual([]);

  spotPolicy(world, {});
  expect(await told()).toEqual([{ ...nothing, policies: true }]);

  world.notice("n0", seconds(60));
  const [made] = world.list(departures);
  expect(await told()).toEqual([{ ...nothing, departures: new Set([made?.metadata?.uid]) }]);

  world.api.handle({ method: "DELETE", path: `${departures}/${made?.metadata?.name}` });
  world.api.handle({ method: "DELETE", path: `${policies}/spot` });
  world.api.handle({ method: "DELETE", path: `${nodes}/n0` });
  const last = await told();
  expect(last.some((change) => change.departures.has(made?.metadata?.uid ?? ""))).toBe(true);
  expect(last.some((change) => change.policies)).toBe(true);
  expect(last.some((change) => change.nodes.has("n0"))).toBe(true);
  stop.abort();
  await running;
});
