import type { Cloud, CloudAccount, NoticeSourceOptions } from "../../contracts/cloud-descriptor.ts";
import { seconds } from "../../core/time/time.ts";
import { awsFacts } from "./aws-facts.ts";
import { awsOptions, awsSetupOptions } from "./aws-options.ts";

/** EC2, and EKS. */
export const aws = {
  facts: awsFacts,
  options: awsOptions,
  setup: {
    options: awsSetupOptions,
    examples: [
      "--account 123456789012 --region eu-west-1 --cluster main --queue lastcall-main",
      "--account 123456789012 --region eu-west-1 --cluster main --undo",
    ],
    cluster: ", required: the cluster",
    asksRelease: true,
  },
  audit: {
    ownLabels: /^(eks\.amazonaws\.com|karpenter\.k8s\.aws)\//,
    // Source: awslabs/amazon-eks-ami nodeadm for AL2023, which sets nothing before kubelet 1.34.
    platforms: {
      "eks-al2023": {
        totalSeconds: 150,
        criticalSeconds: 30,
        what: "EKS on Amazon Linux 2023, kubelet 1.34 or later",
      },
      eks: { totalSeconds: 0, criticalSeconds: 0, what: "EKS on any other node" },
    },
    usualPlatforms: ["eks-al2023", "eks"],
    platformOf: ({ kubeletVersion, osImage }) => {
      if (osImage.startsWith("Bottlerocket")) return undefined;
      const [, major = 0, minor = 0] = /^v?(\d+)\.(\d+)/.exec(kubeletVersion)?.map(Number) ?? [];
      const graceful = osImage.startsWith("Amazon Linux 2023") && (major > 1 || minor >= 34);
      return graceful ? "eks-al2023" : "eks";
    },
  },
  doctor: {
    tools: [
      { tool: "aws-node-termination-handler", image: /aws-node-termination-handler/, rival: true },
    ],
    identityProblem,
    unlabeledSpot: {
      machines: "EC2 instances",
      exempt: ["eks.amazonaws.com/compute-type"],
      fix: "start the kubelet of a self-managed Auto Scaling group with --node-labels=node.kubernetes.io/lifecycle=spot (or =on-demand), or select the nodes in a policy's nodeSelector: docs/cloud/aws.md",
    },
    agentless: "on EC2 set up the queue (docs/cloud/aws.md)",
  },
  probe: {
    request: {
      method: "PUT",
      path: "/latest/api/token",
      headers: { "x-aws-ec2-metadata-token-ttl-seconds": "60" },
      timeoutMs: seconds(2),
    },
    fits: ({ status, text }) =>
      status === 200 && /^[\x21-\x7e]{1,1024}$/.test(text.trim()) && !text.startsWith("<"),
  },
  noticeSource: async (options: NoticeSourceOptions) =>
    new (await import("./notice-source.ts")).AwsNoticeSource(options),
} as const satisfies Cloud;

function identityProblem({ annotations }: CloudAccount): string | undefined {
  const role = annotations["eks.amazonaws.com/role-arn"];
  if (role === undefined || /^arn:aws[-a-z]*:iam::\d{12}:role\/.+/.test(role)) return undefined;
  return `eks.amazonaws.com/role-arn is not the ARN of a role: ${role}`;
}
