import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { handler } from "../../../src/cli/lambda-main.ts";
import { AutoScalingServer } from "../../support/auto-scaling-server.ts";
import { useAwsEnvironment } from "../../support/aws-environment.ts";
import { LoadBalancerServer } from "../../support/load-balancer-server.ts";
import { NetworkServer, type ServedInstance } from "../../support/network-server.ts";
import { inSns, rebalance, spotWarning } from "../../support/queue-body.ts";
import { SnsServer } from "../../support/sns-server.ts";
import { stopTimers } from "../../support/stopped-timers.ts";

const topicArn = "arn:aws:sns:eu-west-1:123456789012:spot";
const ofFunction = "eu-west-1";
/** That of the events in queue-body.ts. */
const ofEvents = "us-east-2";
useAwsEnvironment();

describe("the Lambda responder of another region than the machine", () => {
  let balancers: LoadBalancerServer;
  let groups: AutoScalingServer;
  let ec2: NetworkServer;
  let sns: SnsServer;
  let instance: ServedInstance;

  beforeEach(async () => {
    [balancers, groups, ec2, sns] = await Promise.all([
      new LoadBalancerServer().start(),
      new AutoScalingServer().start(),
      new NetworkServer().start(),
      new SnsServer().start(),
    ]);
    process.env.AWS_ENDPOINT_URL_ELASTIC_LOAD_BALANCING_V2 = balancers.url;
    process.env.AWS_ENDPOINT_URL_ELASTIC_LOAD_BALANCING = balancers.url;
    process.env.AWS_ENDPOINT_URL_AUTO_SCALING = groups.url;
    process.env.AWS_ENDPOINT_URL_EC2 = ec2.url;
    process.env.AWS_ENDPOINT_URL_SNS = sns.url;
    process.env.LASTCALL_ACTIONS = JSON.stringify([
      { name: "targets", at: "AtNotice", deregisterTargets: { wait: false } },
      { name: "quarantine", at: "AtNotice", replaceSecurityGroups: { groupIds: ["sg-0abc"] } },
      { name: "replace", at: "AtNotice", detach: {} },
      { name: "tell", at: "AtEnd", sns: { topicArn, subject: "x", message: "{{providerID}}" } },
    ]);
    sns.topics.add(topicArn);
    for (const id of ["sg-0abc", "sg-nodes"]) ec2.securityGroups.set(id, "vpc-a");
    instance = ec2.addInstance(1);
    ec2.addInterface(instance, { addresses: ["10.0.1.7"] });
    groups.members.set(instance.id, "spot");
    balancers.addGroup("web", { targets: [{ id: instance.id, port: 80 }] });
    balancers.addGroup("pods", { type: "ip", targets: [{ id: "10.0.1.7", port: 8080 }] });
    vi.resetModules();
    vi.spyOn(console, "error").mockImplementation(() => {});
  });
  afterEach(async () => {
    vi.useRealTimers();
    vi.restoreAllMocks();
    delete process.env.LASTCALL_AWS_MANAGED_TAG;
    delete process.env.LASTCALL_EVENT_FIELDS;
    await Promise.all([balancers, groups, ec2, sns].map((server) => server.stop()));
  });

  const invoke = async (event: unknown) => {
    const cold = (await import("../../../src/cli/lambda-main.ts")) as { handler: typeof handler };
    return cold.handler(event);
  };

  /** The regions that the requests about the machine were signed for. */
  const asked = () => new Set([balancers, groups, ec2].flatMap(({ regions }) => regions));

  const about = () => ({ instanceId: instance.id, time: new Date().toISOString() });
  const warning = () => spotWarning(about());

  it.each([
    ["the region of an event", warning, ofEvents],
    [
      "the region of an event in SNS",
      () => ({ Records: [{ Sns: { Message: JSON.stringify(warning()) } }] }),
      ofEvents,
    ],
    [
      "the region of an event in SQS",
      () => ({ Records: [{ body: JSON.stringify(warning()) }] }),
      ofEvents,
    ],
    [
      "the region of an event in SNS and SQS",
      () => ({ Records: [{ body: JSON.stringify(inSns(warning())) }] }),
      ofEvents,
    ],
    [
      "the zone of a providerID",
      () => ({ instanceId: `aws:///us-west-2-lax-1a/${instance.id}` }),
      "us-west-2",
    ],
    ["its own region if only the id is named", () => ({ instanceId: instance.id }), ofFunction],
    [
      "its own region if the providerID has no zone",
      () => ({ instanceId: `aws:////${instance.id}` }),
      ofFunction,
    ],
  ])("acts in %s", async (_, event, region) => {
    process.env.LASTCALL_AWS_MANAGED_TAG = "team";
    ec2.tags.set(instance.id, { team: "spot" });
    const { actions } = await invoke(event());
    expect(actions?.map(({ state }) => state)).toEqual(["Done", "Done", "Done", "Done"]);
    expect(asked()).toEqual(new Set([region]));
    // The topic is in a region of its own.
    expect(new Set(sns.regions)).toEqual(new Set([ofFunction]));
  });

  it("acts in the region of an event whose instance id is found by a mapping", async () => {
    process.env.LASTCALL_EVENT_FIELDS = "instanceId=detail.instance-id";
    await invoke(warning());
    expect(asked()).toEqual(new Set([ofEvents]));
  });

  it("acts in the region of each machine if a process gets several", async () => {
    const other = ec2.addInstance(2);
    const elsewhere = { ...rebalance({ ...about(), instanceId: other.id }), region: "eu-north-1" };
    const bodies = [warning(), elsewhere].map((body) => ({ body: JSON.stringify(body) }));
    const timers = stopTimers();
    await timers.passUntil(invoke({ Records: bodies }));
    await timers.passUntil(invoke({ instanceId: `aws:///ap-south-1a/${instance.id}` }));
    expect(asked()).toEqual(new Set([ofEvents, "eu-north-1", "ap-south-1"]));
  });

  it("announces the providerID that the invocation names", async () => {
    const providerID = `aws:///us-east-1b/${instance.id}`;
    await invoke({ instanceId: providerID });
    expect(sns.published.map(({ message }) => message)).toEqual([providerID]);
  });
});
