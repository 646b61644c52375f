import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { formatInstant, instant } from "../../src/core/time/time.ts";
import { AgentProcess } from "../support/agent-process.ts";
import { agentPodsOf, agentTokenOn } from "../support/agent-token.ts";
import type { ApiAnswer } from "../support/api-request.ts";
import { AwsMetadataServer } from "../support/aws-metadata-server.ts";
import { AzureMetadataServer } from "../support/azure-metadata-server.ts";
import { type ControlPlane, startControlPlane } from "../support/control-plane.ts";
import { freePort } from "../support/free-port.ts";
import { createNodes } from "../support/kwok-fleet.ts";
import { type LastcallProcess, startAsPod } from "../support/lastcall-process.ts";
import { httpDate } from "../support/metadata-server.ts";
import { waitUntil } from "../support/wait-until.ts";
import { mustRun } from "./must-run.ts";

const deploy = new URL("../../deploy", import.meta.url).pathname;
const bootID = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
const departures = "/apis/lastcall.dev/v1alpha1/departures";
/** Each test uses its own node. */
const nodeNames = ["alone", "beside", "orphan", "killed", "azure", "rights", "other"] as const;
type NodeName = (typeof nodeNames)[number];

let plane: ControlPlane;
let folder: string;
let metadata: AwsMetadataServer;
let agent: AgentProcess | undefined;
let controller: LastcallProcess | undefined;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "lastcall-fallback-"));
  plane = await startControlPlane();
  const nodes = nodeNames.map((name) => ({ name, provisioning: "spot" as const, bootID }));
  await createNodes(plane, nodes);
  await mustRun(plane, ["apply", "-k", `${deploy}/crds`]);
  await mustRun(plane, ["apply", "-f", `${deploy}/base/namespace.yaml`]);
  await mustRun(plane, ["apply", "-f", `${deploy}/base/rbac.yaml`]);
  await mustRun(plane, ["apply", "-k", `${deploy}/agent-fallback/drain`]);
  await mustRun(plane, ["apply", "-f", "-"], heldBudget);
  const wait = { timeoutMs: 60_000, signal: plane.signal };
  const placed = async () => (await agentPodsOf(plane)).length === nodeNames.length;
  await waitUntil(placed, { what: "an agent is on each node", ...wait });
  await createPod("other", "probe");
  const token = await agentTokenOn(plane, "rights");
  const inForce = async () =>
    (await evict(token, "probe", { dryRun: ["All"] })).status === 403 &&
    (await patchNode(token, "other", { metadata: { labels: { x: "y" } } })).status === 403;
  await waitUntil(inForce, { what: "the admission policies are in force", ...wait });
});

afterAll(async () => {
  await plane?.stop();
  rmSync(folder, { recursive: true, force: true });
});

beforeEach(async () => {
  metadata = await new AwsMetadataServer(() => instant(Date.now())).start();
});
afterEach(async () => {
  await agent?.stop();
  await controller?.stop();
  agent = undefined;
  controller = undefined;
  await metadata.stop();
  await plane.kubectl(["delete", "departures", "--all", "--wait=false"]);
  // No controller is left that would undo and release what one had taken.
  for (const { metadata: one } of (await plane.request({ path: departures })).body.items) {
    const patch = '{"metadata":{"finalizers":null}}';
    await plane.kubectl(["patch", "departures", one.name, "--type=merge", "-p", patch]);
  }
});

/** Pods with this label may not be disrupted. */
const heldBudget = {
  apiVersion: "policy/v1",
  kind: "PodDisruptionBudget",
  metadata: { name: "held" },
  spec: { minAvailable: 1, selector: { matchLabels: { app: "held" } } },
};

async function createPod(nodeName: NodeName, name: string, app = "web"): Promise<void> {
  const body = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, labels: { app } },
    spec: {
      nodeName,
      terminationGracePeriodSeconds: 10,
      containers: [{ name: "main", image: "registry.example/main:1" }],
    },
  };
  const { status } = await plane.request({
    ...{ method: "POST", path: "/api/v1/namespaces/default/pods", body },
  });
  expect(status).toBe(201);
  const isReady = async () => {
    const pod = await plane.request({ path: `/api/v1/namespaces/default/pods/${name}` });
    return pod.body.status?.phase === "Running";
  };
  await waitUntil(isReady, { what: `${name} runs`, timeoutMs: 20_000, signal: plane.signal });
}

function evict(token: string, name: string, deleteOptions: object = {}): Promise<ApiAnswer> {
  const path = `/api/v1/namespaces/default/pods/${name}/eviction`;
  const metadata = { namespace: "default", name };
  const body = { apiVersion: "policy/v1", kind: "Eviction", metadata, deleteOptions };
  return plane.request({ method: "POST", path, body, token });
}

function patchNode(token: string, name: string, body: object, sub = ""): Promise<ApiAnswer> {
  const contentType = "application/strategic-merge-patch+json";
  const path = `/api/v1/nodes/${name}${sub}`;
  return plane.request({ method: "PATCH", path, body, contentType, token });
}

async function startAgent(
  nodeName: NodeName,
  { metadataUrl = metadata.url, flags = [] as readonly string[] } = {},
): Promise<AgentProcess> {
  const started = new AgentProcess({
    ...{ nodeName, metadataUrl, apiUrl: plane.url, caFile: plane.caFile },
    token: await agentTokenOn(plane, nodeName),
    flags: ["--fallback=Drain", ...flags],
  });
  agent = started;
  await until("the agent listens", async () => started.said("listening"));
  return started;
}

async function startController(): Promise<LastcallProcess> {
  const token = await plane.tokenFor("lastcall", "lastcall");
  const kubeconfig = plane.kubeconfigFor("controller", token);
  const address = async () => `127.0.0.1:${await freePort()}`;
  const args = ["run", "--kubeconfig", kubeconfig, "--namespace", "lastcall"];
  const ports = ["--health-address", await address(), "--metrics-address", await address()];
  const started = startAsPod([...args, ...ports], { folder });
  controller = started;
  await until("the controller leads", async () => {
    const path = "/apis/coordination.k8s.io/v1/namespaces/lastcall/leases/lastcall";
    return (await plane.request({ path })).body.spec?.holderIdentity?.length > 0;
  });
  return started;
}

function interrupt(leftMs: number): void {
  const time = formatInstant(instant(Date.now() + leftMs));
  metadata.values.set("spot/instance-action", JSON.stringify({ action: "terminate", time }));
}

function until(what: string, holds: () => Promise<boolean>, timeoutMs = 20_000): Promise<boolean> {
  return waitUntil(holds, { what, timeoutMs, signal: plane.signal, intervalMs: 50 });
}

/** The pods of a node in `default`, where the agent's own pod is not. */
async function podsOn(nodeName: NodeName): Promise<readonly string[]> {
  const query = `fieldSelector=spec.nodeName%3D${nodeName}`;
  const { body } = await plane.request({ path: `/api/v1/namespaces/default/pods?${query}` });
  return body.items.map((pod: { metadata: { name: string } }) => pod.metadata.name).toSorted();
}

async function isCordoned(nodeName: NodeName): Promise<boolean> {
  const { body } = await plane.request({ path: `/api/v1/nodes/${nodeName}` });
  return body.spec.unschedulable === true;
}

describe("an agent with the permissions of its fallback", () => {
  test("drains its node within the notice if no controller runs, even past a budget", async () => {
    await createPod("alone", "web-alone");
    await createPod("alone", "held-alone", "held");
    const running = await startAgent("alone");
    const deadlineMs = Date.now() + 30_000;
    interrupt(30_000);
    await until("the node is cordoned", () => isCordoned("alone"));
    await until("the free pod is gone", async () => !(await podsOn("alone")).includes("web-alone"));
    await until("the node is drained", async () => (await podsOn("alone")).length === 0, 30_000);
    expect(Date.now()).toBeLessThan(deadlineMs);
    await until("it says so", async () => running.said("fallback-drained"));
    const { body } = await plane.request({ path: "/api/v1/nodes/alone" });
    const [departure] = (await plane.request({ path: departures })).body.items;
    expect(body.metadata.annotations["lastcall.dev/departure"]).toBe(departure.metadata.name);
    expect(body.spec.taints).toContainEqual(
      expect.objectContaining({ key: "lastcall.dev/departing", value: "SpotInterruption" }),
    );
    expect(body.metadata.labels).toMatchObject({
      "node.kubernetes.io/exclude-from-external-load-balancers": "lastcall",
    });
    expect(body.status.conditions).toContainEqual(
      expect.objectContaining({ type: "Departing", status: "True" }),
    );
  });

  test("does nothing while a controller runs", async () => {
    await createPod("beside", "web-beside");
    await startController();
    const running = await startAgent("beside");
    interrupt(120_000);
    await until("the node is drained", async () => (await podsOn("beside")).length === 0);
    await until("the agent knows who has to act", async () => running.said("fallback-actor"));
    const turns = running.log.filter((line) => line.includes("fallback"));
    expect(turns).toHaveLength(1);
    expect(turns[0]).not.toContain('"turn":"Agent"');
  });

  test("finishes the drain of a controller that is killed in the middle of it", async () => {
    await createPod("orphan", "held-orphan", "held");
    const leader = await startController();
    const running = await startAgent("orphan");
    interrupt(100_000);
    await until("the controller has taken it", async () => {
      const { body } = await plane.request({ path: departures });
      return body.items[0]?.status?.phase === "Draining";
    });
    await leader.kill();
    controller = undefined;
    await until("the node is drained", async () => (await podsOn("orphan")).length === 0, 100_000);
    expect(running.said("fallback-cordoned")).toBe(true);
  });
});

describe("an agent that is killed in the middle of its own drain", () => {
  test("resumes it after a restart", async () => {
    await createPod("killed", "web-killed");
    await createPod("killed", "held-killed", "held");
    const first = await startAgent("killed");
    interrupt(40_000);
    const freeIsGone = async () => !(await podsOn("killed")).includes("web-killed");
    await until("the free pod is gone", freeIsGone);
    await first.kill();
    const second = await startAgent("killed");
    await until("the node is drained", async () => (await podsOn("killed")).length === 0, 40_000);
    await until("it says so", async () => second.said("fallback-drained"));
    expect((await plane.request({ path: departures })).body.items).toHaveLength(1);
  });
});

describe("an agent with --azure-acknowledge", () => {
  test("acknowledges the event once its node is drained, and not before", async () => {
    const azure = await new AzureMetadataServer(() => instant(Date.now())).start();
    await createPod("azure", "web-azure");
    const event = { EventType: "Preempt", EventStatus: "Scheduled" } as const;
    const { url: metadataUrl, name } = azure;
    await startAgent("azure", { metadataUrl, flags: ["--azure-acknowledge"] });
    const NotBefore = httpDate(instant(Date.now() + 60_000));
    azure.set([{ ...event, EventId: "event-1", Resources: [name], NotBefore }]);
    let early: readonly string[] = [];
    await until("the node is drained", async () => {
      const acknowledged = [...azure.acknowledged];
      const isDrained = (await podsOn("azure")).length === 0;
      if (!isDrained) early = acknowledged;
      return isDrained;
    });
    expect(early).toEqual([]);
    await until("the event is acknowledged", async () => azure.acknowledged.length > 0);
    expect(azure.acknowledged).toEqual(["event-1"]);
    await agent?.stop();
    await azure.stop();
  });
});

describe("the permissions of the fallback", () => {
  test.each([
    ["cordon another node", "other", { spec: { unschedulable: true } }, ""],
    ["set arbitrary labels on its node", "rights", { metadata: { labels: { a: "b" } } }, ""],
    [
      "set arbitrary annotations on its node",
      "rights",
      { metadata: { annotations: { a: "b" } } },
      "",
    ],
    ["set arbitrary taints on its node", "rights", taints("NoSchedule", "mine"), ""],
    ["evict pods with its taint", "rights", taints("NoExecute", "lastcall.dev/departing"), ""],
    ["report its node as ready", "rights", condition("Ready"), "/status"],
    ["write another node's condition", "other", condition("Departing"), "/status"],
    ["change its node's capacity", "rights", { status: { capacity: { cpu: "99" } } }, "/status"],
    ["change fields that no mark needs", "rights", { status: { phase: "Terminated" } }, "/status"],
    ["add a finalizer to its node", "rights", { metadata: { finalizers: ["a.b/c"] } }, ""],
  ])("do not let the agent %s", async (_, name, body, sub) => {
    const token = await agentTokenOn(plane, "rights");
    const refused = await patchNode(token, name, body, sub);
    expect(refused.status).toBe(403);
    expect(refused.body.message).toContain("an agent");
  });

  test("do not let the agent uncordon a node that somebody else cordoned", async () => {
    await mustRun(plane, ["cordon", "rights"]);
    const token = await agentTokenOn(plane, "rights");
    const body = { spec: { unschedulable: null } };
    expect((await patchNode(token, "rights", body)).status).toBe(403);
    await mustRun(plane, ["uncordon", "rights"]);
  });

  test("let the agent write the condition Departing of its own node", async () => {
    const token = await agentTokenOn(plane, "rights");
    const written = await patchNode(token, "rights", condition("Departing"), "/status");
    expect(written.status).toBe(200);
  });

  test("let the agent evict and delete pods of its own node and no others", async () => {
    await createPod("rights", "own-evicted");
    await createPod("rights", "own-deleted");
    await createPod("other", "foreign");
    const token = await agentTokenOn(plane, "rights");
    const path = "/api/v1/namespaces/default/pods";
    for (const refused of [
      await evict(token, "foreign"),
      await plane.request({ method: "DELETE", path: `${path}/foreign`, token }),
    ]) {
      expect(refused.status).toBe(403);
      expect(refused.body.message).toContain('its token is bound to node "rights"');
    }
    const { uid } = (await plane.request({ path: `${path}/own-evicted` })).body.metadata;
    expect((await evict(token, "own-evicted", { preconditions: { uid } })).status).toBe(201);
    const deleted = await plane.request({ method: "DELETE", path: `${path}/own-deleted`, token });
    expect(deleted.status).toBe(200);
  });
});

// What the API server keeps in memory of a pod may be about one that is gone, and the pod that has
// its name now may run on another node.
test("an agent evicts a pod only by its uid, so never the next one of its name", async () => {
  await createPod("rights", "renamed");
  const token = await agentTokenOn(plane, "rights");
  const { body } = await plane.request({ path: "/api/v1/namespaces/default/pods/probe" });
  const foreign = { preconditions: { uid: body.metadata.uid } };
  for (const deleteOptions of [{}, { preconditions: {} }, foreign]) {
    const refused = await evict(token, "renamed", deleteOptions);
    expect(refused.status).toBe(403);
    expect(refused.body.message).toContain("an agent may evict a pod only by its uid");
  }
});

function taints(effect: string, key: string): object {
  return { spec: { taints: [{ key, effect, value: "x" }] } };
}

function condition(type: string): object {
  return { status: { conditions: [{ type, status: "True", reason: "Test", message: "" }] } };
}
