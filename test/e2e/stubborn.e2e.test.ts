import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Pod } from "kubernetes-types/core/v1.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ControlPlane, startControlPlane } from "../support/control-plane.ts";
import { freePort } from "../support/free-port.ts";
import { createNodes } from "../support/kwok-fleet.ts";
import { type LastcallProcess, startAsPod } from "../support/lastcall-process.ts";
import { waitUntil } from "../support/wait-until.ts";
import { mustRun } from "./must-run.ts";
import { Onlooker } from "./onlooker.ts";

const deploy = join(import.meta.dirname, "..", "..", "deploy");
const departurePath = "/apis/lastcall.dev/v1alpha1/departures/leaving-by-hand";
const noticeSeconds = 20;
const crashes = { "e2e.lastcall.dev/crash-loops": "true" };

interface App {
  readonly name: string;
  readonly graceSeconds: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly exitAfter?: string;
  /** The unhealthyPodEvictionPolicy of a budget that requires its only pod. */
  readonly unhealthy?: "AlwaysAllow" | "IfHealthyBudget";
  /** Bound to its node without the scheduler, also the replacement after an eviction. */
  readonly nodeName?: "leaving";
}

/** Workloads whose pods do not leave a node as they should. */
const apps: readonly App[] = [
  { name: "slow", graceSeconds: 30, exitAfter: "6s" },
  { name: "deaf", graceSeconds: 4, labels: { "e2e.lastcall.dev/ignores-sigterm": "true" } },
  { name: "crash", graceSeconds: 30, labels: crashes },
  { name: "crash-free", graceSeconds: 30, labels: crashes, unhealthy: "AlwaysAllow" },
  { name: "crash-held", graceSeconds: 5, labels: crashes, unhealthy: "IfHealthyBudget" },
  { name: "pinned", graceSeconds: 2, nodeName: "leaving" },
];

interface Drain {
  readonly blocked: number;
  readonly left: number;
}

let plane: ControlPlane;
let folder: string;
let controller: LastcallProcess;
let onlooker: Onlooker;

beforeAll(async () => {
  plane = await startControlPlane();
  folder = mkdtempSync(join(tmpdir(), "lastcall-stubborn-"));
  await mustRun(plane, ["apply", "-k", join(deploy, "crds")]);
  for (const file of ["namespace.yaml", "rbac.yaml"]) {
    await mustRun(plane, ["apply", "-f", join(deploy, "base", file)]);
  }
  await createNodes(plane, [{ name: "leaving" }]);
  await mustRun(plane, ["apply", "-f", "-"], {
    apiVersion: "v1",
    kind: "List",
    items: apps.flatMap(objectsOf),
  });
  await until("all of it is as it is meant to be", isSettled);
  await createNodes(plane, [{ name: "other" }]);
  await until("the policy is there and departures can be listed", isPolicyApplied);
  onlooker = new Onlooker(plane);
  await onlooker.start();
  controller = await startController();
});

afterAll(async () => {
  await controller?.kill();
  await onlooker?.stop();
  await plane?.stop();
  rmSync(folder, { recursive: true, force: true });
});

describe("a node with a slow, a deaf, three crash-looping pods and one that comes back", () => {
  let deadlineAt: number;

  test("loses all pods but one that its budget blocks, which is named", async () => {
    await depart();
    const departure = await until("one is left", async () => {
      const { status } = await departureNow();
      return isHeld(status.drain) && status;
    });
    expect(departure.message).toContain("crash-held");
    expect((await podsOn("leaving")).map(appOf).toSorted()).toEqual(["crash-held", "pinned"]);
  });

  test("loses that one as well before the deadline of a notice", async () => {
    deadlineAt = Date.now() + noticeSeconds * 1000;
    const spec = {
      cause: "SpotInterruption",
      noticedAt: new Date().toISOString(),
      deadlineAt: new Date(deadlineAt).toISOString(),
    };
    const patch = JSON.stringify({ spec });
    await mustRun(plane, [
      "patch",
      "departures.lastcall.dev",
      "leaving-by-hand",
      "--type=merge",
      "-p",
      patch,
    ]);
    await until("only what was put back is left", async () =>
      (await podsOn("leaving")).every((pod) => appOf(pod) === "pinned"),
    );
    expect(Date.now()).toBeLessThan(deadlineAt);
  });

  test("is drained by evictions, with each pod's own grace, except for the last pod", async () => {
    const seen = partings();
    for (const { name, graceSeconds } of apps) {
      const pod = seen.get(name);
      expect({ name, grace: pod?.metadata?.deletionGracePeriodSeconds }).toEqual({
        name,
        grace: graceSeconds,
      });
      expect({ name, evicted: wasEvicted(pod) }).toEqual({ name, evicted: name !== "crash-held" });
    }
  });

  test("has its last pod deleted as late as its grace and the margin allow", async () => {
    const { deletionTimestamp = "", deletionGracePeriodSeconds = 0 } =
      partings().get("crash-held")?.metadata ?? {};
    const deletedAt = Date.parse(deletionTimestamp) - deletionGracePeriodSeconds * 1000;
    const leftMs = deadlineAt - deletedAt;
    // 5 s of grace and 2 s of margin; a deletionTimestamp is in whole seconds.
    expect(leftMs).toBeGreaterThan(6_000);
    expect(leftMs).toBeLessThanOrEqual(8_000);
  });

  test("counts how each pod ended, and names those that were killed or came back", async () => {
    const status = await until("the drain is over", async () => {
      const { status } = await departureNow();
      return status.phase === "Releasing" && status;
    });
    const deaf = partings().get("deaf")?.metadata?.name;
    const [pinned] = await podsOn("leaving");
    expect(status.drain).toMatchObject({
      ...{ total: 6, left: 0, evicted: 5, forced: 1, cut: 0 },
      ...{ cleanExit: 5, killed: 1, leftBehind: 1 },
      notClean: [
        { namespace: "default", name: deaf, outcome: "Killed" },
        { namespace: "default", name: pinned?.metadata?.name, outcome: "LeftBehind" },
      ],
    });
  });

  test("has the pod that comes back evicted only once", async () => {
    const leaving = onlooker
      .changes()
      .filter(({ kind, object }) => kind === "Pod" && appOf(object as Pod) === "pinned")
      .filter(({ object }) => object.metadata?.deletionTimestamp !== undefined);
    expect(new Set(leaving.map(({ object }) => object.metadata?.uid)).size).toBe(1);
    expect((await podsOn("leaving")).map(appOf)).toEqual(["pinned"]);
  });
});

describe("a pod whose evictions a webhook fails that does not answer", () => {
  const saying = /failed calling webhook "drain-cleaner\.example\.com".*connection refused/;
  // In the log, quotation marks are escaped.
  const said = (text = ""): boolean => saying.test(text.replaceAll("\\", ""));
  const path = "/apis/lastcall.dev/v1alpha1/departures/hooked-by-hand";
  const webhook = "drain-cleaner";

  beforeAll(async () => {
    await createNodes(plane, [{ name: "hooked" }]);
    const items = [webhookOf(webhook, await freePort()), ...shop];
    await mustRun(plane, ["apply", "-f", "-"], { apiVersion: "v1", kind: "List", items });
    await until("its pod runs", async () =>
      (await podsOn("hooked", "shop")).some(({ status }) => status?.phase === "Running"),
    );
    await depart("hooked");
  });

  test("stays, and the message, an Event and the log say what the server said", async () => {
    await until("the message says it", async () => {
      const { status } = (await plane.request({ path })).body;
      return said(status?.message) && status.phase === "Draining";
    });
    await until("an Event says it", async () => {
      const { body } = await plane.request({ path: "/api/v1/events" });
      const events: readonly { message?: string; involvedObject: { name?: string } }[] = body.items;
      return events.some(({ message, involvedObject }) => {
        return /^(?:hooked|kafka)/.test(involvedObject.name ?? "") && said(message);
      });
    });
    expect(controller.log().split("\n").some(said)).toBe(true);
    expect(await podsOn("hooked", "shop")).toHaveLength(1);
  });

  test("leaves once the webhook is gone", async () => {
    await mustRun(plane, ["delete", "validatingwebhookconfiguration", webhook]);
    await until("it has left", async () => (await podsOn("hooked", "shop")).length === 0);
  });
});

/** A webhook for evictions in the namespace `shop`, which fails if it cannot be called. */
function webhookOf(name: string, port: number): object {
  const rule = { apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"] };
  return {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "ValidatingWebhookConfiguration",
    metadata: { name },
    webhooks: [
      {
        name: `${name}.example.com`,
        rules: [{ ...rule, resources: ["pods/eviction"], scope: "Namespaced" }],
        namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "shop" } },
        clientConfig: { url: `https://127.0.0.1:${port}/drainer` },
        ...{ admissionReviewVersions: ["v1"], sideEffects: "None", failurePolicy: "Fail" },
        timeoutSeconds: 5,
      },
    ],
  };
}

const kafka = { app: "kafka" };
/** One pod, on the node `hooked` as long as that takes pods. */
const shop: readonly object[] = [
  { apiVersion: "v1", kind: "Namespace", metadata: { name: "shop" } },
  {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "kafka", namespace: "shop" },
    spec: {
      ...{ replicas: 1, selector: { matchLabels: kafka } },
      template: {
        metadata: { labels: kafka },
        spec: {
          ...{
            terminationGracePeriodSeconds: 2,
            nodeSelector: { "kubernetes.io/hostname": "hooked" },
          },
          containers: [{ name: "kafka", image: "registry.example/kafka:1" }],
        },
      },
    },
  },
];

function objectsOf({ name, graceSeconds, exitAfter, unhealthy, ...more }: App): object[] {
  const { labels = {}, nodeName } = more;
  const app = { app: name };
  const annotations = exitAfter === undefined ? {} : { "e2e.lastcall.dev/exit-after": exitAfter };
  const containers = [{ name, image: `registry.example/${name}:1` }];
  const spec = { terminationGracePeriodSeconds: graceSeconds, containers, nodeName };
  const template = { metadata: { labels: { ...app, ...labels }, annotations }, spec };
  const workload = {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name },
    spec: { replicas: 1, selector: { matchLabels: app }, template },
  };
  if (unhealthy === undefined) return [workload];
  const budget = {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: { name },
    spec: {
      minAvailable: 1,
      selector: { matchLabels: app },
      unhealthyPodEvictionPolicy: unhealthy,
    },
  };
  return [workload, budget];
}

/** Every pod runs, crashing ones are not ready, and the budgets show that. */
async function isSettled(): Promise<boolean> {
  const pods = await podsOn("leaving");
  const asMeant = pods.every((pod) => {
    const ready = pod.status?.conditions?.find(({ type }) => type === "Ready")?.status;
    return (
      pod.status?.phase === "Running" &&
      ready === (appOf(pod).startsWith("crash") ? "False" : "True")
    );
  });
  const { body } = await plane.request({
    path: "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
  });
  const budgets: readonly { status?: { expectedPods?: number; currentHealthy?: number } }[] =
    body.items;
  const known = budgets.every(
    ({ status }) => status?.expectedPods === 1 && status.currentHealthy === 0,
  );
  return pods.length === apps.length && asMeant && known;
}

/** Just after its CRD is created, a resource may not be served yet. */
async function isPolicyApplied(): Promise<boolean> {
  const policy = {
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "DeparturePolicy",
    metadata: { name: "spot" },
    spec: { drain: { timeout: "5m", onTimeout: "Wait" }, instance: { release: "None" } },
  };
  const { code } = await plane.kubectl(["apply", "-f", "-"], { input: JSON.stringify(policy) });
  const { status } = await plane.request({ path: "/apis/lastcall.dev/v1alpha1/departures" });
  return code === 0 && status === 200;
}

async function startController(): Promise<LastcallProcess> {
  const kubeconfig = plane.kubeconfigFor("lastcall", await plane.tokenFor("lastcall", "lastcall"));
  const address = async () => `127.0.0.1:${await freePort()}`;
  const flags = ["--health-address", await address(), "--metrics-address", await address()];
  return startAsPod(["run", "--kubeconfig", kubeconfig, ...flags], { folder });
}

async function depart(name = "leaving"): Promise<void> {
  const { body } = await plane.request({ path: `/api/v1/nodes/${name}` });
  const { uid } = body.metadata;
  await mustRun(plane, ["apply", "-f", "-"], {
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "Departure",
    metadata: { name: `${name}-by-hand` },
    spec: {
      node: { name, uid, providerID: body.spec.providerID },
      cause: "Manual",
      policy: "spot",
    },
  });
}

async function departureNow() {
  return (await plane.request({ path: departurePath })).body;
}

function isHeld(drain: Drain | undefined): boolean {
  return drain?.left === 1 && drain.blocked === 1;
}

async function podsOn(node: string, namespace = "default"): Promise<readonly Pod[]> {
  const path = `/api/v1/namespaces/${namespace}/pods?fieldSelector=spec.nodeName%3D${node}`;
  return (await plane.request({ path })).body.items;
}

function appOf(pod: Pod): string {
  return pod.metadata?.labels?.app ?? "";
}

/** Each app's pod on the departing node, as it was when it started to terminate. */
function partings(): ReadonlyMap<string, Pod> {
  const seen = new Map<string, Pod>();
  for (const { kind, object } of onlooker.changes()) {
    if (kind !== "Pod" || object.spec?.nodeName !== "leaving" || seen.has(appOf(object))) continue;
    if (object.metadata?.deletionTimestamp !== undefined) seen.set(appOf(object), object);
  }
  return seen;
}

function wasEvicted(pod: Pod | undefined): boolean {
  const target = pod?.status?.conditions?.find(({ type }) => type === "DisruptionTarget");
  return target?.reason === "EvictionByEvictionAPI";
}

async function until<T>(what: string, holds: () => Promise<T | false | undefined>): Promise<T> {
  const signals = [plane.signal, ...(controller === undefined ? [] : [controller.death])];
  try {
    return await waitUntil(holds, {
      what,
      timeoutMs: 60_000,
      signal: AbortSignal.any(signals),
      intervalMs: 100,
    });
  } catch (error) {
    throw new Error(`${String(error)}\n${controller?.log().split("\n").slice(-20).join("\n")}`);
  }
}
