import {
  type AwsPermission,
  type AwsResource,
  type AwsUse,
  awsPermissionsFor,
} from "./permissions.ts";

/** The place of one cluster's resources in AWS. */
export interface AwsPlace {
  readonly account: string;
  readonly region: string;
  readonly cluster: string;
  /** The name of the queue; undefined if there is none. */
  readonly queue?: string | undefined;
}

/**
 * The partitions other than `aws`, which are isolated from it and from each other, by the prefix of
 * their regions. Source: the table in the AWS clients (util-endpoints, partitions.js).
 */
const partitions: readonly (readonly [begin: string, partition: string])[] = [
  ["cn-", "aws-cn"],
  ["us-gov-", "aws-us-gov"],
  ["eusc-", "aws-eusc"],
  ["us-iso-", "aws-iso"],
  ["us-isob-", "aws-iso-b"],
  ["eu-isoe-", "aws-iso-e"],
  ["us-isof-", "aws-iso-f"],
];

function partitionOf(region: string): string {
  return partitions.find(([begin]) => region.startsWith(begin))?.[1] ?? "aws";
}

export function arnOf(place: AwsPlace, service: string, resource: string): string {
  const region = service === "iam" ? "" : place.region;
  return `arn:${partitionOf(place.region)}:${service}:${region}:${place.account}:${resource}`;
}

/**
 * The policy document of the role: the actions that the controller calls, on the resources of its
 * own cluster.
 */
export function permissionDocument(place: AwsPlace, use: AwsUse): string {
  const byResource = Map.groupBy(awsPermissionsFor(use), ({ on }) => on);
  const statements = [...byResource].map(([on, permissions]) => statement(place, on, permissions));
  return document(statements);
}

/** The tag with which EKS managed node groups, their instances and eksctl's name their cluster. */
function clusterTag(cluster: string): string {
  return `kubernetes.io/cluster/${cluster}`;
}

function statement(place: AwsPlace, on: AwsResource, permissions: readonly AwsPermission[]) {
  const actions = permissions.map(({ action }) => action);
  const ofCluster = {
    StringEquals: { [`aws:ResourceTag/${clusterTag(place.cluster)}`]: "owned" },
  };
  const head = { Sid: on, Effect: "Allow", Action: actions };
  switch (on) {
    case "Everything":
      return { ...head, Resource: "*" };
    case "Groups": {
      const groups = arnOf(place, "autoscaling", "autoScalingGroup:*:autoScalingGroupName/*");
      return { ...head, Resource: groups, Condition: ofCluster };
    }
    case "Instances":
      return { ...head, Resource: arnOf(place, "ec2", "instance/*"), Condition: ofCluster };
    case "Queue":
      return { ...head, Resource: arnOf(place, "sqs", place.queue ?? "") };
    case "LoadBalancers": {
      const kinds = ["loadbalancer/*", "targetgroup/*"];
      return { ...head, Resource: kinds.map((one) => arnOf(place, "elasticloadbalancing", one)) };
    }
    case "Interfaces": {
      const kinds = ["instance/*", "network-interface/*", "security-group/*"];
      return { ...head, Resource: kinds.map((one) => arnOf(place, "ec2", one)) };
    }
    case "Topics":
      return { ...head, Resource: arnOf(place, "sns", "*") };
    case "Functions":
      return { ...head, Resource: arnOf(place, "lambda", "function:*") };
  }
}

export type PodAccount = Readonly<Record<"namespace" | "serviceAccount", string>>;

/**
 * Allows EKS Pod Identity to assume the role for one ServiceAccount of the cluster, by its session
 * tags.
 */
export function podIdentityTrust(place: AwsPlace, account: PodAccount): string {
  return document([
    {
      Effect: "Allow",
      Principal: { Service: "pods.eks.amazonaws.com" },
      Action: ["sts:AssumeRole", "sts:TagSession"],
      Condition: {
        StringEquals: {
          "aws:RequestTag/eks-cluster-arn": arnOf(place, "eks", `cluster/${place.cluster}`),
          "aws:RequestTag/kubernetes-namespace": account.namespace,
          "aws:RequestTag/kubernetes-service-account": account.serviceAccount,
        },
      },
    },
  ]);
}

/** The placeholder for the cluster's issuer in the trust document, which the script looks up. */
export const issuerPlace = "CLUSTER_ISSUER";

/**
 * Allows one ServiceAccount of the cluster to assume the role, with tokens of the cluster's issuer.
 */
export function webIdentityTrust(place: AwsPlace, account: PodAccount): string {
  const subject = `system:serviceaccount:${account.namespace}:${account.serviceAccount}`;
  return document([
    {
      Effect: "Allow",
      Principal: { Federated: arnOf(place, "iam", `oidc-provider/${issuerPlace}`) },
      Action: "sts:AssumeRoleWithWebIdentity",
      Condition: {
        StringEquals: {
          [`${issuerPlace}:aud`]: "sts.amazonaws.com",
          [`${issuerPlace}:sub`]: subject,
        },
      },
    },
  ]);
}

/** The events of EC2 and Auto Scaling about machines that docs/notices.md describes. */
export const machineEvents = JSON.stringify(
  {
    source: ["aws.ec2", "aws.autoscaling"],
    "detail-type": [
      "EC2 Spot Instance Interruption Warning",
      "EC2 Instance Rebalance Recommendation",
      "EC2 Capacity Reservation Instance Interruption Warning",
      "EC2 Interruptible Capacity Reservation Instance Interruption Warning",
      "EC2 Instance State-change Notification",
      "EC2 Instance-terminate Lifecycle Action",
    ],
  },
  null,
  2,
);

/** AWS Health reports on every service, so a rule of its own selects scheduled changes of EC2. */
export const healthEvents = JSON.stringify(
  {
    source: ["aws.health"],
    "detail-type": ["AWS Health Event"],
    detail: { service: ["EC2"], eventTypeCategory: ["scheduledChange"] },
  },
  null,
  2,
);

/**
 * The attributes of the queue: it keeps messages for two weeks, for AWS Health, encrypts them at
 * rest, and accepts them only from the two rules.
 */
export function queueAttributes(place: AwsPlace): string {
  const rule = (name: string) => arnOf(place, "events", `rule/${name}`);
  const policy = {
    Version: "2012-10-17",
    Statement: [
      {
        Effect: "Allow",
        Principal: { Service: "events.amazonaws.com" },
        Action: "sqs:SendMessage",
        Resource: arnOf(place, "sqs", place.queue ?? ""),
        Condition: {
          ArnEquals: { "aws:SourceArn": [rule(`${place.queue}`), rule(`${place.queue}-health`)] },
        },
      },
    ],
  };
  const attributes = {
    MessageRetentionPeriod: "1209600",
    SqsManagedSseEnabled: "true",
    Policy: JSON.stringify(policy),
  };
  return JSON.stringify(attributes, null, 2);
}

function document(statements: readonly object[]): string {
  return JSON.stringify({ Version: "2012-10-17", Statement: statements }, null, 2);
}
