/**
 * The controller is killed between any two calls of its actions in AWS, before and after their
 * effect. Each machine ends as one whose controller is not killed, only a message is sent twice,
 * and the services count every call.
 */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Rng, seededRng } from "../../src/core/chance/chance.ts";
import type { LastcallProcess } from "../support/lastcall-process.ts";
import { LoadBalancerServer } from "../support/load-balancer-server.ts";
import { NetworkServer } from "../support/network-server.ts";
import { type Relay, type RelayCall, startRelay } from "../support/relay.ts";
import { SnsServer } from "../support/sns-server.ts";
import { mustRun } from "./must-run.ts";
import { type QueueNode, QueueWorld } from "./queue-world.ts";
import { makeDeparture, noticeOf } from "./raw-departure.ts";

const topicArn = "arn:aws:sns:eu-west-1:123456789012:departures";
const seed = Number(process.env.E2E_SEED ?? 1);

/** The calls that change something, and the writes of `status.actions`, in order. */
const steps = [
  ...(["Begun", "Undo", "DeregisterTargets", "DeregisterInstancesFromLoadBalancer"] as const),
  ...(["ModifyNetworkInterfaceAttribute", "DetachInstances", "Done", "Publish"] as const),
];
type Step = (typeof steps)[number];

/** Before the call reaches its server, or before the response reaches the controller. */
type Side = "BeforeCall" | "BeforeAnswer";

interface Instant {
  readonly step: Step;
  readonly side: Side;
  /** How many calls of this step pass before that. */
  readonly spare: number;
}

const instants = drawInstants(seededRng(seed));
const balancers = new LoadBalancerServer();
const ec2 = new NetworkServer();
const sns = new SnsServer();
const relays: Relay[] = [];
/** Each call that was carried out, such as `Modify… eni-1`. */
const carriedOut: string[] = [];
let world: QueueWorld;
let controller: LastcallProcess;
/** The machine and the call at which the controller is killed next. */
let aim: { readonly node: QueueNode; readonly at: Instant; spared: number } | undefined;
let stricken = 0;

function drawInstants(rng: Rng): readonly Instant[] {
  const ofWrites = new Set<Step>(["Begun", "Undo", "Done"]);
  const both = steps.flatMap((step): readonly Instant[] => {
    const of = (side: Side) => ({ step, side, spare: sparesOf(step, rng) });
    if (ofWrites.has(step)) return [of(rng() < 0.5 ? "BeforeCall" : "BeforeAnswer")];
    return [of("BeforeCall"), of("BeforeAnswer")];
  });
  const keyed = both.map((one) => ({ one, key: rng() }));
  return keyed.toSorted((a, b) => a.key - b.key).map(({ one }) => one);
}

/** Each machine has two target groups and two interfaces. */
function sparesOf(step: Step, rng: Rng): number {
  const isTwo = step === "DeregisterTargets" || step === "ModifyNetworkInterfaceAttribute";
  return isTwo ? Math.floor(rng() * 2) : 0;
}

beforeAll(async () => {
  await Promise.all([balancers.start(), ec2.start(), sns.start()]);
  sns.topics.add(topicArn);
  // The controller is not killed while the last one leaves.
  world = await QueueWorld.start(instants.length + 1);
  registerMachines();
  const { url, caFile } = world.plane;
  world.server = await relayTo(url, () => readFileSync(caFile, "utf8"));
  const elb = await relayTo(balancers.url);
  world.environment = {
    AWS_ENDPOINT_URL_ELASTIC_LOAD_BALANCING: elb,
    AWS_ENDPOINT_URL_ELASTIC_LOAD_BALANCING_V2: elb,
    AWS_ENDPOINT_URL_EC2: await relayTo(ec2.url),
    AWS_ENDPOINT_URL_AUTO_SCALING: await relayTo(world.autoScaling.url),
    AWS_ENDPOINT_URL_SNS: await relayTo(sns.url),
  };
  await mustRun(world.plane, ["apply", "-f", "-"], {
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "DeparturePolicy",
    metadata: { name: "spot" },
    spec: {
      lifetime: {},
      actions: [
        { name: "targets", at: "AtNotice", deregisterTargets: { wait: false } },
        { name: "quarantine", at: "AtNotice", replaceSecurityGroups: { groupIds: ["sg-0abc"] } },
        { name: "replace", at: "AtNotice", detach: {} },
        { name: "tell", at: "AtEnd", sns: { topicArn, subject: "{{node}} leaves" } },
      ],
    },
  });
  controller = await startController();
});
afterAll(async () => {
  await world?.stop();
  await Promise.all(relays.map((relay) => relay.close()));
  await Promise.all([balancers.stop(), ec2.stop(), sns.stop()]);
});

function registerMachines(): void {
  for (const id of ["sg-0abc", "sg-nodes"]) ec2.securityGroups.set(id, "vpc-a");
  const ids = world.nodes.map(({ instanceId }) => instanceId);
  for (const name of ["web", "api"]) {
    balancers.addGroup(name, { targets: ids.map((id) => ({ id, port: 8080 })) });
  }
  balancers.addClassic("classic", ids);
  for (const { instanceId: id, name: dnsName } of world.nodes) {
    const instance = { id, dnsName, vpc: "vpc-a", state: "running" as const };
    ec2.instances.push(instance);
    for (let place = 0; place < 2; place += 1) ec2.addInterface(instance);
    world.autoScaling.members.set(id, "workers");
  }
}

async function relayTo(target: string, ca?: () => string): Promise<string> {
  const relay = await startRelay({
    target,
    ...(ca && { ca }),
    before: async (call) => ((await strikes("BeforeCall", call)) ? "Drop" : "Pass"),
    after: async (call) => {
      const about = actOf(call);
      if (about !== undefined) carriedOut.push(`${about.steps.join()} ${about.on}`);
      await strikes("BeforeAnswer", call);
    },
  });
  relays.push(relay);
  return relay.url;
}

/** Only one runs at a time: this test is not about the Lease. */
function startController(): Promise<LastcallProcess> {
  return world.startController("--leader-elect=false");
}

interface Act {
  /** One write may report that one action has ended and that another is running. */
  readonly steps: readonly Step[];
  /** What the call acts on. */
  readonly on: string;
  readonly isAbout: (node: QueueNode) => boolean;
}

function actOf({ method, path, body }: RelayCall): Act | undefined {
  if (/\/departures\/[^/]+\/status$/.test(path.split("?")[0] ?? "")) return writeOf(path, body);
  if (method !== "POST" || !body.startsWith("Action=")) return undefined;
  const asked = new URLSearchParams(body);
  // A dry run, before any departure.
  if (asked.get("DryRun") === "true") return undefined;
  const step = steps.find((one) => one === asked.get("Action"));
  if (step === undefined) return undefined;
  const eni = ec2.interfaces.find(({ id }) => id === asked.get("NetworkInterfaceId"));
  const values = [...asked.values(), eni?.instance ?? ""];
  const group = asked.get("TargetGroupArn") ?? asked.get("LoadBalancerName") ?? "";
  const named = values.find((value) => world.nodes.some(({ instanceId }) => value === instanceId));
  const about = ({ instanceId, name }: QueueNode) =>
    values.some((value) => value === instanceId || value === `${name} leaves`);
  const on = [eni?.id ?? group, named ?? asked.get("Subject")].filter(Boolean).join(" ");
  return { steps: [step], on, isAbout: about };
}

function writeOf(path: string, body: string): Act | undefined {
  const { status } = JSON.parse(body) as { status?: { actions?: Recorded[] } };
  const records = status?.actions ?? [];
  const isRunning = ({ state, undo }: Recorded) => state === "Running" && undo === undefined;
  const isKept = ({ state, undo }: Recorded) => state === "Running" && undo !== undefined;
  const found: Readonly<Partial<Record<Step, boolean>>> = {
    Begun: records.some(isRunning),
    Undo: records.some(isKept),
    Done: records.some(({ name, state }) => name === "quarantine" && state === "Done"),
  };
  const isAbout = ({ name }: QueueNode) => path.includes(`/departures/${name}-`);
  return { steps: steps.filter((step) => found[step] === true), on: path, isAbout };
}

async function strikes(side: Side, call: RelayCall): Promise<boolean> {
  const { node, at } = aim ?? {};
  const about = actOf(call);
  if (aim === undefined || node === undefined || about === undefined) return false;
  if (side !== at?.side || !about.steps.includes(at.step) || !about.isAbout(node)) return false;
  if (aim.spared < at.spare) {
    aim.spared += 1;
    return false;
  }
  aim = undefined;
  await controller.kill();
  stricken += 1;
  return true;
}

interface Recorded {
  readonly name: string;
  readonly state: string;
  readonly undo?: { readonly networkInterfaces?: readonly object[] };
}

async function recordsOf({ name }: QueueNode): Promise<readonly Recorded[]> {
  const found = (await world.departures()).find(({ spec }) => spec?.node?.name === name);
  return (found?.status as { actions?: readonly Recorded[] } | undefined)?.actions ?? [];
}

async function haveEnded(node: QueueNode, names: readonly string[]): Promise<boolean> {
  const records = await recordsOf(node);
  return names.every((name) => records.some((one) => one.name === name && one.state === "Done"));
}

const atNotice = ["targets", "quarantine", "replace"];

async function leave(node: QueueNode, at: Instant | undefined): Promise<void> {
  const before = stricken;
  const isStruck = async () => stricken > before;
  if (at !== undefined) aim = { node, at, spared: 0 };
  // As an agent creates it: a queue would hide a message that a killed receiver has in flight.
  await makeDeparture(world.plane, node.name, { spec: noticeOf(120) });
  const isLast = at?.step === "Publish";
  if (at !== undefined && !isLast) {
    await world.until(`it is killed at ${at.step}`, isStruck);
    controller = await startController();
  }
  await world.until("its actions are done", () => haveEnded(node, atNotice));
  if (!isLast) return;
  await world.until("its pods have left", async () => (await world.podsOn(node)).length === 0);
  await world.take(node);
  await world.until(`it is killed at ${at?.step}`, isStruck);
  controller = await startController();
}

test(`the controller is killed at ${instants.length} instants (E2E_SEED=${seed})`, async () => {
  for (const [place, node] of world.nodes.entries()) await leave(node, instants[place]);
  console.table(instants);
  expect(stricken).toBe(instants.length);
  const rest = world.nodes.filter((_, place) => instants[place]?.step !== "Publish");
  for (const node of rest) {
    await world.until("its pods have left", async () => (await world.podsOn(node)).length === 0);
    await world.take(node);
  }
  for (const node of world.nodes) {
    await world.until("it is announced", () => haveEnded(node, [...atNotice, "tell"]));
  }
});

test("each machine ends as it does without a kill", async () => {
  const ends = await Promise.all(world.nodes.map(async (node) => endOf(node)));
  expect(ends.at(-1)).toEqual({
    ...{ serving: [], groups: ["sg-0abc", "sg-0abc"], group: undefined },
    states: ["Done", "Done", "Done", "Done"],
    // The original state: the first read counts, however many follow.
    undo: [["sg-nodes"], ["sg-nodes"], 3],
  });
  for (const [place, end] of ends.entries()) {
    expect(end, JSON.stringify(instants[place])).toEqual(ends.at(-1));
  }
});

async function endOf(node: QueueNode) {
  const { instanceId } = node;
  const serving = [
    ...balancers.groups.flatMap((group) => balancers.serving(group)),
    ...balancers.classics.flatMap(({ instances }) => [...instances]),
  ].filter((target) => target.startsWith(instanceId));
  const own = ec2.interfaces.filter(({ instance }) => instance === instanceId);
  const records = await recordsOf(node);
  const undo = (name: string) => records.find((one) => one.name === name)?.undo ?? {};
  const { networkInterfaces = [] } = undo("quarantine") as {
    networkInterfaces?: readonly { readonly groupIds: readonly string[] }[];
  };
  const { targets = [], classicLoadBalancers = [] } = undo("targets") as Record<string, object[]>;
  return {
    serving,
    groups: own.map(({ groups }) => groups.join()),
    group: world.autoScaling.members.get(instanceId),
    states: records.map(({ state }) => state),
    undo: [
      ...networkInterfaces.map(({ groupIds }) => groupIds),
      targets.length + classicLoadBalancers.length,
    ],
  };
}

test("only deregistrations and messages are repeated, as the services count", () => {
  const times = (act: string) => carriedOut.filter((one) => one === act).length;
  for (const [place, node] of world.nodes.entries()) {
    const { step, side } = instants[place] ?? {};
    const about = `${step} ${side}`;
    for (const { id, instance } of ec2.interfaces) {
      if (instance !== node.instanceId) continue;
      expect(times(`ModifyNetworkInterfaceAttribute ${id} ${instance}`), about).toBe(1);
    }
    expect(times(`DetachInstances ${node.instanceId}`), about).toBe(1);
    // A second deregistration changes nothing; it happens if the first was not recorded.
    const most = step === undefined || step === "Publish" ? 1 : 2;
    for (const [act, on] of deregistrations()) {
      const count = times(`${act} ${on} ${node.instanceId}`);
      expect(count, about).toBeGreaterThanOrEqual(1);
      expect(count, about).toBeLessThanOrEqual(most);
    }
    const isRepeated = step === "Publish" && side === "BeforeAnswer";
    expect(times(`Publish ${node.name} leaves`), about).toBe(isRepeated ? 2 : 1);
  }
});

function deregistrations(): readonly (readonly [Step, string])[] {
  return [
    ...balancers.groups.map(({ arn }) => ["DeregisterTargets", arn] as const),
    ...balancers.classics.map(({ name }) => ["DeregisterInstancesFromLoadBalancer", name] as const),
  ];
}
