/**
 * Every notice of every cloud, each for a node of its own, on one real control plane: from a
 * metadata server, a queue or a Node to the eviction of the pods. Judged by an onlooker's watch and
 * the API server's audit log.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { formatInstant, instant, minutes, plus, seconds } from "../../src/core/time/time.ts";
import { AgentProcess } from "../support/agent-process.ts";
import { agentPodsOf, agentTokenOn } from "../support/agent-token.ts";
import { type AuditLog, createAuditLog } from "../support/audit-log.ts";
import { AutoScalingServer } from "../support/auto-scaling-server.ts";
import { AwsMetadataServer } from "../support/aws-metadata-server.ts";
import { type ControlPlane, startControlPlane } from "../support/control-plane.ts";
import { kubeletLabel } from "../support/control-plane-commands.ts";
import { Ec2Server } from "../support/ec2-server.ts";
import { freePort } from "../support/free-port.ts";
import { createNodes } from "../support/kwok-fleet.ts";
import { type LastcallProcess, startAsPod } from "../support/lastcall-process.ts";
import { httpDate } from "../support/metadata-server.ts";
import { Moto } from "../support/moto.ts";
import { spotWarning } from "../support/queue-body.ts";
import { cloudSignals, instanceIdOf, withdrawnSignals } from "./cloud-signal.ts";
import { controllerUser } from "./fleet-world.ts";
import { nameOf, type RawDeparture } from "./history.ts";
import { mustRun } from "./must-run.ts";
import { judgeNotices } from "./notice-judge.ts";
import { Onlooker } from "./onlooker.ts";
import { untilAlive } from "./until-alive.ts";

const deploy = join(import.meta.dirname, "..", "..", "deploy");
const bootID = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
/** A node on another team's instance. */
const untagged = "untagged-999";
const azure =
  "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/";
const excludeLabel = "node.kubernetes.io/exclude-from-external-load-balancers";

let plane: ControlPlane;
let moto: Moto;
let autoScaling: AutoScalingServer;
let ec2: Ec2Server;
let audit: AuditLog;
let onlooker: Onlooker;
let controller: LastcallProcess;
let folder: string;
const atEnd: (() => Promise<unknown>)[] = [];

const rows = cloudSignals.map((signal, place) => ({ ...signal, node: `node-${place + 1}` }));

const withdrawn = withdrawnSignals.map((signal, place) => ({
  ...signal,
  node: `back-${place + 101}`,
}));
/** A node of Azure that only forged Events announce. */
const forged = "forged-301";
/** A node whose interruption is announced by the metadata service and by the queue. */
const twice = "twice-201";

function providerIdOf({ source, node }: (typeof rows)[number]): string | undefined {
  if (source.includes("aws")) return `aws:///eu-west-1a/${instanceIdOf(node)}`;
  if (source.includes("gcp")) return undefined;
  return `${azure}${node}`;
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "lastcall-signals-"));
  audit = createAuditLog();
  [plane, moto, autoScaling, ec2] = await Promise.all([
    startControlPlane({ apiServerFlags: audit.flags }),
    Moto.start(),
    new AutoScalingServer().start(),
    new Ec2Server().start(),
  ]);
  await mustRun(plane, ["apply", "-k", join(deploy, "crds")]);
  await mustRun(plane, ["apply", "-f", join(deploy, "base/namespace.yaml")]);
  await mustRun(plane, ["apply", "-f", join(deploy, "base/rbac.yaml")]);
  await mustRun(plane, ["apply", "-k", join(deploy, "agent")]);
  // Just after a CRD is created, a list may get 429: storage is initializing.
  await until("departures can be listed", async () => {
    const { status } = await plane.request({ path: "/apis/lastcall.dev/v1alpha1/departures" });
    return status === 200;
  });
  const nodes = rows.map((row) => {
    const providerID = providerIdOf(row);
    return {
      name: row.node,
      provisioning: "spot" as const,
      bootID,
      ...(providerID && { providerID }),
    };
  });
  const others = [...withdrawn.map(({ node }) => node), twice].map((name) => ({
    ...{ name, provisioning: "spot" as const, bootID },
    providerID: `aws:///eu-west-1a/${instanceIdOf(name)}`,
  }));
  for (const { name } of [...nodes, ...others]) ec2.tags.set(instanceIdOf(name), { team: "a" });
  ec2.tags.set(instanceIdOf(untagged), { team: "b" });
  const spared = [
    { name: "spared", provisioning: "spot" as const },
    {
      ...{ name: forged, provisioning: "spot" as const },
      providerID: `${azure}${forged}`,
    },
    {
      ...{ name: untagged, provisioning: "spot" as const },
      providerID: `aws:///eu-west-1a/${instanceIdOf(untagged)}`,
    },
  ];
  const all = [...nodes, ...others, ...spared];
  await createNodes(plane, all);
  await mustRun(plane, ["apply", "-f", "-"], {
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "DeparturePolicy",
    metadata: { name: "spot" },
    spec: { lifetime: {}, onNotice: { rebalance: "Drain" } },
  });
  for (const { name } of all) await createPod(name);
  const [health, metrics] = [await freePort(), await freePort()];
  const kubeconfig = plane.kubeconfigFor("lastcall", await plane.tokenFor("lastcall", "lastcall"));
  controller = startAsPod(
    [
      ...["run", "--kubeconfig", kubeconfig, "--sqs-queue-url", moto.queueUrl],
      ...["--ec2-status-poll", "1s", "--aws-managed-tag", "team=a"],
      ...["--health-address", `127.0.0.1:${health}`, "--metrics-address", `127.0.0.1:${metrics}`],
    ],
    {
      folder,
      env: {
        ...moto.environment,
        AWS_ENDPOINT_URL_AUTO_SCALING: autoScaling.url,
        AWS_ENDPOINT_URL_EC2: ec2.url,
      },
    },
  );
  await until("an agent is on each node", async () => {
    return (await agentPodsOf(plane)).length === all.length;
  });
  await until("all pods run", async () => {
    const { body } = await plane.request({ path: "/api/v1/namespaces/default/pods" });
    const running = body.items.filter((pod: { status: { phase: string } }) => {
      return pod.status.phase === "Running";
    });
    return running.length === all.length;
  });
  // Stops the simulated kubelet of this node, which would report Ready again at once.
  const shutting = rows.find(({ source }) => source.startsWith("node/Ready"))?.node ?? "";
  await mustRun(plane, ["label", "node", shutting, `${kubeletLabel.key}-`]);
  onlooker = new Onlooker(plane);
  await onlooker.start();
  await until("the controller is ready", async () => {
    return (await fetch(`http://127.0.0.1:${health}/readyz`).catch(() => undefined))?.ok;
  });
});

afterEach(async () => {
  // Stops the agent before the service that it polls.
  for (const end of atEnd.splice(0).reverse()) await end();
});

afterAll(async () => {
  await controller?.kill();
  await onlooker?.stop();
  await moto?.stop();
  await autoScaling?.stop();
  await ec2?.stop();
  await plane?.stop();
  audit?.remove();
  rmSync(folder, { recursive: true, force: true });
});

function until<T>(what: string, condition: () => Promise<T | false | undefined>): Promise<T> {
  const processes = controller === undefined ? [] : [controller];
  return untilAlive(condition, { what, timeoutMs: 60_000 }, { plane, processes });
}

async function createPod(nodeName: string): Promise<void> {
  const { status } = await plane.request({
    method: "POST",
    path: "/api/v1/namespaces/default/pods",
    body: {
      apiVersion: "v1",
      kind: "Pod",
      metadata: {
        name: `web-${nodeName}`,
        annotations: { "e2e.lastcall.dev/exit-after": "1s" },
      },
      spec: { nodeName, containers: [{ name: "web", image: "registry.example/web:1" }] },
    },
  });
  expect(status).toBe(201);
}

async function departuresOf(node: string): Promise<readonly RawDeparture[]> {
  const { body } = await plane.request({ path: "/apis/lastcall.dev/v1alpha1/departures" });
  return body.items.filter((one: RawDeparture) => one.spec?.node?.name === node);
}

function changesOf(node: string) {
  return onlooker.changes().flatMap((change) => {
    return change.kind === "Node" && nameOf(change.object) === node ? [change.object] : [];
  });
}

/**
 * The lead counts, in whole seconds, from when the notice was sent or received: not earlier than it
 * was sent, and not later than now.
 */
function expectDeadline(
  deadlineAt: string | undefined,
  { leadMs, saidAt }: { readonly leadMs?: number; readonly saidAt: number },
): void {
  if (leadMs === undefined) {
    expect(deadlineAt).toBeUndefined();
    return;
  }
  const fromMs = Date.parse(deadlineAt ?? "") - leadMs;
  expect(fromMs).toBeGreaterThan(saidAt - 1000);
  expect(fromMs).toBeLessThanOrEqual(Date.now());
}

/** As AKS' problem detector would write it, by whoever has the token. */
async function announce(reason: string, namespace: string, token?: string): Promise<void> {
  const at = formatInstant(instant(Date.now())).replace(/\.\d+/, "");
  const { status } = await plane.request({
    ...{ method: "POST", path: `/api/v1/namespaces/${namespace}/events` },
    ...(token && { token }),
    body: {
      ...{ apiVersion: "v1", kind: "Event", reason, type: "Warning", count: 1 },
      metadata: { name: `${forged}.${reason.toLowerCase()}`, namespace },
      involvedObject: { kind: "Node", name: forged, uid: forged, namespace },
      source: { component: "custom-scheduledevents-preempt-plugin-monitor", host: forged },
      ...{ firstTimestamp: at, lastTimestamp: at },
      message: `Preempt Scheduled: ${httpDate(plus(instant(Date.now()), seconds(30)))}. DurationInSeconds: -1.`,
    },
  });
  expect(status).toBe(201);
}

// Before all others: that it was ignored is judged after the last notice was handled.
test("an Event about a node can be written by anybody with a namespace", async () => {
  await mustRun(plane, ["create", "namespace", "team"]);
  await mustRun(plane, ["create", "serviceaccount", "dev", "-n", "team"]);
  const edit = ["--clusterrole=edit", "--serviceaccount=team:dev"];
  await mustRun(plane, ["create", "rolebinding", "dev", "-n", "team", ...edit]);
  await announce("PreemptScheduled", "team", await plane.tokenFor("team", "dev"));
  for (const reason of ["PreemptScheduled", "RedeployScheduled"]) await announce(reason, "default");
});

describe("on a real control plane the notice from", () => {
  test.each(rows)("$signal drains its node: $cause", async ({ node, cause, say, ...row }) => {
    const saidAt = Date.now();
    await say({ plane, moto, ec2, atEnd }, node);
    const made = await until("the Departure is there", async () => {
      return onlooker.changes().find((change) => {
        return change.kind === "Departure" && change.object.spec?.node?.name === node;
      });
    });
    expect(made.object.spec).toMatchObject({ cause });
    const { source, deadlineAt } = made.object.spec as { source: string; deadlineAt?: string };
    expect(source.slice(0, row.source.length)).toBe(row.source);
    expectDeadline(deadlineAt, { ...row, saidAt });
    const marked = await until("the node is marked", async () => {
      return changesOf(node).find(({ spec }) => spec?.unschedulable === true);
    });
    // All parts of the mark appear at once.
    expect(marked.metadata?.labels).toHaveProperty([excludeLabel]);
    expect(marked.spec?.taints).toContainEqual(
      expect.objectContaining({ key: "lastcall.dev/departing", value: cause }),
    );
    await until("its pod leaves", async () => {
      const path = `/api/v1/namespaces/default/pods/web-${node}`;
      const { status, body } = await plane.request({ path });
      return status === 404 || body.metadata.deletionTimestamp !== undefined;
    });
  });
});

test("the same interruption from the metadata service and the queue is one departure", async () => {
  const time = formatInstant(plus(instant(Date.now()), minutes(2)));
  const server = await new AwsMetadataServer(() => instant(Date.now())).start();
  atEnd.push(() => server.stop());
  server.values.set("spot/instance-action", JSON.stringify({ action: "terminate", time }));
  const { url: apiUrl, caFile } = plane;
  const token = await agentTokenOn(plane, twice);
  const common = { metadataUrl: server.url, apiUrl, caFile, token };
  const agent = new AgentProcess({ nodeName: twice, ...common });
  atEnd.push(() => agent.stop());
  const warned = { instanceId: instanceIdOf(twice), time: new Date().toISOString(), id: "w-1" };
  await moto.send(spotWarning(warned));
  await until("its message is gone", async () => {
    const { shown, hidden } = await moto.count();
    return shown + hidden === 0;
  });
  await until("its agent has reported", async () => agent.said("notice-reported"));
  const departures = await departuresOf(twice);
  expect(departures.map(({ spec }) => (spec as { cause: string }).cause)).toEqual([
    "SpotInterruption",
  ]);
});

test("an instance without the required tag is ignored, whatever notices it gets", async () => {
  const instance = instanceIdOf(untagged);
  const inMinutes = instant(Date.now() + 5 * 60_000);
  const event = { id: "event-untagged", code: "instance-stop", notBeforeAt: inMinutes };
  ec2.events.push({ ...event, instance });
  const time = new Date().toISOString();
  await moto.send(spotWarning({ instanceId: instance, time }));
  const looks = ec2.actions.length;
  await until("its message is gone", async () => {
    const { shown, hidden } = await moto.count();
    return shown + hidden === 0;
  });
  await until("the list was read twice", async () => ec2.actions.length > looks + 2);
  expect(changesOf(untagged).filter(({ spec }) => spec?.unschedulable === true)).toEqual([]);
});

test("the observed history shows no violation", () => {
  const user = controllerUser;
  const noticed = [...rows.map(({ node }) => node), twice];
  const history = {
    changes: onlooker.changes(),
    audit: audit.read().filter((entry) => entry.user === user),
    ...{ releases: [], machineEnds: [] },
  };
  expect(judgeNotices(history, { noticed, spared: ["spared", untagged, forged], user })).toEqual(
    [],
  );
});

describe("a withdrawn notice", () => {
  test.each(withdrawn)("has its node uncordoned: $signal", async ({ node, say }) => {
    const takeBack = await say({ plane, moto, ec2, atEnd }, node);
    const isCordoned = async () => {
      const { body } = await plane.request({ path: `/api/v1/nodes/${node}` });
      return body.spec.unschedulable === true;
    };
    await until("the node is cordoned", isCordoned);
    await takeBack();
    await until("the node is at work again", async () => !(await isCordoned()));
    const ended = await until("its departure has ended", async () => {
      const departures = await departuresOf(node);
      return departures.every(({ status }) => status?.phase === "Ended") && departures;
    });
    expect(ended).toHaveLength(1);
    expect(ended[0]?.status).toMatchObject({ outcome: "Cancelled", reason: "NoticeWithdrawn" });
  });
});
