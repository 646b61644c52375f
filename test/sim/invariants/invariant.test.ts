import { beforeEach, describe, expect, it } from "vitest";
import { crdOf } from "../../../src/config/schema/crd.ts";
import { resourceDefinitions } from "../../../src/config/schema/resource-definition.ts";
import type { ReleaseRequest } from "../../../src/contracts/cloud.ts";
import type { KubeApi, KubeRequest } from "../../../src/contracts/kube-api.ts";
import {
  formatInstant,
  hours,
  instant,
  minutes,
  plus,
  seconds,
} from "../../../src/core/time/time.ts";
import { eventLoopTurn } from "../../../src/runtime/real-clock.ts";
import { demoInvariants, startDemoWorld } from "../../../src/sim/demo/demo-world.ts";
import { InvariantMonitor } from "../../../src/sim/invariants/invariant.ts";
import type { ModelCluster } from "../../../src/sim/model-cluster.ts";
import { VirtualClock } from "../../../src/sim/time/virtual-clock.ts";
import { allClear } from "../../support/machine-releaser.ts";

const startAt = instant(Date.UTC(2026, 10, 20));
const departures = "/apis/lastcall.dev/v1alpha1/departures";
const leases = "/apis/coordination.k8s.io/v1/namespaces/lastcall/leases";
const merge = "application/merge-patch+json";

let clock: VirtualClock;
let cluster: ModelCluster;
let monitor: InvariantMonitor;
let api: KubeApi;

/** The demo's world without a controller: the test plays a bad one. */
beforeEach(async () => {
  clock = new VirtualClock({ startAt, settle: eventLoopTurn });
  const definitions = resourceDefinitions.map(crdOf);
  cluster = startDemoWorld({ clock, seed: 1, nodes: 6, definitions });
  await clock.advance(seconds(40));
  monitor = new InvariantMonitor({
    ...{ cluster, clock, seed: 1, run: 0 },
    invariants: demoInvariants(startAt),
  });
  api = monitor.api("us");
  await lead("us");
});

async function send(request: KubeRequest, expected = 300): Promise<void> {
  const answer = await api.send(request);
  if (answer.status >= expected) throw new Error(JSON.stringify(answer.body));
}

/** Puts a name into the Lease, as an election would. */
async function lead(holderIdentity: string): Promise<void> {
  const spec = {
    holderIdentity,
    leaseDurationSeconds: 4000,
    renewTime: formatInstant(clock.now()),
  };
  cluster.api.handle({ method: "DELETE", path: `${leases}/lastcall` });
  await send({ method: "POST", path: leases, body: { metadata: { name: "lastcall" }, spec } });
}

interface Node {
  readonly name: string;
  readonly uid: string;
  readonly providerID: string;
}

function node(index: number): Node {
  const found = cluster.api.context.store.collection("nodes").list()[index];
  if (found === undefined) throw new Error(`no node ${index}`);
  const { providerID } = found.spec as { providerID: string };
  return { name: found.metadata.name, uid: found.metadata.uid, providerID };
}

/** Creates a Departure in `phase`, with a deadline within the machine's life. */
async function depart(one: Node, how: { phase: string; departsAfterMinutes?: number }) {
  const name = `${one.name}-x`;
  const deadlineAt = formatInstant(plus(clock.now(), minutes(1)));
  const departAt = formatInstant(plus(clock.now(), minutes(how.departsAfterMinutes ?? 0)));
  const spec = { node: one, cause: "Planned", departAt, deadlineAt };
  const body = { apiVersion: "lastcall.dev/v1alpha1", kind: "Departure", metadata: { name }, spec };
  await send({ method: "POST", path: departures, body });
  await toPhase(one, { phase: how.phase });
  return name;
}

function toPhase(one: Node, status: object): Promise<void> {
  const path = `${departures}/${one.name}-x/status`;
  const body = { status: { reason: "Spaced", message: "it leaves.", ...status } };
  return send({ method: "PATCH", path, patchType: merge, body });
}

function cordon(one: Node): Promise<void> {
  const metadata = { annotations: { "lastcall.dev/departure": `${one.name}-x` } };
  const body = { metadata, spec: { unschedulable: true } };
  return send({ method: "PATCH", path: `/api/v1/nodes/${one.name}`, patchType: merge, body });
}

function podsOn(one: Node, app?: string): readonly string[] {
  return cluster.api.context.store
    .collection("pods")
    .onNode(one.name)
    .filter(({ metadata }) => metadata.namespace === "shop")
    .filter(({ metadata }) => app === undefined || metadata.labels?.app === app)
    .map(({ metadata }) => metadata.name);
}

const pods = "/api/v1/namespaces/shop/pods";

function evict(name: string): Promise<void> {
  return send({ method: "POST", path: `${pods}/${name}/eviction`, body: { metadata: { name } } });
}

async function release(one: Node): Promise<void> {
  const { store } = cluster.api.context;
  const departure = store.collection("departures.lastcall.dev").get("", `${one.name}-x`);
  const request: ReleaseRequest = {
    ...{ providerID: one.providerID, mode: "Recreate" },
    machineId: cluster.cloud.machine(one.name)?.id ?? "",
    requestId: departure?.metadata.uid ?? "",
    lastLook: allClear,
  };
  void monitor.releaser("us").release(request, new AbortController().signal);
  await clock.advance(seconds(1));
}

/** The names of the broken invariants, each once. */
function broken(): readonly string[] {
  return [...new Set(monitor.finish().map(({ invariant }) => invariant))];
}

describe("a correct run", () => {
  it("breaks no invariant", async () => {
    const one = node(0);
    await depart(one, { phase: "Preparing" });
    await cordon(one);
    await toPhase(one, { phase: "Draining" });
    for (const name of podsOn(one)) {
      // A budget may require the previous pod's successor first.
      await clock.advance(minutes(2));
      await evict(name);
    }
    await clock.advance(minutes(5));
    expect(podsOn(one)).toEqual([]);
    await release(one);
    await clock.advance(seconds(25));
    await toPhase(one, { phase: "Ended", outcome: "Planned" });
    expect(monitor.finish()).toEqual([]);
  });
});

it("removes placeholders, which hold no work, from any node", async () => {
  const labels = { "app.kubernetes.io/component": "placeholder" };
  const path = "/api/v1/namespaces/lastcall/pods";
  await depart(node(0), { phase: "Preparing" });
  await cordon(node(0));
  for (const index of [0, 1]) {
    const metadata = { name: `placeholder-${index}`, labels };
    const container = { name: "pause", image: "pause" };
    const spec = { nodeName: node(index).name, containers: [container] };
    await send({ method: "POST", path, body: { metadata, spec } });
    await send({ method: "DELETE", path: `${path}/${metadata.name}` });
  }
  expect(monitor.finish()).toEqual([]);
});

/** What a bad controller does, and the one invariant that this breaks. */
const misdeeds: readonly [invariant: string, what: string, misdeed: () => Promise<void>][] = [
  [
    "cordon-before-eviction",
    "evicts a pod from a node that is open to others",
    () => evict(podsOn(node(0), "web")[0] ?? ""),
  ],
  [
    "eviction-only",
    "deletes a pod past its budget in a planned departure",
    async () => {
      await depart(node(0), { phase: "Draining" });
      await cordon(node(0));
      await send({ method: "DELETE", path: `${pods}/${podsOn(node(0))[0]}` });
    },
  ],
  [
    "release-after-drain",
    "releases a machine with pods on it",
    async () => {
      await depart(node(0), { phase: "Releasing" });
      await cordon(node(0));
      await release(node(0));
    },
  ],
  [
    "right-machine",
    "releases a machine whose node was not marked for it",
    async () => {
      await depart(node(0), { phase: "Releasing" });
      const { store } = cluster.api.context;
      for (const pod of [...store.collection("pods").onNode(node(0).name)]) {
        if (pod.metadata.namespace === "shop") store.collection("pods").remove(pod);
      }
      await release(node(0));
    },
  ],
  [
    "cordon-has-departure",
    "leaves a node cordoned after its departure has ended",
    async () => {
      await depart(node(0), { phase: "Draining" });
      await cordon(node(0));
      await toPhase(node(0), { phase: "Ended", outcome: "Cancelled" });
      await clock.advance(minutes(3));
    },
  ],
  [
    "start-is-allowed",
    "lets a third node leave where two may be out",
    async () => {
      for (const index of [0, 1]) await cordon(node(index));
      for (const index of [0, 1]) await depart(node(index), { phase: "Draining" });
      await depart(node(2), { phase: "Preparing" });
    },
  ],
  [
    "start-is-allowed",
    "lets a node leave in the quiet hour",
    async () => {
      // Five hours after the start, by the policy.
      await clock.advance(hours(5));
      await lead("us");
      await depart(node(0), { phase: "Preparing" });
    },
  ],
  [
    "planned-in-time",
    "plans a departure past its deadline",
    async () => void (await depart(node(0), { phase: "Scheduled", departsAfterMinutes: 2 })),
  ],
  [
    "one-actor",
    "writes while another holds the lease",
    async () => {
      await lead("them");
      await send({
        method: "PATCH",
        path: `/api/v1/nodes/${node(0).name}`,
        patchType: merge,
        body: {},
      });
    },
  ],
  [
    "one-actor",
    "writes after its term is over",
    async () => {
      await clock.advance(seconds(4001));
      await send({
        method: "PATCH",
        path: `/api/v1/nodes/${node(0).name}`,
        patchType: merge,
        body: {},
      });
    },
  ],
  [
    "one-outcome",
    "ends a departure twice",
    async () => {
      await depart(node(0), { phase: "Ended" });
      await toPhase(node(0), { phase: "Ended", outcome: "Planned" });
      await toPhase(node(0), { phase: "Ended", outcome: "Failed" });
    },
  ],
  [
    "one-outcome",
    "forgets a departure that is under way",
    async () => {
      const name = await depart(node(0), { phase: "Draining" });
      await send({ method: "DELETE", path: `${departures}/${name}` });
    },
  ],
];

describe("a bad controller", () => {
  it.each(misdeeds)("breaks %s: it %s", async (invariant, _, misdeed) => {
    await misdeed();
    expect(broken()).toEqual([invariant]);
  });

  it("breaks budget-is-kept: its evictions leave too few pods, whatever the budget's status says", async () => {
    // checkout needs all but one of its three pods: two evictions at once are one too many. The
    // server would refuse the second, so its status is made to forget the first.
    const { store } = cluster.api.context;
    const budgets = store.collection("poddisruptionbudgets.policy");
    const names = store
      .collection("pods")
      .list("shop")
      .filter(({ metadata }) => metadata.labels?.app === "checkout")
      .map(({ metadata }) => metadata.name);
    for (let index = 0; index < 6; index += 1) await cordon(node(index));
    for (const name of names.slice(0, 2)) {
      const budget = budgets.get("shop", "checkout");
      if (budget === undefined) throw new Error("no budget");
      budgets.put({ ...budget, status: { ...(budget.status as object), disruptionsAllowed: 1 } });
      await evict(name);
    }
    expect(broken()).toContain("budget-is-kept");
  });
});
