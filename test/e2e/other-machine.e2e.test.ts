import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Pod } from "kubernetes-types/core/v1.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ControlPlane, startControlPlane } from "../support/control-plane.ts";
import { writeKubeconfig } from "../support/control-plane-files.ts";
import { freePort } from "../support/free-port.ts";
import { createNodes, deleteNode } from "../support/kwok-fleet.ts";
import { type LastcallProcess, startAsPod } from "../support/lastcall-process.ts";
import { type Relay, type RelayCall, startRelay } from "../support/relay.ts";
import { mustRun } from "./must-run.ts";
import { untilAlive } from "./until-alive.ts";

const deploy = join(import.meta.dirname, "..", "..", "deploy");
const departurePath = "/apis/lastcall.dev/v1alpha1/departures/leaving-by-hand";
const podsPath = "/api/v1/namespaces/default/pods";

let plane: ControlPlane;
let relay: Relay;
let folder: string;
let isStalled = false;
const calls: RelayCall[] = [];
const processes = new Set<LastcallProcess>();

beforeAll(async () => {
  plane = await startControlPlane();
  folder = mkdtempSync(join(tmpdir(), "lastcall-other-machine-"));
  await mustRun(plane, ["apply", "-k", join(deploy, "crds")]);
  for (const file of ["namespace.yaml", "rbac.yaml"]) {
    await mustRun(plane, ["apply", "-f", join(deploy, "base", file)]);
  }
  await createNodes(plane, [{ name: "leaving" }, { name: "preempted" }]);
  await leaveFailedPod();
  const items = [...heldWorkload(), policy];
  const list = JSON.stringify({ apiVersion: "v1", kind: "List", items });
  await until("all of it is there, and the budget knows its pods", async () => {
    const { code } = await plane.kubectl(["apply", "-f", "-"], { input: list });
    return code === 0 && (await isSettled());
  });
  relay = await startRelay({
    target: plane.url,
    ca: () => readFileSync(plane.caFile, "utf8"),
    before: (call) => {
      calls.push(call);
      return Promise.resolve("Pass");
    },
    withholds: ({ path }) => isStalled && /\/(nodes|departures)\?.*watch=1/.test(path),
  });
  await startController();
});

afterAll(async () => {
  await Promise.all([...processes].map((one) => one.kill()));
  await relay?.close();
  await plane?.stop();
  rmSync(folder, { recursive: true, force: true });
});

describe("a node that is replaced by another of its name during its drain, while watches stall", () => {
  test("is not drained further: no pod of the new machine is evicted", async () => {
    await depart();
    await until("its pods are held by their budget", async () => {
      const { status } = await departureNow();
      return status?.phase === "Draining" && status.drain?.blocked === 2;
    });
    isStalled = true;
    await replaceMachine();
    await mustRun(plane, ["apply", "-f", "-"], newcomers);
    await until("the departure has ended", async () => {
      const { status } = await departureNow();
      return status?.phase === "Ended";
    });
    // No cloud answers here, so that nobody knows what became of the old machine.
    expect((await departureNow()).status).toMatchObject({
      ...{ reason: "WrongMachine", outcome: "Cancelled" },
    });
    const pods = await until("the newcomers run", async () => {
      const found = await podsOf("newcomer");
      return found.length === 3 && found.every(isRunning) && found;
    });
    expect(pods.map(({ metadata }) => metadata?.deletionTimestamp)).toEqual(
      Array(3).fill(undefined),
    );
    const asked = calls.filter(({ method, path }) => method !== "GET" && path.includes("newcomer"));
    expect(asked).toEqual([]);
  });

  test("is not cordoned, because its uid is different", async () => {
    const { body } = await plane.request({ path: "/api/v1/nodes/leaving" });
    expect(body.spec.unschedulable).toBeUndefined();
  });
});

describe("a failed pod of a machine that was replaced by another of its name", () => {
  test("is deleted, and the running pod of the new machine is not", async () => {
    const remaining = await until("the failed pod is gone", async () => {
      const found = await podsOf("left");
      return found.every(({ status }) => status?.phase !== "Failed") && found;
    });
    expect(remaining.map(({ spec }) => spec?.nodeName)).toEqual(["preempted"]);
    const removed = calls.filter(({ method, path }) => method === "DELETE" && /\/left-/.test(path));
    expect(removed).toHaveLength(1);
  });
});

const policy = {
  apiVersion: "lastcall.dev/v1alpha1",
  kind: "DeparturePolicy",
  metadata: { name: "spot" },
  spec: { drain: { timeout: "5m", onTimeout: "Wait" }, instance: { release: "None" } },
};

function deployment(name: string, replicas: number, place: object = {}): object {
  const containers = [{ name, image: `registry.example/${name}:1` }];
  const template = { metadata: { labels: { app: name } }, spec: { containers, ...place } };
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name },
    spec: { replicas, selector: { matchLabels: { app: name } }, template },
  };
}

const onLeaving = { nodeName: "leaving" };
const newcomers = deployment("newcomer", 3, onLeaving);

function heldWorkload(): readonly object[] {
  const budget = {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: { name: "held" },
    spec: { minAvailable: 2, selector: { matchLabels: { app: "held" } } },
  };
  return [deployment("held", 2, onLeaving), budget];
}

/**
 * Leaves a pod as the kubelet of a preempted machine does, and a new machine of the group with the
 * same name. The ReplicaSet has replaced the pod by then, and Kubernetes collects only orphans.
 */
async function leaveFailedPod(): Promise<void> {
  const pinned = deployment("left", 1, { nodeName: "preempted" });
  await mustRun(plane, ["apply", "-f", "-"], pinned);
  const runs = async () =>
    (await podsOf("left")).find(({ status }) => status?.phase === "Running")?.metadata?.name;
  const name = await until("the pod runs", runs);
  const status = { phase: "Failed", reason: "Terminated", message: "imminent node shutdown" };
  const { status: code } = await plane.request({
    ...{ method: "PATCH", path: `${podsPath}/${name}/status`, body: { status } },
    contentType: "application/merge-patch+json",
  });
  expect(code).toBe(200);
  await until("its ReplicaSet has replaced it", runs);
  const { body } = await plane.request({ path: `${podsPath}/${name}` });
  const startedMs = Date.parse(body.status.startTime);
  // Times in the API are in whole seconds.
  await until("a second has passed", async () => Date.now() >= startedMs + 1000);
  await deleteNode(plane, "preempted");
  await createNodes(plane, [{ name: "preempted" }]);
}

async function isSettled(): Promise<boolean> {
  const { body } = await plane.request({
    path: "/apis/policy/v1/namespaces/default/poddisruptionbudgets/held",
  });
  const { status } = await plane.request({ path: "/apis/lastcall.dev/v1alpha1/departures" });
  return body.status?.currentHealthy === 2 && status === 200;
}

async function startController(): Promise<void> {
  const file = join(folder, "kubeconfig");
  const token = await plane.tokenFor("lastcall", "lastcall");
  writeKubeconfig({ file, url: relay.url, caFile: plane.caFile, token, user: "lastcall" });
  const address = async () => `127.0.0.1:${await freePort()}`;
  const flags = ["--health-address", await address(), "--metrics-address", await address()];
  processes.add(startAsPod(["run", "--kubeconfig", file, ...flags], { folder }));
}

async function depart(): Promise<void> {
  const { body } = await plane.request({ path: "/api/v1/nodes/leaving" });
  const { uid } = body.metadata;
  await mustRun(plane, ["apply", "-f", "-"], {
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "Departure",
    metadata: { name: "leaving-by-hand" },
    spec: {
      node: { name: "leaving", uid, providerID: body.spec.providerID },
      cause: "Manual",
      policy: "spot",
    },
  });
}

async function departureNow() {
  return (await plane.request({ path: departurePath })).body;
}

/**
 * Removes the machine and its pods, and creates another with the same name and providerID.
 */
async function replaceMachine(): Promise<void> {
  await deleteNode(plane, "leaving");
  for (const { metadata } of await podsOf("held")) {
    const path = `${podsPath}/${metadata?.name}`;
    await plane.request({ method: "DELETE", path, body: { gracePeriodSeconds: 0 } });
  }
  await createNodes(plane, [{ name: "leaving" }]);
}

async function podsOf(app: string): Promise<readonly Pod[]> {
  return (await plane.request({ path: `${podsPath}?labelSelector=app%3D${app}` })).body.items;
}

function isRunning({ spec, status }: Pod): boolean {
  return spec?.nodeName === "leaving" && status?.phase === "Running";
}

function until<T>(what: string, holds: () => Promise<T | false | undefined>): Promise<T> {
  return untilAlive(holds, { what, timeoutMs: 60_000 }, { plane, processes });
}
