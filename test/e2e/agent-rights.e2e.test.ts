/**
 * What a stolen agent token can do on a real API server: every verb and subresource, for its own
 * node and for another one, with each variant of the agent.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { departureName } from "../../src/core/departure/departure.ts";
import { waitUntil } from "../support/wait-until.ts";
import { type Probe, probesOfCluster, probesOfNode } from "./agent-probes.ts";
import { AgentWorld, departures, deploy, other, own } from "./agent-world.ts";
import { mustRun } from "./must-run.ts";

let world: AgentWorld;
/** Of the pods that the probes access, by the name of their node. */
const podUids = new Map<string, string>();

beforeAll(async () => {
  world = await AgentWorld.start();
  await makeProbed();
});
afterAll(() => world?.plane.stop());

/** Creates the objects that the probes access. */
async function makeProbed(): Promise<void> {
  const planned = { cause: "Planned", source: "planner", noticedAt: undefined };
  for (const node of [own, other]) {
    const name = departureName(world.identity(node));
    await world.make(departures, world.departure(node, { name, spec: planned }));
    const spec = {
      nodeName: node,
      containers: [{ name: "main", image: "registry.example/main:1" }],
    };
    const metadata = { name: `web-${node}` };
    const pod = await world.make("/api/v1/namespaces/default/pods", {
      apiVersion: "v1",
      kind: "Pod",
      metadata,
      spec,
    });
    podUids.set(node, pod.body.metadata.uid);
  }
  const ours = "/api/v1/namespaces/lastcall";
  const metadata = { name: "probed" };
  await world.make(`${ours}/secrets`, { apiVersion: "v1", kind: "Secret", metadata });
  await world.make("/apis/lastcall.dev/v1alpha1/departurepolicies", {
    ...{ apiVersion: "lastcall.dev/v1alpha1", kind: "DeparturePolicy", metadata, spec: {} },
  });
  await world.make("/apis/coordination.k8s.io/v1/namespaces/lastcall/leases", {
    ...{ apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { name: "lastcall" } },
  });
}

function probesAbout(node: string): readonly Probe[] {
  return probesOfNode({
    name: node,
    departure: departureName(world.identity(node)),
    newDeparture: world.departure(node),
    pod: { name: `web-${node}`, uid: podUids.get(node) ?? "" },
  });
}

/** All probes; those about a node are prefixed with `own` or `other`. */
function allProbes(): readonly Probe[] {
  return [
    ...probesAbout(own).map((probe) => ({ ...probe, what: `own: ${probe.what}` })),
    ...probesAbout(other).map((probe) => ({ ...probe, what: `other: ${probe.what}` })),
    ...probesOfCluster(),
  ];
}

/** The probes that are not rejected with 403. */
async function allowed(token: string): Promise<readonly string[]> {
  const answers: string[] = [];
  for (const { what, call } of allProbes()) {
    const { status } = await world.plane.request({ ...call, token });
    if (status !== 403) answers.push(status < 300 ? what : `${what}: ${status}`);
  }
  return answers;
}

const always = [
  "own: create departures",
  "own: get departures",
  "own: patch departures",
  // Only the name, which is predictable, limits reads to a node.
  "other: get departures",
];
const ofCordon = [
  "own: get nodes",
  "own: patch nodes",
  "own: patch nodes/status",
  "other: get nodes",
  "get leases of controllers",
];
const ofDrain = [
  "own: list pods of the node",
  "own: delete pods",
  "own: create pods/eviction",
  "other: list pods of the node",
  "list pods of all nodes",
];

describe("a stolen agent token", () => {
  test("is tried with requests that are allowed for an administrator", async () => {
    const { resources } = (await world.plane.request({ path: "/api/v1" })).body;
    const served = new Set(resources.map(({ name }: { readonly name: string }) => name));
    const missed: string[] = [];
    for (const { what, call } of allProbes()) {
      // Kubernetes has this subresource from 1.33 on.
      if (what.endsWith("pods/resize") && !served.has("pods/resize")) continue;
      const { status } = await world.plane.request(call);
      // Anybody would be refused an unknown path or verb. Errors in a body do not matter: the
      // server checks permissions first.
      if ([401, 403, 404, 405, 415].includes(status)) missed.push(`${what}: ${status}`);
    }
    expect(missed).toEqual([]);
  });

  // Each variant is applied on top of the previous one.
  test.each([
    ["without a fallback", "agent", always],
    ["with the fallback Cordon", "agent-fallback/cordon", [...always, ...ofCordon]],
    ["with the fallback Drain", "agent-fallback/drain", [...always, ...ofCordon, ...ofDrain]],
  ])("%s allows exactly these requests", async (_, folder, wanted) => {
    await mustRun(world.plane, ["apply", "-k", `${deploy}/${folder}`]);
    let found: readonly string[] = [];
    const isInForce = async () => {
      // Another fallback means another pod, and the previous pod's token is no longer valid.
      await world.takeToken(own);
      found = (await allowed(world.tokenOf(own))).toSorted();
      return found.join() === wanted.toSorted().join();
    };
    // Permissions and policies take a moment to apply; a failure shows the last result.
    const how = { what: "rights are in force", timeoutMs: 30_000, signal: world.plane.signal };
    await waitUntil(isInForce, how).catch(() => expect(found).toEqual(wanted.toSorted()));
  });

  test("is limited by admission policies without type-checking warnings", async () => {
    const path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
    const checked = async () => {
      const { body } = await world.plane.request({ path });
      // The controller manager type-checks each policy a moment after it is created.
      const all = body.items.every((one: { status?: object }) => one.status !== undefined);
      return all
        ? (body.items as { metadata: object; status: { typeChecking?: object } }[])
        : false;
    };
    const how = { what: "policies are checked", timeoutMs: 30_000, signal: world.plane.signal };
    const found = await waitUntil(checked, how);
    expect(found).toHaveLength(5);
    for (const { metadata, status } of found) {
      expect({ metadata, warnings: status.typeChecking }).toEqual({ metadata, warnings: {} });
    }
  });

  test("can write nothing if it is not bound to a node", async () => {
    const token = await world.plane.tokenFor("lastcall", "lastcall-agent");
    const writes = allProbes().filter(({ call }) => call.method !== undefined);
    for (const { what, call } of writes) {
      expect({ what, status: (await world.plane.request({ ...call, token })).status }).toEqual({
        ...{ what, status: 403 },
      });
    }
  });
});
