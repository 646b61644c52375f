import { expect, it } from "vitest";
import { createAwsRunner } from "../../../../src/cloud/aws/actions/aws-runners.ts";
import type { ActionRunner } from "../../../../src/contracts/action-runner.ts";
import { seededRng } from "../../../../src/core/chance/chance.ts";
import type { ActionKind, ActionOf } from "../../../../src/core/policy/action.ts";
import { actionRunnerContract, aTask } from "../../../contract/action-runner.contract.ts";
import { AutoScalingServer } from "../../../support/auto-scaling-server.ts";
import { useAwsEnvironment } from "../../../support/aws-environment.ts";
import { LambdaServer } from "../../../support/lambda-server.ts";
import { LoadBalancerServer } from "../../../support/load-balancer-server.ts";
import { ManualClock } from "../../../support/manual-clock.ts";
import { NetworkServer } from "../../../support/network-server.ts";
import { SnsServer } from "../../../support/sns-server.ts";

/** The machine of the suite's tasks. */
const machine = "i-0123456789abcdef0";
const tools = {
  clock: new ManualClock(),
  rng: seededRng(1),
  region: "us-east-1",
  machines: () => [],
  onError: () => {},
};
useAwsEnvironment();

/** Points the AWS clients of these services to the server. */
function pointTo(url: string, ...services: readonly string[]): void {
  for (const service of services) process.env[`AWS_ENDPOINT_URL_${service}`] = url;
}

interface Failing {
  fault: "Unreachable" | "RateLimited" | "RightMissing" | undefined;
  stop(): Promise<void>;
}

function sideOf(...servers: readonly Failing[]) {
  const setAll = (fault: Failing["fault"]) => {
    for (const server of servers) server.fault = fault;
  };
  return {
    fail: (fault: "Unreachable" | "RightMissing") => setAll(fault),
    heal: () => setAll(undefined),
    secrets: [],
    close: async () => {
      await Promise.all(servers.map((server) => server.stop()));
    },
  };
}

actionRunnerContract("the deregisterTargets action", async () => {
  const [balancers, ec2] = [new LoadBalancerServer(), new NetworkServer()];
  await Promise.all([balancers.start(), ec2.start()]);
  pointTo(balancers.url, "ELASTIC_LOAD_BALANCING", "ELASTIC_LOAD_BALANCING_V2");
  pointTo(ec2.url, "EC2");
  const instance = { id: machine, vpc: "vpc-a", dnsName: "n1", state: "running" } as const;
  ec2.instances.push({ ...instance });
  ec2.addInterface({ ...instance });
  balancers.addGroup("web", { targets: [80, 766].map((port) => ({ id: machine, port })) });
  balancers.addGroup("pods", { type: "ip", targets: [{ id: "10.0.1.17", port: 8080 }] });
  balancers.addClassic("classic", [machine]);
  return {
    ...sideOf(balancers, ec2),
    runner: await createAwsRunner("deregisterTargets", tools),
    how: { kind: "deregisterTargets", wait: false },
    sort: "Undoable",
    state: () => [
      balancers.groups.map((group) => balancers.serving(group)),
      balancers.classics.map(({ instances }) => [...instances]),
    ],
  };
});

actionRunnerContract("the replaceSecurityGroups action", async () => {
  const ec2 = await new NetworkServer().start();
  pointTo(ec2.url, "EC2");
  for (const id of ["sg-nodes", "sg-0abc"]) ec2.securityGroups.set(id, "vpc-a");
  const instance = { id: machine, vpc: "vpc-a", dnsName: "n1", state: "running" } as const;
  for (let place = 0; place < 3; place += 1) ec2.addInterface({ ...instance });
  return {
    ...sideOf(ec2),
    runner: await createAwsRunner("replaceSecurityGroups", tools),
    how: { kind: "replaceSecurityGroups", groupIds: ["sg-0abc"] },
    sort: "Undoable",
    state: () => ec2.interfaces.map(({ groups }) => groups),
  };
});

actionRunnerContract("the detach action", async () => {
  const groups = await new AutoScalingServer().start();
  pointTo(groups.url, "AUTO_SCALING");
  groups.members.set(machine, "spot");
  return {
    ...sideOf(groups),
    runner: await createAwsRunner("detach", tools),
    how: { kind: "detach", decrementDesiredCapacity: false },
    sort: "Lasting",
    state: () => [...groups.told],
  };
});

actionRunnerContract("the sns action", async () => {
  const topicArn = "arn:aws:sns:us-east-1:123456789012:spot";
  const sns = await new SnsServer().start();
  pointTo(sns.url, "SNS");
  sns.topics.add(topicArn);
  return {
    ...sideOf(sns),
    runner: await createAwsRunner("sns", tools),
    how: { kind: "sns", topicArn, subject: "n1 Noticed", message: "n1 leaves" },
    sort: "Message",
    state: () => [...sns.published],
  };
});

actionRunnerContract("the lambda action", async () => {
  const lambda = await new LambdaServer().start();
  pointTo(lambda.url, "LAMBDA");
  lambda.functions.add("responder");
  return {
    ...sideOf(lambda),
    runner: await createAwsRunner("lambda", tools),
    how: { kind: "lambda", functionName: "responder", payload: '{"node":"n1"}' },
    sort: "Message",
    state: () => [...lambda.invoked],
  };
});

it("an action's check uses the fleet's region if the environment names none", async () => {
  const former = process.env.AWS_REGION;
  delete process.env.AWS_REGION;
  const ec2 = await new NetworkServer().start();
  pointTo(ec2.url, "EC2");
  ec2.securityGroups.set("sg-0abc", "vpc-a");
  const machines = () => ["gce://p/z/n", `aws:///eu-west-1a/${machine}`];
  const runner = await createAwsRunner("replaceSecurityGroups", {
    ...{ ...tools, region: undefined, machines },
  });
  const how = { kind: "replaceSecurityGroups", groupIds: ["sg-0abc"] } as const;
  expect(await runner.check(how, new AbortController().signal)).toBeUndefined();
  process.env.AWS_REGION = former;
  await ec2.stop();
});

it.each([
  ["deregisterTargets", { kind: "deregisterTargets", wait: false }],
  ["replaceSecurityGroups", { kind: "replaceSecurityGroups", groupIds: ["sg-0abc"] }],
  ["detach", { kind: "detach", decrementDesiredCapacity: false }],
] as const)("the check of %s reports that no machine of the fleet is on EC2", async (kind, how) => {
  const machines = () => ["gce://p/z/n", "azure:///subscriptions/s"];
  for (const region of [undefined, "us-east-1"]) {
    const runner = (await createAwsRunner(kind, { ...tools, region, machines })) as ActionRunner;
    expect(await runner.check(how, new AbortController().signal)).toEqual({
      code: "ACTION_REFUSED",
      field: kind,
      found: "no EC2 instance among the nodes (such as gce://p/z/n)",
      wanted: "a providerID such as aws:///eu-west-1a/i-0123456789abcdef0",
    });
  }
});

it("machines of a burst are looked up with two requests: the first, then the rest", async () => {
  const [ec2, groups] = [await new NetworkServer().start(), await new AutoScalingServer().start()];
  pointTo(ec2.url, "EC2");
  pointTo(groups.url, "AUTO_SCALING");
  ec2.securityGroups.set("sg-0abc", "vpc-a");
  const instances = Array.from({ length: 20 }, (_, place) => ec2.addInstance(place));
  for (const instance of instances) {
    ec2.addInterface(instance);
    groups.members.set(instance.id, "spot");
  }
  const signal = new AbortController().signal;
  const taskOf = <Kind extends ActionKind>(how: ActionOf<Kind>, id: string) => {
    const task = aTask<Kind>(how);
    return { ...task, target: { ...task.target, providerID: `aws:///us-east-1a/${id}` } };
  };
  const quarantine = await createAwsRunner("replaceSecurityGroups", tools);
  const how = { kind: "replaceSecurityGroups", groupIds: ["sg-0abc"] } as const;
  const records = await Promise.all(
    instances.map(({ id }) => quarantine.prepare(taskOf(how, id), signal)),
  );
  expect(records.map((record) => JSON.stringify(record).match(/eni-/g)?.length)).toEqual(
    Array(20).fill(1),
  );
  expect(ec2.count("DescribeNetworkInterfaces")).toBe(2);
  const detach = await createAwsRunner("detach", tools);
  const out = { kind: "detach", decrementDesiredCapacity: false } as const;
  await Promise.all(
    instances.map(({ id }) => detach.apply({ ...taskOf(out, id), undo: undefined }, signal)),
  );
  expect(groups.members.size).toBe(0);
  const looks = groups.actions.filter((one) => one === "DescribeAutoScalingInstances");
  expect(looks).toHaveLength(2);
  await Promise.all([ec2.stop(), groups.stop()]);
});

const oneInstance = { ...tools, machines: () => [`aws:///us-east-1a/${machine}`] };

it("the check of detach reports a missing right to look up a machine's group", async () => {
  const groups = await new AutoScalingServer().start();
  pointTo(groups.url, "AUTO_SCALING");
  groups.members.set(machine, "spot");
  const runner = await createAwsRunner("detach", oneInstance);
  const check = () =>
    runner.check({ kind: "detach", decrementDesiredCapacity: false }, new AbortController().signal);
  expect(await check()).toBeUndefined();
  groups.denied.add("DescribeAutoScalingInstances");
  expect(await check()).toMatchObject({
    ...{ code: "CLOUD_RIGHT_MISSING", field: "detach" },
    wanted: expect.stringContaining("autoscaling:DescribeAutoScalingInstances"),
  });
  await groups.stop();
});

it("the check of replaceSecurityGroups reports a missing right to list interfaces", async () => {
  const ec2 = await new NetworkServer().start();
  pointTo(ec2.url, "EC2");
  ec2.securityGroups.set("sg-0abc", "vpc-a");
  const runner = await createAwsRunner("replaceSecurityGroups", oneInstance);
  const how = { kind: "replaceSecurityGroups", groupIds: ["sg-0abc"] } as const;
  const check = () => runner.check(how, new AbortController().signal);
  expect(await check()).toBeUndefined();
  ec2.denied.add("DescribeNetworkInterfaces");
  expect(await check()).toMatchObject({
    ...{ code: "CLOUD_RIGHT_MISSING", field: "replaceSecurityGroups" },
    wanted: expect.stringContaining("ec2:DescribeNetworkInterfaces"),
  });
  await ec2.stop();
});
