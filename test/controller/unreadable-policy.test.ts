import { expect, it } from "vitest";
import type { KubeObject } from "../../src/contracts/kube-api.ts";
import { hours, minutes } from "../../src/core/time/time.ts";
import { departures, ModelWorld, nodes, policies } from "../support/model-world.ts";

function policy(world: ModelWorld, name: string, spec: object): void {
  world.create(policies, {
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "DeparturePolicy",
    metadata: { name },
    spec: { lifetime: { max: "4h", reserve: "30m" }, ...spec },
  });
}

const inZone = (zone: string) => ({
  nodeSelectorTerms: [
    { matchExpressions: [{ key: "topology.kubernetes.io/zone", operator: "In", values: [zone] }] },
  ],
});
const local = [{ timeZone: "Local", start: "22:00", end: "06:00" }];

function conditionOf(world: ModelWorld, name: string, type: string) {
  const { status } = world.get(`${policies}/${name}`) as { status?: { conditions?: object[] } };
  return status?.conditions?.find((one) => (one as { type: string }).type === type);
}

const policiesOf = (world: ModelWorld) =>
  world.list(departures).map(({ spec }: KubeObject) => (spec as { policy?: string }).policy);

it("an unreadable policy stops only its own nodes, and is reported in status, Event and log", async () => {
  const world = new ModelWorld();
  for (const [name, zone] of [
    ["a1", "a"],
    ["a2", "a"],
    ["b1", "b"],
  ] as const) {
    world.addNode(name, zone);
  }
  policy(world, "spot", {});
  policy(world, "odd", { weight: 1, nodeSelector: inZone("a"), windows: local });
  const stop = new AbortController();
  const running = world.startController(stop.signal);
  await world.pass(hours(3.6));

  expect(world.steps.filter((step) => step.startsWith("cordon"))).toEqual(["cordon b1"]);
  expect(conditionOf(world, "odd", "Ready")).toMatchObject({
    status: "False",
    message:
      'spec.windows[0].timeZone: found "Local", expected an IANA time zone such as Asia/Tokyo',
  });
  expect(conditionOf(world, "spot", "Ready")).toMatchObject({ status: "True" });
  expect(conditionOf(world, "spot", "Feasible")).toMatchObject({
    status: "False",
    reason: "PolicyInvalid",
  });
  const told = world.events.filter(({ reason }) => reason === "PolicyInvalid");
  expect(told).toMatchObject([
    { type: "Warning", about: { kind: "DeparturePolicy", name: "odd" } },
  ]);
  expect(world.logged.filter((line) => line.includes("policy-invalid"))).toHaveLength(1);

  // Once the policy can be read, its nodes are planned under it.
  const patch = { spec: { windows: null } };
  const patchType = "application/merge-patch+json";
  world.api.handle({ method: "PATCH", path: `${policies}/odd`, patchType, body: patch });
  await world.pass(minutes(1));
  expect(conditionOf(world, "odd", "Ready")).toMatchObject({ status: "True" });
  expect(new Set(policiesOf(world))).toEqual(new Set(["odd", "spot"]));
  stop.abort();
  await running;
});

it.each([
  ["names no policy", undefined],
  ["names that policy", "odd"],
])(
  "a request that %s waits until the policy that might own its node can be read",
  async (_, named) => {
    const world = new ModelWorld();
    for (const name of ["a1", "b1"]) world.addNode(name, name.charAt(0));
    policy(world, "spot", {});
    const release = { instance: { release: "None" } };
    policy(world, "odd", { weight: 1, nodeSelector: inZone("a"), windows: local, ...release });
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    await world.pass(minutes(1));
    const uid = world.get(`${nodes}/a1`)?.metadata?.uid ?? "";
    world.create(departures, {
      apiVersion: "lastcall.dev/v1alpha1",
      kind: "Departure",
      metadata: { name: "a1-asked" },
      spec: { node: { name: "a1", uid }, cause: "Manual", source: "person", policy: named },
    });
    await world.pass(minutes(2));
    expect(world.stepsOf("a1")).toEqual([]);
    expect(world.statusOf("a1")).toMatchObject({ phase: "Held", reason: "PolicyInvalid" });

    world.api.handle({
      method: "PATCH",
      path: `${policies}/odd`,
      patchType: "application/merge-patch+json",
      body: { spec: { windows: null } },
    });
    await world.pass(minutes(1));
    stop.abort();
    await running;
    expect(world.stepsOf("a1")).toContain("cordon");
    expect(world.released).toEqual([]);
  },
);

it("planned departures move to a policy with a higher weight, even if it is paused", async () => {
  const world = new ModelWorld();
  for (const name of ["a1", "b1"]) world.addNode(name, name.charAt(0));
  policy(world, "spot", {});
  const stop = new AbortController();
  const running = world.startController(stop.signal);
  await world.pass(minutes(5));
  expect(policiesOf(world)).toEqual(["spot", "spot"]);
  policy(world, "heavy", { weight: 1, nodeSelector: inZone("a"), paused: true });
  await world.pass(minutes(1));
  expect(policiesOf(world).toSorted()).toEqual(["heavy", "spot"]);
  const statusOf = (name: string) => (world.get(`${policies}/${name}`) as KubeObject).status;
  expect(statusOf("spot")).toMatchObject({ matchedNodes: 1, departures: { scheduled: 1 } });
  expect(statusOf("heavy")).toMatchObject({
    ...{ paused: true, matchedNodes: 1, departures: { scheduled: 1 } },
  });
  expect(conditionOf(world, "heavy", "Feasible")).toMatchObject({ status: "Unknown" });
  expect(world.statusOf("a1")).toMatchObject({
    message: "a1 waits, because policy heavy is paused.",
  });
  stop.abort();
  await running;
});
