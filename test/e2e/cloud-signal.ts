import { expect } from "vitest";
import { formatInstant, instant } from "../../src/core/time/time.ts";
import { AgentProcess } from "../support/agent-process.ts";
import { agentTokenOn } from "../support/agent-token.ts";
import { AwsMetadataServer } from "../support/aws-metadata-server.ts";
import { AzureMetadataServer } from "../support/azure-metadata-server.ts";
import type { ControlPlane } from "../support/control-plane.ts";
import type { Ec2Server } from "../support/ec2-server.ts";
import { GcpMetadataServer } from "../support/gcp-metadata-server.ts";
import { httpDate } from "../support/metadata-server.ts";
import type { Moto } from "../support/moto.ts";
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

/** The world in which notices are sent. */
export interface SignalWorld {
  readonly plane: ControlPlane;
  readonly moto: Moto;
  readonly ec2: Ec2Server;
  /** What has to be stopped, in reverse order. */
  readonly atEnd: (() => Promise<unknown>)[];
}

export interface Signal {
  readonly signal: string;
  readonly cause: string;
  readonly source: string;
  /** From the notice to the deadline; absent: neither notice nor Departure has a deadline. */
  readonly leadMs?: number;
  /** Sends the notice about the node; an agent and its service run until `atEnd` is called. */
  readonly say: (world: SignalWorld, node: string) => Promise<unknown>;
}

const now = () => instant(Date.now());
const soon = (ms: number) => instant(Date.now() + ms);
const minute = 60_000;

export function instanceIdOf(node: string): string {
  return `i-0${node.replace(/\D/g, "").padStart(16, "0")}`;
}

async function runAgent(
  { plane, atEnd }: SignalWorld,
  node: string,
  metadataUrl: string,
): Promise<void> {
  const token = await agentTokenOn(plane, node);
  const { url: apiUrl, caFile } = plane;
  const agent = new AgentProcess({ nodeName: node, metadataUrl, apiUrl, caFile, token });
  atEnd.push(() => agent.stop());
}

function byList(code: string): Signal["say"] {
  return async ({ ec2 }, node) => {
    const notBeforeAt = soon(5 * minute);
    ec2.events.push({ instance: instanceIdOf(node), id: `event-${node}`, code, notBeforeAt });
  };
}

function byEc2(path: string, value: () => unknown): Signal["say"] {
  return async (world, node) => {
    const server = await new AwsMetadataServer(now).start();
    world.atEnd.push(() => server.stop());
    const said = value();
    server.values.set(path, typeof said === "string" ? said : JSON.stringify(said));
    await runAgent(world, node, server.url);
  };
}

function byGce(path: string, value: string): Signal["say"] {
  return async (world, node) => {
    const server = await new GcpMetadataServer(now).start();
    world.atEnd.push(() => server.stop());
    server.set(path, value);
    await runAgent(world, node, server.url);
  };
}

function byAzure(EventType: string): Signal["say"] {
  return async (world, node) => {
    const server = await new AzureMetadataServer(now).start();
    world.atEnd.push(() => server.stop());
    const NotBefore = httpDate(soon(minute));
    const about = { Resources: [server.name], EventStatus: "Scheduled", NotBefore } as const;
    server.set([{ EventId: `event-${node}`, EventType, ...about }]);
    await runAgent(world, node, server.url);
  };
}

type QueueBody = (about: { instanceId: string; time: string; id: string }) => object;

function byQueue(body: QueueBody): Signal["say"] {
  return ({ moto }, node) => {
    const time = new Date().toISOString().replace(/\.\d+Z$/, "Z");
    return moto.send(body({ instanceId: instanceIdOf(node), time, id: `event-${node}` }));
  };
}

function byInstanceAction(action: string): Signal["say"] {
  const time = () => formatInstant(soon(2 * minute));
  return byEc2("spot/instance-action", () => ({ action, time: time() }));
}

function byCondition(type: string, more: object): Signal["say"] {
  return async ({ plane }, node) => {
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

/** As AKS writes it: the message names the event. */
function byVmEvent(event: string): Signal["say"] {
  return (world, node) => {
    const message = `${event} Scheduled: ${httpDate(soon(minute))}. DurationInSeconds: -1.`;
    const said = { status: "True", reason: "VMEventScheduled", message };
    return byCondition("VMEventScheduled", said)(world, node);
  };
}

/** As the problem detector of older AKS nodes writes it. */
function byEventCondition(type: string): Signal["say"] {
  return (world, node) => {
    const message = `Scheduled: ${httpDate(soon(minute))}. DurationInSeconds: -1.`;
    return byCondition(type, { status: "True", reason: type, message })(world, node);
  };
}

export interface WithdrawnSignal {
  readonly signal: string;
  /** Sends the notice about the node; the returned function withdraws it. */
  readonly say: (world: SignalWorld, node: string) => Promise<() => unknown>;
}

/**
 * The ways in which a cloud withdraws a notice; that of AWS Health is in queue.e2e.test.ts.
 */
export const withdrawnSignals: readonly WithdrawnSignal[] = [
  {
    signal: "EC2's metadata: a scheduled event that is canceled",
    say: async (world, node) => {
      const server = await new AwsMetadataServer(now).start();
      world.atEnd.push(() => server.stop());
      const event = {
        EventId: `event-${node}`,
        Code: "instance-stop",
        NotBefore: httpDate(soon(5 * minute)),
      };
      const tell = (State: string) =>
        server.values.set("events/maintenance/scheduled", JSON.stringify([{ ...event, State }]));
      tell("active");
      await runAgent(world, node, server.url);
      return () => tell("canceled");
    },
  },
  {
    signal: "Azure's Scheduled Events: one that is gone",
    say: async (world, node) => {
      const server = await new AzureMetadataServer(now).start();
      world.atEnd.push(() => server.stop());
      const NotBefore = httpDate(soon(5 * minute));
      const about = { Resources: [server.name], EventStatus: "Scheduled", NotBefore } as const;
      server.set([{ EventId: `event-${node}`, EventType: "Reboot", ...about }]);
      await runAgent(world, node, server.url);
      return () => server.set([]);
    },
  },
  {
    signal: "EC2's own list: an event that is canceled",
    say: async ({ ec2 }, node) => {
      const about = { instance: instanceIdOf(node), id: `event-${node}`, code: "instance-stop" };
      const event = { ...about, notBeforeAt: soon(5 * minute) };
      ec2.events.push(event);
      return () => {
        ec2.events = ec2.events.filter(({ id }) => id !== event.id);
        ec2.events.push({ ...event, description: "[Canceled] to be stopped" });
      };
    },
  },
  {
    signal: "the Node: AKS' condition VMEventScheduled",
    say: async (world, node) => {
      const said = { reason: "RebootScheduled", message: "RebootScheduled" };
      await byCondition("VMEventScheduled", { ...said, status: "True" })(world, node);
      return () => byCondition("VMEventScheduled", { ...said, status: "False" })(world, node);
    },
  },
];

/**
 * Every notice by which a cloud announces that it takes a machine, and how a test sends it. The
 * operations of Compute Engine also need a cloud: compute-engine.e2e.test.ts.
 */
export const cloudSignals: readonly Signal[] = [
  {
    signal: "the Node: a kubelet that shuts down",
    cause: "NodeShutdown",
    source: "node/Ready/shutdown-",
    say: byCondition("Ready", {
      ...{ status: "False", reason: "KubeletNotReady", message: "node is shutting down" },
    }),
  },
  ...(
    [
      ["terminate", 2 * minute],
      ["stop", 2 * minute],
      // Its time is two minutes ahead as well, but hibernation starts at once.
      ["hibernate", 0],
    ] as const
  ).map(([action, leadMs]) => ({
    signal: `EC2's metadata: spot/instance-action, ${action}`,
    ...{ cause: "SpotInterruption", source: "agent/aws/spot-instance-action", leadMs },
    say: byInstanceAction(action),
  })),
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
    leadMs: 5 * minute,
    say: byEc2("events/maintenance/scheduled", () => [
      {
        NotBefore: httpDate(soon(5 * minute)).replace(/^\w+, /, ""),
        ...{ Code: "instance-stop", EventId: "instance-event-1", State: "active" },
      },
    ]),
  },
  ...["Terminated", "Warmed:Terminated", "Warmed:Stopped", "Warmed:Hibernated"].map((state) => ({
    signal: `EC2's metadata: the state that the group wants, ${state}`,
    ...{ cause: "LifecycleHook", source: "agent/aws/target-lifecycle-state" },
    say: byEc2("autoscaling/target-lifecycle-state", () => state),
  })),
  {
    signal: "Compute Engine's metadata: preempted",
    cause: "SpotInterruption",
    source: "agent/gcp/preempted",
    leadMs: minute / 2,
    say: byGce("instance/preempted", "TRUE"),
  },
  {
    signal: "Compute Engine's metadata: maintenance that terminates",
    cause: "ScheduledMaintenance",
    source: "agent/gcp/maintenance-event",
    leadMs: minute,
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
    ...{ cause, source: "agent/azure/scheduled-events", leadMs: minute, say: byAzure(type) },
  })),
  ...(
    [
      ["terminate", 2 * minute],
      ["stop", 2 * minute],
      ["hibernate", 0],
    ] as const
  ).map(([action, leadMs]) => ({
    signal: `the queue: a Spot warning, ${action}`,
    ...{ cause: "SpotInterruption", source: "aws/queue/spot-interruption/event-", leadMs },
    say: byQueue((about) => spotWarning(about, action)),
  })),
  ...[
    "EC2 Capacity Reservation Instance Interruption Warning",
    "EC2 Interruptible Capacity Reservation Instance Interruption Warning",
  ].map((type) => ({
    signal: `the queue: a capacity reservation's end by the name ${type}`,
    ...{ cause: "SpotInterruption", source: "aws/queue/capacity-reservation/event-" },
    leadMs: 1.5 * minute,
    say: byQueue((about) => ({
      ...reservationWarning(about, formatInstant(soon(1.5 * minute))),
      "detail-type": type,
    })),
  })),
  {
    signal: "the queue: a rebalance recommendation",
    cause: "RebalanceRecommendation",
    source: "aws/queue/rebalance/event-",
    say: byQueue((about) => rebalance(about)),
  },
  ...["stopping", "shutting-down"].map((state) => ({
    signal: `the queue: a machine that is ${state}`,
    ...{ cause: "NodeShutdown", source: "aws/queue/state-change/event-" },
    say: byQueue((about) => stateChange(about, state)),
  })),
  ...["stopped", "terminated"].map((state) => ({
    signal: `the queue: a machine that is ${state}`,
    ...{ cause: "Preempted", source: "aws/queue/state-change/event-", leadMs: minute / 2 },
    say: byQueue((about) => stateChange(about, state)),
  })),
  ...(
    [
      ["by EventBridge", terminateAction],
      ["straight", directHook],
      ["by SNS", (about) => inSns(directHook(about))],
    ] as const satisfies readonly (readonly [string, QueueBody])[]
  ).map(([way, body]) => ({
    signal: `the queue: a lifecycle hook ${way}`,
    ...{ cause: "LifecycleHook", source: "aws/queue/lifecycle-hook/" },
    say: byQueue((about) => body(about)),
  })),
  {
    signal: "the queue: AWS Health",
    cause: "ScheduledMaintenance",
    source: "aws/queue/health/retirement-",
    leadMs: 5 * minute,
    say: byQueue(({ instanceId, ...about }) =>
      healthEvent(about, {
        entities: [{ entityValue: instanceId, status: "PENDING" }],
        startTime: httpDate(soon(5 * minute)),
      }),
    ),
  },
  ...["instance-retirement", "instance-stop", "system-reboot"].map((code) => ({
    signal: `EC2's own list: ${code}`,
    ...{ cause: "ScheduledMaintenance", source: "aws/instance-status/event-" },
    leadMs: 5 * minute,
    say: byList(code),
  })),
  {
    signal: "the Node: AKS' condition PreemptionScheduled",
    cause: "SpotInterruption",
    source: "node/PreemptionScheduled/",
    leadMs: minute / 2,
    say: byCondition("PreemptionScheduled", {
      ...{ status: "True", reason: "SpotEvictionIncoming", message: "Spot eviction incoming" },
    }),
  },
  {
    signal: "the Node: OpenShift's condition Terminating",
    ...{ cause: "SpotInterruption", source: "node/Terminating/", leadMs: minute / 2 },
    say: byCondition("Terminating", {
      ...{ status: "True", reason: "TerminationRequested" },
      message: "The cloud provider has marked this instance for termination",
    }),
  },
  ...(
    [
      ["Preempt", "SpotInterruption"],
      ["Terminate", "LifecycleHook"],
      ["Reboot", "ScheduledMaintenance"],
      ["Redeploy", "ScheduledMaintenance"],
    ] as const
  ).map(([event, cause]) => ({
    signal: `the Node: AKS' condition VMEventScheduled, ${event}`,
    ...{ cause, source: "node/VMEventScheduled/", leadMs: minute },
    say: byVmEvent(event),
  })),
  ...(
    [
      ["PreemptScheduled", "SpotInterruption"],
      ["TerminateScheduled", "LifecycleHook"],
      ["RebootScheduled", "ScheduledMaintenance"],
      ["RedeployScheduled", "ScheduledMaintenance"],
    ] as const
  ).map(([type, cause]) => ({
    signal: `the Node: AKS' condition ${type}`,
    ...{ cause, source: `node/${type}/`, leadMs: minute, say: byEventCondition(type) },
  })),
];
