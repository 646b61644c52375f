import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import {
  type AwsSetupChoice,
  awsSetupScript,
  awsUndoScript,
} from "../../../../src/cloud/aws/setup/setup-script.ts";

const plain: AwsSetupChoice = {
  account: "123456789012",
  region: "eu-west-1",
  cluster: "main",
  namespace: "lastcall",
  serviceAccount: "lastcall",
  role: "lastcall",
  identity: "PodIdentity",
  mode: "Recreate",
  hooks: true,
  statusPoll: false,
  managedTag: false,
  actions: false,
};
const whole: AwsSetupChoice = {
  ...plain,
  region: "us-gov-west-1",
  identity: "IRSA",
  mode: "DeleteInstance",
  queue: "lastcall-main",
  statusPoll: true,
  managedTag: true,
  kubeconfig: "/home/me/my kube/config",
  context: "it's mine",
};

function granted(choice: AwsSetupChoice): readonly string[] {
  const text = /^permissions='([^']*)'/m.exec(awsSetupScript(choice))?.[1] ?? "{}";
  const { Statement } = JSON.parse(text) as { Statement: readonly { Action: string[] }[] };
  return Statement.flatMap(({ Action }) => Action).sort();
}

describe("the script of setup aws", () => {
  it.each([
    ["aws-pod-identity.sh", awsSetupScript(plain)],
    ["aws-irsa-queue.sh", awsSetupScript(whole)],
    ["aws-undo.sh", awsUndoScript({ ...plain, queue: "lastcall-main" })],
  ])("is the reviewed %s", async (file, script) => {
    await expect(script).toMatchFileSnapshot(`../../../golden/setup/${file}`);
  });

  it("is valid bash, whatever is chosen", () => {
    for (const mode of ["Recreate", "Delete", "DeleteInstance", "None"] as const) {
      for (const choice of [plain, whole]) {
        for (const make of [awsSetupScript, awsUndoScript]) {
          const input = make({ ...choice, mode });
          const { status, stderr } = spawnSync("bash", ["-n"], { input, encoding: "utf8" });
          expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
        }
      }
    }
  });

  const releaseInGroup = [
    "autoscaling:DescribeAutoScalingGroups",
    "autoscaling:DescribeAutoScalingInstances",
    "autoscaling:TerminateInstanceInAutoScalingGroup",
  ];
  const queue = ["sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:ReceiveMessage"];
  const hooks = [
    "autoscaling:CompleteLifecycleAction",
    "autoscaling:DescribeLifecycleHooks",
    "autoscaling:RecordLifecycleActionHeartbeat",
  ];
  const actions = [
    "autoscaling:DetachInstances",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSecurityGroups",
    "ec2:ModifyNetworkInterfaceAttribute",
    "elasticloadbalancing:DeregisterInstancesFromLoadBalancer",
    "elasticloadbalancing:DeregisterTargets",
    "elasticloadbalancing:DescribeInstanceHealth",
    "elasticloadbalancing:DescribeLoadBalancers",
    "elasticloadbalancing:DescribeTags",
    "elasticloadbalancing:DescribeTargetGroups",
    "elasticloadbalancing:DescribeTargetHealth",
    "elasticloadbalancing:RegisterInstancesWithLoadBalancer",
    "elasticloadbalancing:RegisterTargets",
    "lambda:InvokeFunction",
    "sns:GetTopicAttributes",
    "sns:Publish",
  ];
  it.each([
    ["Recreate", {}, releaseInGroup],
    ["Delete", {}, releaseInGroup],
    ["DeleteInstance", {}, ["autoscaling:DescribeAutoScalingInstances", "ec2:TerminateInstances"]],
    ["None", {}, []],
    ["None", { queue: "q" }, [...queue, ...hooks]],
    ["None", { queue: "q", hooks: false }, queue],
    ["None", { actions: true }, actions],
    ["Recreate", { actions: true }, [...releaseInGroup, ...actions, "ec2:TerminateInstances"]],
    [
      "None",
      { statusPoll: true, managedTag: true },
      ["ec2:DescribeInstanceStatus", "ec2:DescribeTags"],
    ],
  ] as const)("for %s and %j grants exactly what those need", (mode, options, more) => {
    const expected = ["ec2:DescribeInstances", ...more].sort();
    expect(granted({ ...plain, ...options, mode })).toEqual(expected);
  });

  it("may terminate machines of its own cluster only", () => {
    for (const mode of ["Recreate", "DeleteInstance"] as const) {
      const text = /^permissions='([^']*)'/m.exec(awsSetupScript({ ...plain, mode }))?.[1] ?? "";
      const { Statement } = JSON.parse(text) as { Statement: readonly Record<string, unknown>[] };
      const acting = Statement.filter(({ Action }) => /Terminate/.test(String(Action)));
      expect(acting).toHaveLength(1);
      expect(acting[0]).toMatchObject({
        Resource: expect.stringMatching(/:eu-west-1:123456789012:/),
        Condition: { StringEquals: { "aws:ResourceTag/kubernetes.io/cluster/main": "owned" } },
      });
    }
  });

  it.each([
    ["eu-west-1", "arn:aws:iam"],
    ["cn-north-1", "arn:aws-cn:iam"],
    ["us-gov-west-1", "arn:aws-us-gov:iam"],
    ["eusc-de-east-1", "arn:aws-eusc:iam"],
    ["us-iso-east-1", "arn:aws-iso:iam"],
    ["us-isob-east-1", "arn:aws-iso-b:iam"],
    ["eu-isoe-west-1", "arn:aws-iso-e:iam"],
    ["us-isof-south-1", "arn:aws-iso-f:iam"],
  ])("names resources of %s as %s", (region, arn) => {
    expect(awsSetupScript({ ...plain, region })).toContain(`role_arn='${arn}::123456789012:role/`);
  });

  it.each([
    ["account", "12345678901", "--account"],
    ["account", "arn:aws:iam::123456789012:root", "--account"],
    ["region", "europe-west1", "--region"],
    ["region", "eu-west-1'; touch pwned; '", "--region"],
    ["cluster", "", "--cluster"],
    ["cluster", 'main","x":"', "--cluster"],
    ["cluster", "-main", "--cluster"],
    ["role", "a/b", "--role"],
    ["role", "lastcall\n", "--role"],
    ["queue", "q.fifo", "--queue"],
    ["queue", "a".repeat(58), "--queue"],
    ["namespace", "Shop", "--namespace"],
    ["serviceAccount", "a/b", "--service-account"],
    ["context", "a\u202eb", "--context"],
  ])("rejects the %s %j", (field, value, flag) => {
    for (const make of [awsSetupScript, awsUndoScript]) {
      const run = () => make({ ...plain, [field]: value });
      expect(run).toThrow(expect.objectContaining({ code: "USAGE" }));
      expect(run).toThrow(`Cannot use ${flag}: found ${JSON.stringify(value)}, expected `);
    }
  });
});
