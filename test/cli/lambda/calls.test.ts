import { expect, it, vi } from "vitest";
import { handler } from "../../../src/cli/lambda-main.ts";
import { AutoScalingServer } from "../../support/auto-scaling-server.ts";
import { useAwsEnvironment } from "../../support/aws-environment.ts";
import { responderCalls } from "../../support/aws-iac.ts";
import { LoadBalancerServer } from "../../support/load-balancer-server.ts";
import { NetworkServer } from "../../support/network-server.ts";
import { SnsServer } from "../../support/sns-server.ts";
import { stopTimers } from "../../support/stopped-timers.ts";

const topicArn = "arn:aws:sns:eu-west-1:123456789012:spot";
useAwsEnvironment();

it("the responder makes every call that its role in deploy/aws grants, and no other", async () => {
  vi.spyOn(console, "error").mockImplementation(() => {});
  const balancers = await new LoadBalancerServer().start();
  const ec2 = await new NetworkServer().start();
  const groups = await new AutoScalingServer().start();
  const sns = await new SnsServer().start();
  process.env.AWS_ENDPOINT_URL_ELASTIC_LOAD_BALANCING_V2 = balancers.url;
  process.env.AWS_ENDPOINT_URL_ELASTIC_LOAD_BALANCING = balancers.url;
  process.env.AWS_ENDPOINT_URL_EC2 = ec2.url;
  process.env.AWS_ENDPOINT_URL_AUTO_SCALING = groups.url;
  process.env.AWS_ENDPOINT_URL_SNS = sns.url;
  process.env.LASTCALL_ACTIONS = JSON.stringify([
    { name: "targets", at: "AtNotice", deregisterTargets: { wait: true } },
    { name: "quarantine", at: "AtNotice", replaceSecurityGroups: { groupIds: ["sg-0abc"] } },
    { name: "replace", at: "AtNotice", detach: {} },
    { name: "tell", at: "AtEnd", sns: { topicArn } },
    { name: "call", at: "AtEnd", lambda: { functionName: "itself" } },
  ]);
  const instance = ec2.addInstance(1);
  ec2.addInterface(instance, { addresses: ["10.0.1.7"] });
  for (const id of ["sg-0abc", "sg-nodes"]) ec2.securityGroups.set(id, "vpc-a");
  balancers.addGroup("web", { drainMs: 100, targets: [{ id: instance.id, port: 80 }] });
  balancers.addClassic("classic", [instance.id], 100);
  groups.members.set(instance.id, "spot");
  sns.topics.add(topicArn);
  ec2.tags.set(instance.id, { team: "spot" });
  process.env.LASTCALL_AWS_MANAGED_TAG = "team";
  const timers = stopTimers();
  const answer = handler({
    ...{ "detail-type": "EC2 Spot Instance Interruption Warning", source: "aws.ec2" },
    ...{ version: "0", id: "event-1", account: "123456789012", region: "eu-west-1" },
    ...{ time: new Date().toISOString(), resources: [] },
    detail: { "instance-id": instance.id, "instance-action": "terminate" },
  });
  const { actions } = await timers.passUntil(answer);
  vi.useRealTimers();
  delete process.env.LASTCALL_AWS_MANAGED_TAG;
  expect(actions?.map(({ state }) => state)).toEqual(["Done", "Done", "Done", "Done", "Skipped"]);
  const made = [
    ...balancers.calls.map(({ action }) => `elasticloadbalancing:${action}`),
    ...ec2.calls.map(({ action }) => `ec2:${action}`),
    ...groups.actions.map((action) => `autoscaling:${action}`),
    ...sns.actions.map((action) => `sns:${action}`),
  ];
  expect([...new Set(made)].sort()).toEqual([...responderCalls].sort());
  await Promise.all([balancers, ec2, groups, sns].map((server) => server.stop()));
});
