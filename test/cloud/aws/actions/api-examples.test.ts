import {
  AutoScalingClient,
  DescribeLifecycleHooksCommand,
  DetachInstancesCommand,
  RecordLifecycleActionHeartbeatCommand,
} from "@aws-sdk/client-auto-scaling";
import {
  DescribeNetworkInterfacesCommand,
  EC2Client,
  ModifyNetworkInterfaceAttributeCommand,
} from "@aws-sdk/client-ec2";
import {
  DeregisterTargetsCommand,
  DescribeTargetGroupsCommand,
  DescribeTargetHealthCommand,
  ElasticLoadBalancingV2Client,
  RegisterTargetsCommand,
} from "@aws-sdk/client-elastic-load-balancing-v2";
import { describe, expect, it } from "vitest";
import examples from "../../../data/aws/api-examples.json" with { type: "json" };
import { AutoScalingServer } from "../../../support/auto-scaling-server.ts";
import { useAwsEnvironment } from "../../../support/aws-environment.ts";
import { LoadBalancerServer } from "../../../support/load-balancer-server.ts";
import { NetworkServer } from "../../../support/network-server.ts";

useAwsEnvironment();
const settings = { region: "us-west-2", maxAttempts: 1 };

/** Response members that AWS added after it wrote its examples. */
const newerThanExamples = new Set(["TargetGroups.0.TargetType"]);

/**
 * The paths of a response's values, such as `TargetGroups.0.Port`; of a list only its first item.
 */
function placesIn(value: unknown, at = ""): readonly string[] {
  if (Array.isArray(value)) return value.length === 0 ? [] : placesIn(value[0], `${at}.0`);
  if (typeof value !== "object" || value === null || value instanceof Date) return [at.slice(1)];
  return Object.entries(value).flatMap(([key, inner]) =>
    key === "$metadata" || inner === undefined ? [] : placesIn(inner, `${at}.${key}`),
  );
}

/** Every value in the server's response is also in AWS's own example. */
function expectForm(answer: unknown, example: unknown): void {
  const known = new Set(placesIn(example));
  const ours = placesIn(answer).filter((place) => !newerThanExamples.has(place));
  expect(ours.length).toBeGreaterThan(0);
  expect(ours.filter((place) => !known.has(place))).toEqual([]);
}

describe("the test servers respond as in AWS's examples for", () => {
  it("Elastic Load Balancing", async () => {
    const server = await new LoadBalancerServer().start();
    const client = new ElasticLoadBalancingV2Client({ ...settings, endpoint: server.url });
    const { DescribeTargetGroups, DescribeTargetHealth, DeregisterTargets, RegisterTargets } =
      examples.elbv2;
    const [register] = RegisterTargets.examples;
    const [overrides] = RegisterTargets.examples.slice(1);
    const arns = [register, overrides].map((one) => one?.input.TargetGroupArn ?? "");
    for (const arn of arns) server.groups.push({ ...server.addGroup("copy"), arn, targets: [] });
    for (const one of RegisterTargets.examples) {
      await client.send(new RegisterTargetsCommand(one.input));
    }
    const groups = arns.map((arn) => server.groups.find((one) => one.arn === arn));
    expect(groups.map((group) => group && server.serving(group))).toEqual([
      ["i-80c8dd94:80", "i-ceddcd4d:80"],
      ["i-80c8dd94:80", "i-80c8dd94:766"],
    ]);
    const [listed] = DescribeTargetGroups.examples;
    expectForm(await client.send(new DescribeTargetGroupsCommand({})), listed?.output);
    for (const { input, output } of DescribeTargetHealth.examples) {
      await client.send(
        new RegisterTargetsCommand({ ...input, Targets: [{ Id: "i-0f76fade", Port: 80 }] }),
      );
      expectForm(await client.send(new DescribeTargetHealthCommand(input)), output);
    }
    const [deregister] = DeregisterTargets.examples;
    await client.send(new DeregisterTargetsCommand(deregister?.input as never));
    expect(groups[0] && server.serving(groups[0])).not.toContain("i-0f76fade:80");
    const unknown = { TargetGroupArn: "arn:none", Targets: [{ Id: "i-1" }] };
    const refused = client.send(new DeregisterTargetsCommand(unknown));
    await expect(refused).rejects.toMatchObject({ name: "TargetGroupNotFoundException" });
    expect(DeregisterTargets.errors).toContain("TargetGroupNotFound");
    await server.stop();
  });

  it("EC2", async () => {
    const server = await new NetworkServer().start();
    const client = new EC2Client({ ...settings, endpoint: server.url });
    const { DescribeNetworkInterfaces, ModifyNetworkInterfaceAttribute } = examples.ec2;
    const instance = server.addInstance(1);
    const served = server.addInterface(instance, { addresses: ["10.0.1.17"] });
    const [listed] = DescribeNetworkInterfaces.examples;
    const Filters = [{ Name: "attachment.instance-id", Values: [instance.id] }];
    const answer = await client.send(new DescribeNetworkInterfacesCommand({ Filters }));
    expectForm(answer, listed?.output);
    const [modified] = ModifyNetworkInterfaceAttribute.examples;
    const Groups = modified?.input.Groups ?? [];
    for (const id of Groups) server.securityGroups.set(id, "vpc-a");
    const input = { Groups, NetworkInterfaceId: served.id };
    await client.send(new ModifyNetworkInterfaceAttributeCommand(input));
    expect(served.groups).toEqual(Groups);
    await server.stop();
  });

  it("EC2 Auto Scaling", async () => {
    const server = await new AutoScalingServer().start();
    const client = new AutoScalingClient({ ...settings, endpoint: server.url });
    const { DescribeLifecycleHooks, DetachInstances, RecordLifecycleActionHeartbeat } =
      examples.autoscaling;
    const [heartbeat] = RecordLifecycleActionHeartbeat.examples;
    const { AutoScalingGroupName: group = "", LifecycleHookName: name = "" } =
      heartbeat?.input ?? {};
    const token = heartbeat?.input.LifecycleActionToken ?? "";
    server.hold({
      group,
      name,
      token,
      machine: "i-93633f9b",
    });
    await client.send(new RecordLifecycleActionHeartbeatCommand(heartbeat?.input as never));
    expect(server.told).toEqual(["HEARTBEAT i-93633f9b"]);
    const [listed] = DescribeLifecycleHooks.examples;
    const input = { AutoScalingGroupName: group, LifecycleHookNames: [name] };
    expectForm(await client.send(new DescribeLifecycleHooksCommand(input)), listed?.output);
    const [detach] = DetachInstances.examples;
    server.members.set("i-93633f9b", group);
    await client.send(new DetachInstancesCommand(detach?.input as never));
    expect(server.told.at(-1)).toBe("DETACH i-93633f9b smaller");
    await server.stop();
  });
});
