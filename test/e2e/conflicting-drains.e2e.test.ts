import { afterAll, beforeAll, expect, test } from "vitest";
import { FleetWorld } from "./fleet-world.ts";
import { isReady, type RawDeparture } from "./history.ts";
import { mustRun } from "./must-run.ts";

const leaving = ["spot-1", "spot-2"];
const apps = ["left", "right"];
const departuresPath = "/apis/lastcall.dev/v1alpha1/departures";

let world: FleetWorld;

beforeAll(async () => {
  world = await FleetWorld.start();
  const items = apps.flatMap(entangled);
  await mustRun(world.plane, ["apply", "-f", "-"], { apiVersion: "v1", kind: "List", items });
  await world.until("a pod of each runs on each of the two nodes", async () => {
    const path = `/api/v1/namespaces/default/pods?labelSelector=app+in+(${apps.join()})`;
    const { body } = await world.plane.request({ path });
    return body.items.length === 4 && body.items.every(isReady);
  });
  await world.applyPolicy({ lifetime: {}, budgets: [{ nodes: 3 }], drain: { onTimeout: "Wait" } });
  await world.startController(await world.controllerKubeconfig());
});

afterAll(() => world?.stop());

/** Two pods, one on each of the nodes, of which one may be away, and which take their time. */
function entangled(app: string): readonly object[] {
  const labels = { app };
  const annotations = { "e2e.lastcall.dev/exit-after": "15s" };
  const topologyKey = "kubernetes.io/hostname";
  const preference = {
    matchExpressions: [{ key: topologyKey, operator: "In", values: leaving }],
  };
  const affinity = {
    nodeAffinity: {
      preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 100, preference }],
    },
    podAntiAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: [
        { labelSelector: { matchLabels: labels }, topologyKey },
      ],
    },
  };
  const containers = [{ name: "main", image: "registry.example/main:1" }];
  const template = {
    metadata: { labels, annotations },
    spec: { affinity, containers, terminationGracePeriodSeconds: 60 },
  };
  const metadata = { name: app };
  const selector = { matchLabels: labels };
  return [
    {
      ...{ apiVersion: "apps/v1", kind: "Deployment", metadata },
      spec: { replicas: 2, selector, template },
    },
    {
      ...{ apiVersion: "policy/v1", kind: "PodDisruptionBudget", metadata },
      spec: { maxUnavailable: 1, selector },
    },
  ];
}

async function depart(name: string): Promise<void> {
  const { body: node } = await world.plane.request({ path: `/api/v1/nodes/${name}` });
  const { uid } = node.metadata;
  const { status } = await world.plane.request({
    method: "POST",
    path: departuresPath,
    body: {
      ...{ apiVersion: "lastcall.dev/v1alpha1", kind: "Departure" },
      metadata: { name: `${name}-${uid.slice(0, 8)}` },
      spec: {
        node: { name, uid, providerID: node.spec.providerID },
        ...{ cause: "Manual", policy: "spot" },
      },
    },
  });
  expect(status).toBe(201);
}

interface Course {
  readonly startedAt: string;
  readonly timeline: readonly { readonly at: string; readonly step: string }[];
}

async function statusOf(departure: RawDeparture | undefined): Promise<Course> {
  const path = `${departuresPath}/${departure?.metadata?.name}`;
  return (await world.plane.request({ path })).body.status;
}

test("two drains that could block each other run one after the other", async () => {
  await Promise.all(leaving.map(depart));
  const held = await world.until("one departure waits for the other drain", async () => {
    const departures = await world.departures();
    return departures.find(({ status }) => status?.reason === "ConflictWait") ?? false;
  });
  expect(held.status).toMatchObject({ phase: "Held" });
  const name = held.spec?.node?.name ?? "";
  const { body: node } = await world.plane.request({ path: `/api/v1/nodes/${name}` });
  expect(node.spec.unschedulable).toBeUndefined();
  const ended = await world.until("both have ended", async () => {
    const departures = await world.departures();
    return departures.every(({ status }) => status?.phase === "Ended") && departures;
  });
  expect(ended.map(({ status }) => status?.outcome)).toEqual(["Planned", "Planned"]);
  const other = ended.find(({ metadata }) => metadata?.name !== held.metadata?.name);
  const [first, second] = [await statusOf(other), await statusOf(held)];
  const drained = first.timeline.find(({ step }) => step === "Releasing")?.at ?? "";
  expect(Date.parse(second.startedAt)).toBeGreaterThanOrEqual(Date.parse(drained));
  expect(await world.brokenRules()).toEqual([]);
});
