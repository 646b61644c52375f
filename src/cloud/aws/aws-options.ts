/** Options of the controller for the notices of AWS about its machines. */
export const awsOptions = [
  {
    name: "sqs-queue-url",
    type: "url",
    value: "URL",
    commands: ["run"],
    help: "URL of the SQS queue that receives EC2's notices; default: none",
  },
  {
    name: "sqs-queue-url",
    type: "url",
    value: "URL",
    commands: ["doctor"],
    help: "URL of the SQS queue to check; default: the one that the controller reads",
  },
  {
    name: "sqs-receivers",
    type: "integer",
    value: "N",
    minimum: 1,
    maximum: 20,
    default: "2",
    commands: ["run"],
    help: "Number of concurrent receivers on the queue",
  },
  {
    name: "sqs-unknown",
    type: "choice",
    choices: ["Leave", "Delete"],
    default: "Leave",
    commands: ["run"],
    help: "What to do with messages that concern no node of this cluster or cannot be read; use Delete only for a queue of this cluster alone",
  },
  {
    name: "sqs-complete-hooks",
    type: "switch",
    default: "true",
    commands: ["run", "setup"],
    parts: ["aws"],
    help: "Complete the lifecycle hooks that the queue reports: when a terminating node is drained, or a launched one is ready; setup grants the permission",
  },
  {
    name: "sqs-abandon-launch-after",
    type: "duration",
    value: "DURATION",
    // No machine becomes a node faster: the group would launch and terminate machines forever.
    shortest: "1m",
    commands: ["run"],
    help: "How long a launched instance may take to become a ready node before its lifecycle hook is abandoned, which terminates it; only for a queue of this cluster's groups alone; default: never",
  },
  {
    name: "ec2-status-poll",
    type: "duration",
    value: "DURATION",
    // A longer interval is too late for an event at short notice; a shorter one wastes the
    // account's quota.
    shortest: "1s",
    longest: "10m",
    commands: ["run", "setup"],
    parts: ["aws"],
    help: "How often to poll EC2 for scheduled events of instances, such as 1m; setup grants the permission; default: never",
  },
  {
    name: "aws-actions",
    type: "switch",
    default: "false",
    commands: ["setup"],
    parts: ["aws"],
    help: "With aws: grant the permissions of the actions that policies carry out in AWS: load balancers, security groups, detaching, SNS and Lambda",
  },
  {
    name: "aws-managed-tag",
    type: "text",
    value: "KEY[=VALUE]",
    commands: ["run", "setup"],
    parts: ["aws"],
    help: "Act only on notices from the queue and EC2 for instances with this tag; default: every node that a policy selects",
  },
] as const;

/** Options of `lastcall setup aws`, in addition to those of every cloud. */
export const awsSetupOptions = [
  {
    name: "account",
    type: "text",
    value: "ID",
    commands: ["setup"],
    parts: ["aws"],
    help: "With aws, required: the account of the cluster, 12 digits",
  },
  {
    name: "region",
    type: "text",
    value: "NAME",
    commands: ["setup"],
    parts: ["aws"],
    help: "With aws, required: the region of the cluster",
  },
  {
    name: "identity",
    type: "choice",
    choices: ["PodIdentity", "IRSA"],
    default: "PodIdentity",
    commands: ["setup"],
    parts: ["aws"],
    help: "With aws: how the ServiceAccount gets its role",
  },
  {
    name: "queue",
    type: "text",
    value: "NAME",
    commands: ["setup"],
    parts: ["aws"],
    help: "With aws: create this SQS queue and the EventBridge rules that fill it; default: none",
  },
] as const;
