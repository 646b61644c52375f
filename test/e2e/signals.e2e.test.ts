/**
 * Every word of every cloud, each for a node of its own, on one real control plane: from what a metadata
 * server, a queue or a Node says to pods that have left by eviction. Judged by an onlooker's watch and the
 * API server's audit log.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { formatInstant, instant } from "../../src/core/time.ts";
import { AgentProcess } from "../support/agent-process.ts";
import { agentPodsOf, agentTokenOn } from "../support/agent-token.ts";
import { type AuditLog, createAuditLog } from "../support/audit-log.ts";
import { AwsMetadataServer } from "../support/aws-metadata-server.ts";
import { AzureMetadataServer } from "../support/azure-metadata-server.ts";
import { type ControlPlane, startControlPlane } from "../support/control-plane.ts";
import { kubeletLabel } from "../support/control-plane-commands.ts";
import { freePort } from "../support/free-port.ts";
import { GcpMetadataServer } from "../support/gcp-metadata-server.ts";
import { createNodes } from "../support/kwok-fleet.ts";
import { type LastcallProcess, startLastcall } from "../support/lastcall-process.ts";
import { httpDate } from "../support/metadata-server.ts";
import { Moto } from "../support/moto.ts";
import {
  directHook,
  healthEvent,
  inSns,
  rebalance,
  reservationWarning,
  spotWarning,
  stateChange,
  terminateAction,
} from "../support/queue-body.ts";
import { controllerUser } from "./fleet-world.ts";
import { nameOf } from "./history.ts";
import { mustRun } from "./must-run.ts";
import { judgeNotices } from "./notice-judge.ts";
import { Onlooker } from "./onlooker.ts";
import { untilAlive } from "./until-alive.ts";

const deploy = join(import.meta.dirname, "..", "..", "deploy");
const bootID = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
const excludeLabel = "node.kubernetes.io/exclude-from-external-load-balancers";

let plane: ControlPlane;
let moto: Moto;
let audit: AuditLog;
let onlooker: Onlooker;
let controller: LastcallProcess;
let folder: string;
let atEnd: (() => Promise<unknown>)[] = [];

interface Signal {
  readonly signal: string;
  readonly cause: string;
  readonly source: string;
  /** Makes the cloud say it of the node. */
  readonly say: (node: string) => Promise<unknown>;
}

const now = () => instant(Date.now());
const soon = (ms: number) => instant(Date.now() + ms);
const minute = 60_000;

function instanceIdOf(node: string): string {
  return `i-0${node.replace(/\D/g, "").padStart(16, "0")}`;
}

async function runAgent(node: string, metadataUrl: string): Promise<void> {
  const token = await agentTokenOn(plane, node);
  const { url: apiUrl, caFile } = plane;
  const agent = new AgentProcess({ nodeName: node, metadataUrl, apiUrl, caFile, token });
  atEnd.push(() => agent.stop());
}

function byEc2(path: string, value: () => unknown): Signal["say"] {
  return async (node) => {
    const server = await new AwsMetadataServer(now).start();
    atEnd.push(() => server.stop());
    const said = value();
    server.values.set(path, typeof said === "string" ? said : JSON.stringify(said));
    await runAgent(node, server.url);
  };
}

function byGce(path: string, value: string): Signal["say"] {
  return async (node) => {
    const server = await new GcpMetadataServer(now).start();
    atEnd.push(() => server.stop());
    server.set(path, value);
    await runAgent(node, server.url);
  };
}

function byAzure(EventType: string): Signal["say"] {
  return async (node) => {
    const server = await new AzureMetadataServer(now).start();
    atEnd.push(() => server.stop());
    const NotBefore = httpDate(soon(minute));
    const about = { Resources: [server.name], EventStatus: "Scheduled", NotBefore } as const;
    server.set([{ EventId: `event-${node}`, EventType, ...about }]);
    await runAgent(node, server.url);
  };
}

type QueueBody = (about: { instanceId: string; time: string; id: string }) => object;

function byQueue(body: QueueBody): Signal["say"] {
  return (node) => {
    const time = new Date().toISOString().replace(/\.\d+Z$/, "Z");
    return moto.send(body({ instanceId: instanceIdOf(node), time, id: `event-${node}` }));
  };
}

function byCondition(type: string, more: object): Signal["say"] {
  return async (node) => {
    const { status } = await plane.request({
      method: "PATCH",
      path: `/api/v1/nodes/${node}/status`,
      contentType: "application/strategic-merge-patch+json",
      body: {
        status: { conditions: [{ type, lastTransitionTime: formatInstant(now()), ...more }] },
      },
    });
    expect(status).toBe(200);
  };
}

function byEvent(reason: string): Signal["say"] {
  return async (node) => {
    const lastTimestamp = new Date().toISOString().replace(/\.\d+Z$/, "Z");
    const { status } = await plane.request({
      method: "POST",
      path: "/api/v1/namespaces/default/events",
      body: {
        apiVersion: "v1",
        kind: "Event",
        metadata: { name: `${node}.${reason.toLowerCase()}`, namespace: "default" },
        involvedObject: { kind: "Node", name: node, uid: node },
        ...{ reason, type: "Warning", source: { component: "aks-node-problem-detector" } },
        ...{ firstTimestamp: lastTimestamp, lastTimestamp, count: 1 },
        message: `${reason}: ${httpDate(soon(minute))}. DurationInSeconds: -1. EventId: event-${node}`,
      },
    });
    expect(status).toBe(201);
  };
}

const signals: readonly Signal[] = [
  {
    signal: "the Node: a kubelet that shuts down",
    cause: "NodeShutdown",
    source: "node/Ready",
    say: byCondition("Ready", {
      ...{ status: "False", reason: "KubeletNotReady", message: "node is shutting down" },
    }),
  },
  {
    signal: "EC2's metadata: spot/instance-action",
    cause: "SpotInterruption",
    source: "agent/aws/spot-instance-action",
    say: byEc2("spot/instance-action", () => ({
      action: "terminate",
      time: formatInstant(soon(2 * minute)),
    })),
  },
  {
    signal: "EC2's metadata: a rebalance recommendation",
    cause: "RebalanceRecommendation",
    source: "agent/aws/rebalance",
    say: byEc2("events/recommendations/rebalance", () => ({ noticeTime: formatInstant(now()) })),
  },
  {
    signal: "EC2's metadata: a scheduled event",
    cause: "ScheduledMaintenance",
    source: "agent/aws/scheduled-events",
    say: byEc2("events/maintenance/scheduled", () => [
      {
        NotBefore: httpDate(soon(5 * minute)).replace(/^\w+, /, ""),
        ...{ Code: "instance-stop", EventId: "instance-event-1", State: "active" },
      },
    ]),
  },
  {
    signal: "EC2's metadata: the state that the group wants",
    cause: "LifecycleHook",
    source: "agent/aws/target-lifecycle-state",
    say: byEc2("autoscaling/target-lifecycle-state", () => "Terminated"),
  },
  {
    signal: "Compute Engine's metadata: preempted",
    cause: "SpotInterruption",
    source: "agent/gcp/preempted",
    say: byGce("instance/preempted", "TRUE"),
  },
  {
    signal: "Compute Engine's metadata: maintenance that terminates",
    cause: "ScheduledMaintenance",
    source: "agent/gcp/maintenance-event",
    say: byGce("instance/maintenance-event", "TERMINATE_ON_HOST_MAINTENANCE"),
  },
  ...(
    [
      ["Preempt", "SpotInterruption"],
      ["Terminate", "LifecycleHook"],
      ["Reboot", "ScheduledMaintenance"],
      ["Redeploy", "ScheduledMaintenance"],
    ] as const
  ).map(([type, cause]) => ({
    signal: `Azure's Scheduled Events: ${type}`,
    ...{ cause, source: "agent/azure/scheduled-events", say: byAzure(type) },
  })),
  {
    signal: "the queue: a Spot warning",
    cause: "SpotInterruption",
    source: "aws/queue/",
    say: byQueue((about) => spotWarning(about)),
  },
  {
    signal: "the queue: a capacity reservation's end",
    cause: "SpotInterruption",
    source: "aws/queue/",
    say: byQueue((about) => reservationWarning(about, formatInstant(soon(2 * minute)))),
  },
  {
    signal: "the queue: a rebalance recommendation",
    cause: "RebalanceRecommendation",
    source: "aws/queue/",
    say: byQueue((about) => rebalance(about)),
  },
  {
    signal: "the queue: a machine that stops",
    cause: "NodeShutdown",
    source: "aws/queue/",
    say: byQueue((about) => stateChange(about, "stopping")),
  },
  {
    signal: "the queue: a lifecycle hook by EventBridge",
    cause: "LifecycleHook",
    source: "aws/queue/",
    say: byQueue((about) => terminateAction(about)),
  },
  {
    signal: "the queue: a lifecycle hook straight",
    cause: "LifecycleHook",
    source: "aws/queue/",
    say: byQueue((about) => directHook(about)),
  },
  {
    signal: "the queue: a lifecycle hook by SNS",
    cause: "LifecycleHook",
    source: "aws/queue/",
    say: byQueue((about) => inSns(directHook(about))),
  },
  {
    signal: "the queue: AWS Health",
    cause: "ScheduledMaintenance",
    source: "aws/queue/",
    say: byQueue(({ instanceId, ...about }) =>
      healthEvent(about, {
        entities: [{ entityValue: instanceId, status: "PENDING" }],
        startTime: new Date(Date.now() + 5 * minute).toUTCString(),
      }),
    ),
  },
  {
    signal: "the Node: AKS' condition PreemptionScheduled",
    cause: "SpotInterruption",
    source: "node/PreemptionScheduled",
    say: byCondition("PreemptionScheduled", {
      ...{ status: "True", reason: "SpotEvictionIncoming", message: "Spot eviction incoming" },
    }),
  },
  {
    signal: "the Node: AKS' condition VMEventScheduled",
    cause: "ScheduledMaintenance",
    source: "node/VMEventScheduled",
    say: byCondition("VMEventScheduled", {
      ...{ status: "True", reason: "RebootScheduled", message: "Reboot Scheduled" },
    }),
  },
  {
    signal: "the Node's Events: PreemptScheduled",
    cause: "SpotInterruption",
    source: "azure/node-event",
    say: byEvent("PreemptScheduled"),
  },
  {
    signal: "the Node's Events: RedeployScheduled",
    cause: "ScheduledMaintenance",
    source: "azure/node-event",
    say: byEvent("RedeployScheduled"),
  },
];

const rows = signals.map((signal, place) => ({ ...signal, node: `node-${place + 1}` }));

function providerIdOf({ source, node }: (typeof rows)[number]): string | undefined {
  if (source.includes("aws")) return `aws:///eu-west-1a/${instanceIdOf(node)}`;
  if (source.includes("gcp")) return undefined;
  return `azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/${node}`;
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "lastcall-signals-"));
  audit = createAuditLog();
  [plane, moto] = await Promise.all([
    startControlPlane({ apiServerFlags: audit.flags }),
    Moto.start(),
  ]);
  await mustRun(plane, ["apply", "-k", join(deploy, "crds")]);
  await mustRun(plane, ["apply", "-f", join(deploy, "base/namespace.yaml")]);
  await mustRun(plane, ["apply", "-f", join(deploy, "base/rbac.yaml")]);
  await mustRun(plane, ["apply", "-k", join(deploy, "agent")]);
  // Just after its CRD was made, a first list may be answered 429: storage is initializing.
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
  await createNodes(plane, [...nodes, { name: "spared", provisioning: "spot" }]);
  await mustRun(plane, ["apply", "-f", "-"], {
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "DeparturePolicy",
    metadata: { name: "spot" },
    spec: { lifetime: {}, onNotice: { rebalance: "Drain" } },
  });
  for (const { name } of [...nodes, { name: "spared" }]) await createPod(name);
  const [health, metrics] = [await freePort(), await freePort()];
  const kubeconfig = plane.kubeconfigFor("lastcall", await plane.tokenFor("lastcall", "lastcall"));
  controller = startLastcall(
    [
      ...["run", "--kubeconfig", kubeconfig, "--sqs-queue-url", moto.queueUrl],
      ...["--health-address", `127.0.0.1:${health}`, "--metrics-address", `127.0.0.1:${metrics}`],
    ],
    { folder, env: moto.environment },
  );
  await until("an agent is on each node", async () => {
    return (await agentPodsOf(plane)).length === nodes.length + 1;
  });
  await until("all pods run", async () => {
    const { body } = await plane.request({ path: "/api/v1/namespaces/default/pods" });
    const running = body.items.filter((pod: { status: { phase: string } }) => {
      return pod.status.phase === "Running";
    });
    return running.length === nodes.length + 1;
  });
  // From now on this node's kubelet is nobody's: one that is well would say so again at once.
  const shutting = rows.find(({ source }) => source === "node/Ready")?.node ?? "";
  await mustRun(plane, ["label", "node", shutting, `${kubeletLabel.key}-`]);
  onlooker = new Onlooker(plane);
  await onlooker.start();
  await until("the controller is ready", async () => {
    return (await fetch(`http://127.0.0.1:${health}/readyz`).catch(() => undefined))?.ok;
  });
});

afterEach(async () => {
  // The agent before the service that it listens to.
  for (const end of atEnd.reverse()) await end();
  atEnd = [];
});

afterAll(async () => {
  await controller?.kill();
  await onlooker?.stop();
  await moto?.stop();
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

function changesOf(node: string) {
  return onlooker.changes().flatMap((change) => {
    return change.kind === "Node" && nameOf(change.object) === node ? [change.object] : [];
  });
}

describe("on a real control plane the word of", () => {
  test.each(rows)("$signal has its node drained: $cause", async ({ node, cause, source, say }) => {
    await say(node);
    const made = await until("the Departure is there", async () => {
      return onlooker.changes().find((change) => {
        return change.kind === "Departure" && change.object.spec?.node?.name === node;
      });
    });
    expect(made.object.spec).toMatchObject({ cause });
    expect((made.object.spec as { source: string }).source.startsWith(source)).toBe(true);
    const marked = await until("the node is marked", async () => {
      return changesOf(node).find(({ spec }) => spec?.unschedulable === true);
    });
    // The first that anybody sees of it is the whole mark.
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

test("an onlooker has seen nothing amiss", () => {
  const user = controllerUser;
  const noticed = rows.map(({ node }) => node);
  const history = {
    changes: onlooker.changes(),
    audit: audit.read().filter((entry) => entry.user === user),
    ...{ releases: [], machineEnds: [] },
  };
  expect(judgeNotices(history, { noticed, spared: ["spared"], user })).toEqual([]);
});
