/**
 * Around an interruption in AWS, on a real control plane: the machine leaves its target groups, is
 * quarantined, drained and announced, and where the notice is withdrawn all of it comes back.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { LoadBalancerServer } from "../support/load-balancer-server.ts";
import { NetworkServer } from "../support/network-server.ts";
import { spotWarning } from "../support/queue-body.ts";
import { mustRun } from "./must-run.ts";
import { type QueueNode, QueueWorld } from "./queue-world.ts";

const topicArn = "arn:aws:sns:eu-west-1:123456789012:departures";
const balancers = new LoadBalancerServer();
const ec2 = new NetworkServer();
let world: QueueWorld;

beforeAll(async () => {
  await Promise.all([balancers.start(), ec2.start()]);
  world = await QueueWorld.start(3);
  for (const id of ["sg-0abc", "sg-nodes"]) ec2.securityGroups.set(id, "vpc-a");
  const targets = world.nodes.map(({ instanceId }) => ({ id: instanceId, port: 8080 }));
  balancers.addGroup("web", { drainMs: 5000, targets: [...targets] });
  balancers.addGroup("api", { targets: [...targets] });
  balancers.addClassic(
    "classic",
    world.nodes.map(({ instanceId }) => instanceId),
  );
  for (const { instanceId: id, name: dnsName } of world.nodes) {
    const instance = { id, dnsName, vpc: "vpc-a", state: "running" as const };
    ec2.instances.push(instance);
    ec2.addInterface(instance);
    ec2.addInterface(instance);
  }
  await announceTo("announcements");
  await mustRun(world.plane, ["apply", "-f", "-"], {
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "DeparturePolicy",
    metadata: { name: "spot" },
    spec: {
      lifetime: {},
      actions: [
        { name: "targets", at: "AtNotice", timeout: "30s", deregisterTargets: { wait: true } },
        { name: "quarantine", at: "AtNotice", replaceSecurityGroups: { groupIds: ["sg-0abc"] } },
        { name: "tell", at: "AtEnd", sns: { topicArn, subject: "{{node}} {{outcome}}" } },
      ],
    },
  });
  await world.startController();
  await world.until("the load balancers are read", async () => {
    return balancers.count("DescribeTargetHealth") >= 2;
  });
});
afterAll(async () => {
  await world?.stop();
  await Promise.all([balancers.stop(), ec2.stop()]);
});

/** A topic of moto's with a queue behind it. */
async function announceTo(queue: string): Promise<void> {
  const { moto } = world;
  const notices = moto.queueUrl;
  await moto.makeQueue(queue);
  announcements = moto.queueUrl;
  moto.queueUrl = notices;
  await moto.query("sns", { Action: "CreateTopic", Name: "departures" });
  const Endpoint = `arn:aws:sqs:eu-west-1:123456789012:${queue}`;
  await moto.query("sns", { Action: "Subscribe", TopicArn: topicArn, Protocol: "sqs", Endpoint });
  world.environment = {
    AWS_ENDPOINT_URL_ELASTIC_LOAD_BALANCING: balancers.url,
    AWS_ENDPOINT_URL_ELASTIC_LOAD_BALANCING_V2: balancers.url,
    AWS_ENDPOINT_URL_EC2: ec2.url,
  };
}
let announcements = "";

/** Reads one message behind the topic. */
async function announced(): Promise<{ readonly Subject: string; readonly Message: string }> {
  const { moto } = world;
  const notices = moto.queueUrl;
  moto.queueUrl = announcements;
  const texts: string[] = [];
  try {
    await moto.read(1, 1, (text) => texts.push(text));
  } finally {
    moto.queueUrl = notices;
  }
  return JSON.parse(texts[0] ?? "{}");
}

function standing({ instanceId }: QueueNode): readonly string[] {
  return [
    ...balancers.groups.flatMap((group) => balancers.serving(group)),
    ...balancers.classics.flatMap(({ instances }) => [...instances]),
  ].filter((target) => target.startsWith(instanceId));
}

function groupsOf({ instanceId }: QueueNode): readonly string[] {
  const own = ec2.interfaces.filter(({ instance }) => instance === instanceId);
  return own.map(({ groups }) => groups.join());
}

async function departureOf({ name }: QueueNode) {
  return (await world.departures()).find(({ spec }) => spec?.node?.name === name);
}

function warn({ instanceId }: QueueNode): Promise<void> {
  const time = new Date().toISOString().replace(/\.\d+Z$/, "Z");
  return world.moto.send(spotWarning({ instanceId, time, id: `event-${instanceId}` }));
}

test("an interruption has its machine out, quarantined, drained and announced in its time", async () => {
  const [node] = world.nodes as [QueueNode];
  const calls = balancers.calls.length;
  const warnedMs = Date.now();
  await warn(node);
  await world.until("it is out of every group", async () => standing(node).length === 0);
  const looks = balancers.calls.slice(calls).map(({ action }) => action);
  expect(looks.filter((action) => action === "DeregisterTargets")).toHaveLength(2);
  await world.until("it is quarantined", async () => groupsOf(node).join() === "sg-0abc,sg-0abc");
  await world.until("its pods have left", async () => (await world.podsOn(node)).length === 0);
  expect(Date.now() - warnedMs).toBeLessThan(120_000);
  await world.take(node);
  await world.until("its departure has ended", async () => {
    const status = (await departureOf(node))?.status as { actions?: { state: string }[] };
    return status?.actions?.every(({ state }) => state === "Done");
  });
  const { Subject, Message } = await announced();
  expect(Subject).toContain(node.name);
  expect(Message).toMatch(/targets .*Done.*out of 3 groups/);
  expect(Message).toMatch(/quarantine .*Done/);
});

test("a withdrawn notice brings the machine back into its groups and out of quarantine", async () => {
  const [, node] = world.nodes as [QueueNode, QueueNode];
  const before = [standing(node), groupsOf(node)];
  await warn(node);
  await world.until("it is quarantined", async () => {
    return standing(node).length === 0 && groupsOf(node).join() === "sg-0abc,sg-0abc";
  });
  const name = (await departureOf(node))?.metadata?.name ?? "";
  const withdrawn = JSON.stringify({ spec: { withdrawnAt: new Date().toISOString() } });
  await mustRun(world.plane, ["patch", "departure", name, "--type=merge", "-p", withdrawn]);
  await world.until("it is as it was", async () => {
    return JSON.stringify([standing(node), groupsOf(node)]) === JSON.stringify(before);
  });
});
