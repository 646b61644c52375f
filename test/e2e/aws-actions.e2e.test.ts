/**
 * Actions at an interruption in AWS, on a real control plane: at a notice of its metadata service a
 * machine is deregistered, quarantined, silenced, drained and announced; at an event, the responder
 * does the same without a drain; and all of it is reverted when the notice is withdrawn.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { formatInstant, instant } from "../../src/core/time/time.ts";
import {
  type ActionServer,
  type ReceivedRequest,
  startActionServer,
} from "../support/action-server.ts";
import { AgentProcess } from "../support/agent-process.ts";
import { agentPodsOf, agentTokenOn } from "../support/agent-token.ts";
import { AwsMetadataServer } from "../support/aws-metadata-server.ts";
import { LambdaEmulator } from "../support/lambda-emulator.ts";
import { LoadBalancerServer } from "../support/load-balancer-server.ts";
import { NetworkServer } from "../support/network-server.ts";
import { spotWarning } from "../support/queue-body.ts";
import { mustRun } from "./must-run.ts";
import { type QueueNode, QueueWorld } from "./queue-world.ts";

const topicArn = "arn:aws:sns:eu-west-1:123456789012:departures";
const bootID = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
const deploy = join(import.meta.dirname, "..", "..", "deploy");

interface Silence {
  readonly id: string;
  readonly matchers: readonly { readonly value: string }[];
  status: { state: string };
}

const silences: Silence[] = [];
const balancers = new LoadBalancerServer();
const ec2 = new NetworkServer();
const agents: { readonly agent: AgentProcess; readonly metadata: AwsMetadataServer }[] = [];
let alertmanager: ActionServer;
let emulator: LambdaEmulator | undefined;
let world: QueueWorld;
let announcements = "";

beforeAll(async () => {
  await Promise.all([balancers.start(), ec2.start()]);
  alertmanager = await startActionServer(answerSilences);
  world = await QueueWorld.start(3, { bootID });
  registerMachines();
  await announceTo("announcements");
  await mustRun(world.plane, ["apply", "-f", "-"], {
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "DeparturePolicy",
    metadata: { name: "spot" },
    spec: { lifetime: {}, actions: actions() },
  });
  await mustRun(world.plane, ["apply", "-k", join(deploy, "agent")]);
  await world.startController("--action-hosts", alertmanager.host);
  await world.until("an agent is on each node", async () => {
    return (await agentPodsOf(world.plane)).length >= world.nodes.length;
  });
  await world.until("the load balancers are read", async () => {
    return balancers.count("DescribeTargetHealth") >= 2;
  });
});
afterAll(async () => {
  await Promise.all(agents.map(({ agent }) => agent.stop()));
  await world?.stop();
  await emulator?.stop();
  const servers = [...agents.map(({ metadata }) => metadata), balancers, ec2];
  await Promise.all([...servers.map((server) => server.stop()), alertmanager?.close()]);
});

function actions(): readonly object[] {
  return [
    { name: "targets", at: "AtNotice", timeout: "30s", deregisterTargets: { wait: true } },
    { name: "quarantine", at: "AtNotice", replaceSecurityGroups: { groupIds: ["sg-0abc"] } },
    {
      ...{ name: "mute", at: "AtNotice" },
      alertmanagerSilence: { url: alertmanager.url, matchers: ['instance=~"{{node}}:.*"'] },
    },
    { name: "tell", at: "AtEnd", sns: { topicArn, subject: "{{node}} leaves" } },
  ];
}

/** Each machine is in two target groups and a classic load balancer, with two interfaces. */
function registerMachines(): void {
  for (const id of ["sg-0abc", "sg-nodes"]) ec2.securityGroups.set(id, "vpc-a");
  const ids = world.nodes.map(({ instanceId }) => instanceId);
  const targets = ids.map((id) => ({ id, port: 8080 }));
  balancers.addGroup("web", { drainMs: 5000, targets: [...targets] });
  balancers.addGroup("api", { targets: [...targets] });
  balancers.addClassic("classic", ids);
  for (const { instanceId: id, name: dnsName } of world.nodes) {
    const instance = { id, dnsName, vpc: "vpc-a", state: "running" as const };
    ec2.instances.push(instance);
    for (let place = 0; place < 2; place += 1) ec2.addInterface(instance);
  }
}

/** Creates a topic in moto with a queue subscribed to it. */
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

function answerSilences({ method, path, body }: ReceivedRequest) {
  if (method === "GET") return { status: 200, body: silences };
  if (method === "POST") {
    const id = `silence-${silences.length}`;
    silences.push({ ...(JSON.parse(body) as Silence), id, status: { state: "active" } });
    return { status: 200, body: { silenceID: id } };
  }
  const found = silences.find(({ id }) => path.endsWith(`/${id}`));
  if (found !== undefined) found.status = { state: "expired" };
  return { status: found === undefined ? 404 : 200 };
}

/** Reads the next message published to the topic. */
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

/** What the services show of one machine. */
function seen({ instanceId, name }: QueueNode) {
  const serving = [
    ...balancers.groups.flatMap((group) => balancers.serving(group)),
    ...balancers.classics.flatMap(({ instances }) => [...instances]),
  ].filter((target) => target.startsWith(instanceId));
  const own = ec2.interfaces.filter(({ instance }) => instance === instanceId);
  const muted = silences.filter(({ matchers, status }) => {
    return status.state === "active" && matchers[0]?.value.startsWith(name.replaceAll(".", "\\."));
  });
  return {
    serving,
    groups: own.map(({ groups }) => groups.join()),
    muted: muted.length,
  };
}

const out = { serving: [], groups: ["sg-0abc", "sg-0abc"], muted: 1 };

async function departureOf({ name }: QueueNode) {
  return (await world.departures()).find(({ spec }) => spec?.node?.name === name);
}

/** The pods that a drain evicts. */
async function podsOn(node: QueueNode) {
  return (await world.podsOn(node)).filter(({ metadata }) => metadata?.namespace === "default");
}

/** Starts the agent of a node with a metadata service of its own. */
async function agentOn(node: QueueNode): Promise<AwsMetadataServer> {
  const metadata = await new AwsMetadataServer(() => instant(Date.now())).start();
  metadata.values.set("instance-id", node.instanceId);
  const agent = new AgentProcess({
    ...{ nodeName: node.name, metadataUrl: metadata.url },
    ...{ apiUrl: world.plane.url, caFile: world.plane.caFile },
    token: await agentTokenOn(world.plane, node.name),
  });
  agents.push({ agent, metadata });
  await world.until("the agent has asked", async () => {
    return metadata.seen.some(({ url }) => url.endsWith("spot/instance-action"));
  });
  return metadata;
}

function interrupt(metadata: AwsMetadataServer): number {
  const warnedMs = Date.now();
  const time = formatInstant(instant(warnedMs + 120_000));
  metadata.values.set("spot/instance-action", JSON.stringify({ action: "terminate", time }));
  return warnedMs;
}

test("a notice deregisters, quarantines, silences, drains and announces a machine", async () => {
  const [node] = world.nodes as [QueueNode];
  const metadata = await agentOn(node);
  const calls = balancers.calls.length;
  const warnedMs = interrupt(metadata);
  await world.until("it is out, quarantined and muted", async () => {
    return JSON.stringify(seen(node)) === JSON.stringify(out);
  });
  const looks = balancers.calls.slice(calls).map(({ action }) => action);
  expect(looks.filter((action) => action === "DeregisterTargets")).toHaveLength(2);
  await world.until("its pods have left", async () => (await podsOn(node)).length === 0);
  // If the machine goes before the controller sees the last pod go, that pod counts as left.
  await world.until("the drain is over", async () => {
    return (await departureOf(node))?.status?.phase === "Releasing";
  });
  await world.take(node);
  const { Subject, Message } = await announced();
  expect(Date.now() - warnedMs).toBeLessThan(120_000);
  console.log(Message);
  expect(Subject).toBe(`${node.name} leaves`);
  const steps = Message.split("\n").map((line) => /\+(\d+\.\d)s /.exec(line)?.[1] ?? "");
  const spans = steps.filter(Boolean).map(Number);
  expect(spans).toEqual(spans.toSorted((a, b) => a - b));
  expect(Message).toMatch(/\+\d+\.\ds action targets .*Done in .*deregistered from 3 groups/);
  expect(Message).toMatch(/\+\d+\.\ds action quarantine .*Done in/);
  expect(Message).toMatch(/\+\d+\.\ds action mute .*Done in/);
  expect(Message).toMatch(/pods: \d+ in total, \d+ evicted, 0 .*, 0 cut short, 0 left/);
  expect((await departureOf(node))?.spec?.source).toMatch(/^agent\/aws\//);
});

test("a withdrawn notice reverts the actions and uncordons the node", async () => {
  const [, node] = world.nodes as [QueueNode, QueueNode];
  const before = seen(node);
  expect(before.serving).toHaveLength(3);
  const metadata = await agentOn(node);
  interrupt(metadata);
  await world.until("it is out, quarantined and muted", async () => {
    return JSON.stringify(seen(node)) === JSON.stringify(out);
  });
  metadata.values.delete("spot/instance-action");
  await world.until("it is as it was", async () => {
    return JSON.stringify(seen(node)) === JSON.stringify(before);
  });
  await world.until("it takes pods again", async () => {
    return !(await world.cordoned()).includes(node.name);
  });
  expect((await announced()).Message).toContain("outcome Cancelled");
  expect((await departureOf(node))?.status?.outcome).toBe("Cancelled");
});

test("an event to the responder runs the same actions without agent and controller", async () => {
  const [, , node] = world.nodes as [QueueNode, QueueNode, QueueNode];
  emulator = await LambdaEmulator.start({
    ...world.moto.environment,
    ...world.environment,
    LASTCALL_ACTIONS: JSON.stringify(actions()),
    LASTCALL_ACTION_HOSTS: alertmanager.host,
  });
  const { instanceId } = node;
  const time = new Date().toISOString().replace(/\.\d+Z$/, "Z");
  const event = spotWarning({ instanceId, time, id: "12345678-1234-1234-1234-123456789012" });
  const { answer } = await emulator.invoke(typeof event === "string" ? JSON.parse(event) : event);
  expect(seen(node)).toEqual(out);
  const { Subject, Message } = await announced();
  expect(Subject).toBe(`${node.name} leaves`);
  expect(Message).toMatch(/action targets .*Done in .*deregistered from 3 groups/);
  expect(answer).toMatchObject({
    summary: expect.stringContaining("action quarantine"),
    actions: actions().map(() => ({ state: "Done" })),
  });
  expect(await departureOf(node)).toBeUndefined();
});
