/**
 * The bundled responder in AWS's own Lambda emulator: an interruption deregisters, quarantines and
 * announces the machine; three deliveries lead to the same end state.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { LambdaEmulator } from "../support/lambda-emulator.ts";
import { LoadBalancerServer } from "../support/load-balancer-server.ts";
import { NetworkServer, type ServedInstance } from "../support/network-server.ts";
import { SnsServer } from "../support/sns-server.ts";

const topicArn = "arn:aws:sns:eu-west-1:123456789012:spot";
const actions = [
  { name: "targets", at: "AtNotice", deregisterTargets: { wait: true } },
  { name: "quarantine", at: "AtNotice", replaceSecurityGroups: { groupIds: ["sg-0abc"] } },
  { name: "tell", at: "AtEnd", sns: { topicArn, subject: "{{node}} {{outcome}}" } },
];

const balancers = new LoadBalancerServer();
const ec2 = new NetworkServer();
const sns = new SnsServer();
let emulator: LambdaEmulator;
let instance: ServedInstance;

beforeAll(async () => {
  await Promise.all([balancers.start(), ec2.start(), sns.start()]);
  sns.topics.add(topicArn);
  for (const id of ["sg-0abc", "sg-nodes"]) ec2.securityGroups.set(id, "vpc-a");
  instance = ec2.addInstance(1);
  ec2.addInterface(instance, { addresses: ["10.0.1.7"] });
  balancers.addGroup("web", { drainMs: 3000, targets: [{ id: instance.id, port: 80 }] });
  balancers.addGroup("pods", { type: "ip", targets: [{ id: "10.0.1.7", port: 8080 }] });
  balancers.addClassic("classic", [instance.id]);
  emulator = await startEmulator(actions);
});
afterAll(() => Promise.all([emulator?.stop(), balancers.stop(), ec2.stop(), sns.stop()]));

function startEmulator(of: readonly object[]): Promise<LambdaEmulator> {
  return LambdaEmulator.start({
    AWS_REGION: "eu-west-1",
    AWS_ACCESS_KEY_ID: "test",
    AWS_SECRET_ACCESS_KEY: "test",
    AWS_ENDPOINT_URL_ELASTIC_LOAD_BALANCING: balancers.url,
    AWS_ENDPOINT_URL_ELASTIC_LOAD_BALANCING_V2: balancers.url,
    AWS_ENDPOINT_URL_EC2: ec2.url,
    AWS_ENDPOINT_URL_SNS: sns.url,
    LASTCALL_ACTIONS: JSON.stringify(of),
  });
}

function interruption({ id }: ServedInstance = instance) {
  return {
    ...{ version: "0", id: "12345678-1234-1234-1234-123456789012", source: "aws.ec2" },
    "detail-type": "EC2 Spot Instance Interruption Warning",
    ...{ account: "123456789012", time: new Date().toISOString(), region: "eu-west-1" },
    resources: [`arn:aws:ec2:eu-west-1b:instance/${id}`],
    detail: { "instance-id": id, "instance-action": "terminate" },
  };
}

const done = { state: "Done", detail: expect.any(String), seconds: expect.any(Number) };

test("an event without an interruption is answered within a second of a cold start", async () => {
  const detail = { "instance-id": instance.id, state: "running" };
  const event = {
    ...interruption(),
    "detail-type": "EC2 Instance State-change Notification",
    detail,
  };
  const { status, answer, ms } = await emulator.invoke(event);
  expect({ status, answer }).toEqual({
    status: 200,
    answer: { actions: [], summary: expect.any(String) },
  });
  expect(ms).toBeLessThan(1000);
});

test("three deliveries of an interruption have one end state, recorded by the first", async () => {
  const answers: unknown[] = [];
  for (let attempt = 0; attempt < 3; attempt += 1) {
    answers.push((await emulator.invoke(interruption())).answer);
  }
  expect(balancers.groups.flatMap((group) => balancers.serving(group))).toEqual([]);
  expect([...(balancers.classics[0]?.instances ?? [])]).toEqual([]);
  expect(ec2.interfaces.map(({ groups }) => groups)).toEqual([["sg-0abc"]]);
  expect(ec2.count("ModifyNetworkInterfaceAttribute")).toBe(1);
  expect(sns.published.map(({ subject }) => subject)).toEqual(
    Array(3).fill(`${instance.dnsName} Noticed`),
  );
  const undo = { networkInterfaces: [{ id: ec2.interfaces[0]?.id, groupIds: ["sg-nodes"] }] };
  expect(answers[0]).toMatchObject({
    instanceId: instance.id,
    actions: [
      { name: "targets", ...done, undo: { targets: [{ port: 80 }, { port: 8080 }] } },
      { name: "quarantine", ...done, undo },
      { name: "tell", ...done },
    ],
  });
  // Target groups still show what was deregistered before; the interfaces show no original state.
  for (const answer of answers.slice(1) as readonly { actions: readonly object[] }[]) {
    expect(answer.actions).toMatchObject([done, done, done]);
    expect(answer.actions[1]).not.toHaveProperty("undo");
  }
  expect(emulator.residentMiB()).toBeLessThan(160);
  console.log(`responder: ${emulator.residentMiB().toFixed(0)} MiB resident`);
});

test("an invalid event fails with what is expected", async () => {
  const { answer } = await emulator.invoke({ instanceId: "my-machine" });
  expect(answer).toMatchObject({
    errorMessage: expect.stringContaining("expected an id such as i-"),
  });
});

test("the actions of an interruption complete within a second of a cold start", async () => {
  const cold = await startEmulator([
    { name: "targets", at: "AtNotice", deregisterTargets: { wait: false } },
    ...actions.slice(1),
  ]);
  try {
    const machine = ec2.addInstance(2);
    ec2.addInterface(machine, { addresses: ["10.0.1.8"] });
    const group = balancers.addGroup("cold", { targets: [{ id: machine.id, port: 80 }] });
    const { answer } = await cold.invoke(interruption(machine));
    expect(answer).toMatchObject({ actions: [done, done, done] });
    expect(balancers.serving(group)).toEqual([]);
    const [initMs = Number.NaN, ms = Number.NaN] = cold.reported();
    console.log(`responder: cold start ${initMs} ms, answer ${ms} ms, by the emulator`);
    expect(initMs + ms).toBeLessThan(1000);
    expect(cold.residentMiB()).toBeLessThan(160);
  } finally {
    await cold.stop();
  }
});
