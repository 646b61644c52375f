import type { Option } from "./option.ts";

/** What `lastcall run` takes for what AWS says of its machines. */
export const awsOptions = [
  {
    name: "sqs-queue-url",
    type: "url",
    value: "URL",
    commands: ["run"],
    help: "A queue of SQS to which EC2's notices are sent; absent: none is read",
  },
  {
    name: "sqs-queue-url",
    type: "url",
    value: "URL",
    commands: ["doctor"],
    help: "The queue to look at; absent: the one that the controller reads",
  },
  {
    name: "sqs-receivers",
    type: "integer",
    value: "N",
    minimum: 1,
    maximum: 20,
    default: "2",
    commands: ["run"],
    help: "How many receivers wait for messages of the queue at a time",
  },
  {
    name: "sqs-unknown",
    type: "choice",
    choices: ["Leave", "Delete"],
    default: "Leave",
    commands: ["run"],
    help: "What becomes of messages that are for no node of this cluster or cannot be read; Delete where the queue is this cluster's alone",
  },
  {
    name: "sqs-complete-hooks",
    type: "switch",
    default: "true",
    commands: ["run", "setup"],
    help: "Tells Auto Scaling to go on with an instance of whose lifecycle hook the queue speaks: when its node is drained, or a new one is ready",
  },
  {
    name: "ec2-status-poll",
    type: "duration",
    value: "DURATION",
    commands: ["run", "setup"],
    help: "How often to ask EC2 for what is scheduled for instances, such as 1m; absent: not at all",
  },
  {
    name: "aws-managed-tag",
    type: "text",
    value: "KEY[=VALUE]",
    commands: ["run", "setup"],
    help: "Heeds what the queue and EC2 say only of instances that carry this tag; absent: of every node that a policy owns",
  },
] as const satisfies readonly Option[];
