import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { judgeCapacity, placeholderImages } from "./capacity-judge.ts";
import { FleetWorld } from "./fleet-world.ts";
import { isReady } from "./history.ts";
import { mustRun } from "./must-run.ts";

const leaving = "spot-1";
const departuresPath = "/apis/lastcall.dev/v1alpha1/departures";
let world: FleetWorld;

beforeAll(async () => {
  world = await FleetWorld.start();
  await mustRun(world.plane, ["apply", "-f", "-"], { apiVersion: "v1", kind: "List", items: disk });
  await world.until("the pod with the disk runs on the node", async () => {
    const path = "/api/v1/namespaces/default/pods?labelSelector=app%3Ddisk";
    const { body } = await world.plane.request({ path });
    return (
      body.items.length === 1 && body.items[0].spec.nodeName === leaving && isReady(body.items[0])
    );
  });
  await recordOld();
});

afterAll(() => world?.stop());

describe("a requested departure of one of nine nodes, with replacement BeforeDrain", () => {
  test("ends with the outcome Planned", async () => {
    const kubeconfig = await world.controllerKubeconfig();
    await world.startController(kubeconfig, ["--placeholder-image", "registry.example/pause:1"]);
    await world.applyPolicy({
      replacement: { when: "BeforeDrain", timeout: "2m", onTimeout: "RollBack" },
      drain: { timeout: "2m", onTimeout: "Wait" },
    });
    await depart();
    await world.until("its volume is waited for", async () => {
      const [departure] = await world.departures();
      return departure?.status?.reason === "VolumeWait";
    });
    await mustRun(world.plane, ["delete", "volumeattachment", "disk"]);
    const ended = await world.until("the departure has ended", async () => {
      const [departure] = await world.departures();
      return departure?.status?.phase === "Ended" && departure;
    });
    expect(ended.status?.outcome).toBe("Planned");
  });

  test("reserves all capacity before the first eviction, and frees it pod by pod", async () => {
    expect(judgeCapacity(await world.history(), leaving)).toEqual([]);
  });

  test("runs placeholders with the image given by --placeholder-image", async () => {
    expect(placeholderImages(await world.history())).toEqual(new Set(["registry.example/pause:1"]));
  });
});

describe("a departure that ended long ago", () => {
  test("is deleted", async () => {
    const names = (await world.departures()).map(({ metadata }) => metadata?.name);
    expect(names).not.toContain("zz-last-week");
  });
});

const zone = "europe-west1-b";
const metadata = { name: "disk", namespace: "default" };

/** A workload with a zonal volume, attached to the departing node, which the pod prefers. */
const disk = [
  {
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: { name: "disk" },
    spec: {
      ...{ accessModes: ["ReadWriteOnce"], capacity: { storage: "1Gi" }, storageClassName: "" },
      claimRef: metadata,
      local: { path: "/disk" },
      nodeAffinity: {
        required: { nodeSelectorTerms: [only("topology.kubernetes.io/zone", zone)] },
      },
    },
  },
  {
    ...{ apiVersion: "v1", kind: "PersistentVolumeClaim", metadata },
    spec: {
      ...{ accessModes: ["ReadWriteOnce"], storageClassName: "", volumeName: "disk" },
      resources: { requests: { storage: "1Gi" } },
    },
  },
  {
    ...{ apiVersion: "storage.k8s.io/v1", kind: "VolumeAttachment", metadata: { name: "disk" } },
    spec: {
      ...{ attacher: "disk.example.com", nodeName: leaving },
      source: { persistentVolumeName: "disk" },
    },
  },
  {
    ...{ apiVersion: "apps/v1", kind: "Deployment", metadata },
    spec: {
      replicas: 1,
      selector: { matchLabels: { app: "disk" } },
      template: {
        metadata: { labels: { app: "disk" } },
        spec: {
          affinity: {
            nodeAffinity: {
              preferredDuringSchedulingIgnoredDuringExecution: [
                { weight: 100, preference: only("kubernetes.io/hostname", leaving) },
              ],
            },
          },
          containers: [{ name: "disk", image: "registry.example/disk:1" }],
          volumes: [{ name: "disk", persistentVolumeClaim: { claimName: "disk" } }],
        },
      },
    },
  },
];

function only(key: string, value: string): object {
  return { matchExpressions: [{ key, operator: "In", values: [value] }] };
}

/** Creates a Departure that ended last week. */
async function recordOld(): Promise<void> {
  const name = "zz-last-week";
  const uid = "0b1f7a3e-7f0e-4c53-9c1a-5d1f6f2f8a11";
  await mustRun(world.plane, ["apply", "-f", "-"], {
    ...{ apiVersion: "lastcall.dev/v1alpha1", kind: "Departure", metadata: { name } },
    spec: { node: { name: "zz", uid }, cause: "Manual" },
  });
  const endedAt = new Date(Date.now() - 7 * 24 * 3600_000).toISOString().replace(/\.\d+/, "");
  const status = { phase: "Ended", outcome: "Planned", endedAt };
  const { status: code, body } = await world.plane.request({
    ...{ method: "PATCH", path: `${departuresPath}/${name}/status`, body: { status } },
    contentType: "application/merge-patch+json",
  });
  expect([code, body.message]).toEqual([200, undefined]);
}

async function depart(): Promise<void> {
  const node = world.nodes.find(({ metadata }) => metadata?.name === leaving);
  const { uid = "" } = node?.metadata ?? {};
  const { status, body } = await world.plane.request({
    method: "POST",
    path: departuresPath,
    body: {
      apiVersion: "lastcall.dev/v1alpha1",
      kind: "Departure",
      metadata: { name: `${leaving}-${uid.slice(0, 8)}` },
      spec: {
        node: { name: leaving, uid, providerID: node?.spec?.providerID },
        cause: "Manual",
        policy: "spot",
      },
    },
  });
  expect([status, body.message]).toEqual([201, undefined]);
}
