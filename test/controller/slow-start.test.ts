import { expect, it } from "vitest";
import { minutes, seconds } from "../../src/core/time/time.ts";
import { departures, ModelWorld, policies, webWorkload } from "../support/model-world.ts";

/** A policy for the nodes of a zone, with one budget for the whole cluster. */
function zonePolicy(world: ModelWorld, zone: string, max: string): void {
  const term = { key: "topology.kubernetes.io/zone", operator: "In", values: [zone] };
  world.create(policies, {
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "DeparturePolicy",
    metadata: { name: `in-${zone}` },
    spec: {
      nodeSelector: { nodeSelectorTerms: [{ matchExpressions: [term] }] },
      lifetime: { max, reserve: "30m" },
      budgets: [{ nodes: 1, scope: "Cluster" }],
    },
  });
}

function hold(world: ModelWorld, node: string, isHeld: boolean): void {
  const path = `${departures}/${world.departureOf(node)?.metadata?.name}`;
  const patchType = "application/merge-patch+json";
  world.api.handle({ method: "PATCH", path, patchType, body: { spec: { hold: isHeld } } });
}

it("a start that is being written counts in the budgets of the following passes", async () => {
  const world = new ModelWorld();
  for (const [name, zone] of ["a1", "b1", "b2"].map((name) => [name, name[0]] as const)) {
    world.addNode(name, zone as string);
  }
  webWorkload(world, { replicas: 6, maxUnavailable: 6, exitAfterSeconds: 120 });
  // b1 leaves at 01:15 and b2 at 01:30; a1 at 01:20.
  zonePolicy(world, "a", "1h50m");
  zonePolicy(world, "b", "2h");
  // A server that takes twenty seconds to answer the write of a start.
  const begun: string[] = [];
  const send = world.api.send.bind(world.api);
  world.api.send = async (request) => {
    const isStatus = request.path.endsWith("/status");
    if (isStatus && JSON.stringify(request.bodyAtTurn?.()).includes('"phase":"Preparing"')) {
      begun.push(request.path.split("/").at(-2)?.slice(0, 2) ?? "");
      await world.clock.sleep(seconds(20));
    }
    return send(request);
  };
  const stop = new AbortController();
  const running = world.startController(stop.signal);
  await world.pass(minutes(1));
  hold(world, "b1", true);
  await world.pass(minutes(79));
  // The start of a1 is being written when a person releases b1, which was due earlier.
  await world.pass(seconds(5));
  expect(begun).toEqual(["a1"]);
  hold(world, "b1", false);
  await world.pass(seconds(10));
  expect(world.steps).toEqual([]);
  expect(begun).toEqual(["a1"]);
  await world.pass(minutes(4));
  stop.abort();
  await running;
  expect(world.steps.filter((step) => step.startsWith("cordon"))).toEqual([
    "cordon a1",
    "cordon b1",
  ]);
});
