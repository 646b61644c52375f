import type { ReleaseMode } from "../../../core/policy/policy.ts";

/**
 * The resource on which a permission is granted. AWS can grant most read-only actions only on
 * everything.
 */
export type AwsResource =
  | "Everything"
  | "Groups"
  | "Instances"
  | "Queue"
  | "LoadBalancers"
  | "Interfaces"
  | "Topics"
  | "Functions";

export interface AwsPermission {
  /** The action, as in a policy document. */
  readonly action: string;
  /** What it is used for, as part of a sentence. */
  readonly neededFor: string;
  readonly on: AwsResource;
  /** The release modes that need it; empty if none does. */
  readonly modes: readonly ReleaseMode[];
  /** Further modes that need it if policy actions run in AWS, since one of them is `detach`. */
  readonly modesWithActions?: readonly ReleaseMode[];
  /** Also needed if this feature is in use, whatever the mode. Default: only the modes count. */
  readonly only?: keyof AwsUseOf;
}

const all = ["Recreate", "Delete", "DeleteInstance", "NodeClaim", "None"] as const;
const byGroup = ["Recreate", "Delete"] as const;
const anyRelease = ["Recreate", "Delete", "DeleteInstance"] as const;

/**
 * The minimal permissions of the controller's role, according to the service authorization
 * reference. Not tested on a real AWS account.
 */
export const awsPermissions: readonly AwsPermission[] = [
  {
    action: "ec2:DescribeInstances",
    neededFor: "finding a machine, and its launch time",
    on: "Everything",
    modes: all,
  },
  {
    action: "autoscaling:DescribeAutoScalingInstances",
    neededFor: "finding the Auto Scaling group of a machine",
    on: "Everything",
    modes: anyRelease,
  },
  {
    action: "autoscaling:DescribeAutoScalingGroups",
    neededFor:
      "checking before a drain whether the group's settings allow the release of the machine",
    on: "Everything",
    modes: byGroup,
  },
  {
    action: "autoscaling:TerminateInstanceInAutoScalingGroup",
    neededFor: "making the group replace a machine, or shrink by it",
    on: "Groups",
    modes: byGroup,
  },
  {
    action: "ec2:TerminateInstances",
    neededFor: "terminating a machine without a group, or one taken out of it (detach)",
    on: "Instances",
    modes: ["DeleteInstance"],
    modesWithActions: byGroup,
  },
  {
    action: "sqs:ReceiveMessage",
    neededFor: "reading notices (--sqs-queue-url)",
    on: "Queue",
    modes: [],
    only: "queue",
  },
  {
    action: "sqs:DeleteMessage",
    neededFor: "deleting handled notices from the queue",
    on: "Queue",
    modes: [],
    only: "queue",
  },
  {
    action: "sqs:ChangeMessageVisibility",
    neededFor: "postponing a notice",
    on: "Queue",
    modes: [],
    only: "queue",
  },
  {
    action: "autoscaling:CompleteLifecycleAction",
    neededFor: "completing lifecycle hooks (--sqs-complete-hooks)",
    on: "Groups",
    modes: [],
    only: "hooks",
  },
  {
    action: "autoscaling:RecordLifecycleActionHeartbeat",
    neededFor: "extending a lifecycle hook while a node drains",
    on: "Groups",
    modes: [],
    only: "hooks",
  },
  {
    action: "autoscaling:DescribeLifecycleHooks",
    neededFor: "reading the timeout of a lifecycle hook",
    on: "Everything",
    modes: [],
    only: "hooks",
  },
  {
    action: "ec2:DescribeInstanceStatus",
    neededFor: "reading the events that EC2 has scheduled for instances (--ec2-status-poll)",
    on: "Everything",
    modes: [],
    only: "statusPoll",
  },
  {
    action: "ec2:DescribeTags",
    neededFor: "finding the instances with the tag (--aws-managed-tag)",
    on: "Everything",
    modes: [],
    only: "managedTag",
  },
  {
    action: "elasticloadbalancing:DescribeTargetGroups",
    neededFor: "listing target groups (deregisterTargets)",
    on: "Everything",
    modes: [],
    only: "actions",
  },
  {
    action: "elasticloadbalancing:DescribeTargetHealth",
    neededFor: "reading the targets of a group, and whether they have drained",
    on: "Everything",
    modes: [],
    only: "actions",
  },
  {
    action: "elasticloadbalancing:DescribeTags",
    neededFor: "finding the groups that aws-load-balancer-controller owns",
    on: "Everything",
    modes: [],
    only: "actions",
  },
  {
    action: "elasticloadbalancing:DescribeLoadBalancers",
    neededFor: "finding the classic load balancers of an instance",
    on: "Everything",
    modes: [],
    only: "actions",
  },
  {
    action: "elasticloadbalancing:DescribeInstanceHealth",
    neededFor: "reading whether an instance has drained from a classic load balancer",
    on: "Everything",
    modes: [],
    only: "actions",
  },
  {
    action: "elasticloadbalancing:DeregisterTargets",
    neededFor: "deregistering a machine from its target groups",
    on: "LoadBalancers",
    modes: [],
    only: "actions",
  },
  {
    action: "elasticloadbalancing:RegisterTargets",
    neededFor: "registering it again if its departure is rolled back",
    on: "LoadBalancers",
    modes: [],
    only: "actions",
  },
  {
    action: "elasticloadbalancing:DeregisterInstancesFromLoadBalancer",
    neededFor: "deregistering a machine from classic load balancers",
    on: "LoadBalancers",
    modes: [],
    only: "actions",
  },
  {
    action: "elasticloadbalancing:RegisterInstancesWithLoadBalancer",
    neededFor: "registering it again if its departure is rolled back",
    on: "LoadBalancers",
    modes: [],
    only: "actions",
  },
  {
    action: "ec2:DescribeNetworkInterfaces",
    neededFor: "reading the network interfaces of a machine and its VPC (replaceSecurityGroups)",
    on: "Everything",
    modes: [],
    only: "actions",
  },
  {
    action: "ec2:DescribeSecurityGroups",
    neededFor: "checking that the named security groups are in that VPC",
    on: "Everything",
    modes: [],
    only: "actions",
  },
  {
    action: "ec2:ModifyNetworkInterfaceAttribute",
    neededFor: "replacing the security groups, and restoring them",
    on: "Interfaces",
    modes: [],
    only: "actions",
  },
  {
    action: "autoscaling:DetachInstances",
    neededFor: "making a group launch a replacement at once (detach)",
    on: "Groups",
    modes: [],
    only: "actions",
  },
  {
    action: "sns:Publish",
    neededFor: "publishing a message about a departure (sns)",
    on: "Topics",
    modes: [],
    only: "actions",
  },
  {
    action: "sns:GetTopicAttributes",
    neededFor: "checking before any departure that a topic exists",
    on: "Topics",
    modes: [],
    only: "actions",
  },
  {
    action: "lambda:InvokeFunction",
    neededFor: "invoking a function (lambda)",
    on: "Functions",
    modes: [],
    only: "actions",
  },
];

/** The features in use, besides releases. */
export interface AwsUseOf {
  readonly queue: boolean;
  readonly hooks: boolean;
  readonly statusPoll: boolean;
  readonly managedTag: boolean;
  /** Policy actions that run in AWS. */
  readonly actions: boolean;
}

export interface AwsUse extends AwsUseOf {
  readonly mode: ReleaseMode;
}

/** The permissions that a controller with these uses needs, and no more. */
export function awsPermissionsFor(use: AwsUse): readonly AwsPermission[] {
  return awsPermissions.filter(
    ({ modes, modesWithActions, only }) =>
      modes.includes(use.mode) ||
      (use.actions && modesWithActions?.includes(use.mode)) ||
      (only !== undefined && use[only]),
  );
}
