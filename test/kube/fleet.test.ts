import { expect, it } from "vitest";
import type { FleetChange } from "../../src/contracts/cluster.ts";
import { seededRng } from "../../src/core/chance/chance.ts";
import { seconds } from "../../src/core/time/time.ts";
import { KubeFleet } from "../../src/kube/fleet.ts";
import { departures, ModelWorld, nodes, policies, spotPolicy } from "../support/model-world.ts";

/** A fleet that watches the model. */
function watching() {
  const world = new ModelWorld();
  const { api, clock } = world;
  const fleet = new KubeFleet({
    ...{ api, clock, rng: seededRng(1), onError: () => {} },
    readPolicy: ({ metadata }) => ({ name: metadata?.name ?? "", problem: "not read here" }),
  });
  const stop = new AbortController();
  const running = fleet.run(stop.signal);
  const end = (): Promise<void> => {
    stop.abort();
    return running;
  };
  return { world, fleet, end };
}

it("A fleet finds a machine's node by the whole providerID or its last part, and by no other suffix", async () => {
  const { world, fleet, end } = watching();
  const labels = { "topology.kubernetes.io/zone": "eu-west-1a" };
  const providerID = "aws:///eu-west-1a/i-0abc";
  const node = { apiVersion: "v1", kind: "Node", metadata: { name: "n0", labels } };
  world.create(nodes, { ...node, spec: { providerID } });
  await world.pass(seconds(1));
  expect(fleet.nodesOf(providerID)).toMatchObject([{ name: "n0" }]);
  expect(fleet.nodesOf("i-0abc")).toMatchObject([{ name: "n0" }]);
  expect(fleet.nodesOf("0abc")).toEqual([]);
  expect(fleet.nodesOf("")).toEqual([]);
  world.api.handle({ method: "DELETE", path: `${nodes}/n0` });
  await world.pass(seconds(1));
  expect(fleet.nodesOf("i-0abc")).toEqual([]);
  await end();
});

it("A fleet knows the departures of a node, also those that have ended, until they are deleted", async () => {
  const { world, fleet, end } = watching();
  for (const name of ["n0", "n1"]) world.addNode(name, "a");
  world.notice("n0", seconds(60));
  await world.pass(seconds(1));
  const [uid = "", other = ""] = ["n0", "n1"].map(
    (name) => world.get(`${nodes}/${name}`)?.metadata?.uid,
  );
  const name = world.list(departures)[0]?.metadata?.name;
  expect(fleet.departuresOf(uid)).toMatchObject([{ name, status: { phase: "Scheduled" } }]);
  expect(fleet.departuresOf(other)).toEqual([]);
  expect(fleet.departureNamed(name ?? "")).toMatchObject({ node: { uid } });
  expect(fleet.departureNamed(`${name}-2`)).toBeUndefined();
  world.api.handle({
    ...{ method: "PATCH", path: `${departures}/${name}/status` },
    ...{ patchType: "application/merge-patch+json", body: { status: { phase: "Ended" } } },
  });
  await world.pass(seconds(1));
  expect(fleet.departuresOf(uid)).toMatchObject([{ name, status: { phase: "Ended" } }]);
  world.api.handle({ method: "DELETE", path: `${departures}/${name}` });
  await world.pass(seconds(1));
  expect(fleet.departuresOf(uid)).toEqual([]);
  expect(fleet.departureNamed(name ?? "")).toBeUndefined();
  await end();
});

it("A fleet reports which nodes and departures have changed, and whether a policy has", async () => {
  const { world, fleet, end } = watching();
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
  // A change that no decision depends on is not reported.
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
  await end();
});
