import { jsonTemplateProblem } from "../../core/action/template.ts";
import { isJson, messageField, templateField, textOf } from "./action-field.ts";
import {
  type ObjectField,
  ruleOn,
  type SchemaFields,
  type SchemaValues,
  switchField,
} from "./field-schema.ts";

const deregisterTargets = {
  type: "object",
  description: "Deregisters the machine from its target groups and classic load balancers (AWS).",
  properties: {
    wait: {
      type: "boolean",
      description: "Complete only when no target is draining, or after `timeout`.",
      default: true,
    },
  },
} as const satisfies ObjectField;

const replaceSecurityGroups = {
  type: "object",
  description: "Replaces the security groups of every network interface (AWS).",
  required: ["groupIds"],
  properties: {
    groupIds: {
      type: "list",
      description: "The security groups to set.",
      minItems: 1,
      maxItems: 16,
      unique: true,
      wanted: "a list with at least one security group",
      items: textOf({
        description: "A security group.",
        pattern: "^sg-[0-9a-f]+$",
        maxLength: 64,
        wanted: "the id of a security group such as sg-0abc",
      }),
    },
  },
} as const satisfies ObjectField;

const detach = {
  type: "object",
  description:
    "Detaches the machine from its Auto Scaling group, so that a replacement starts at once (AWS).",
  properties: {
    decrementDesiredCapacity: switchField("Shrinks the group by one, so no replacement starts."),
  },
} as const satisfies ObjectField;

const sns = {
  type: "object",
  description: "Publishes a message to an SNS topic (AWS).",
  required: ["topicArn"],
  properties: {
    topicArn: textOf({
      description: "The topic's ARN.",
      pattern: "^arn:[a-z-]+:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_.-]+$",
      maxLength: 512,
      wanted: "the ARN of an SNS topic",
    }),
    subject: templateField({
      description: "The subject; a template. Truncated to 99 characters.",
      default: "{{node}} {{cause}} {{outcome}}",
      maxLength: 256,
    }),
    message: messageField,
  },
} as const satisfies ObjectField;

const lambdaFields = {
  functionName: textOf({
    description: "The function's name or ARN, optionally with a version or alias.",
    pattern: "^[A-Za-z0-9:_$.-]+$",
    maxLength: 256,
    wanted: "the name or ARN of a Lambda function",
  }),
  payload: templateField({
    description:
      "The payload in JSON; a template. If not set, an object with instanceId, node, cause and deadline.",
  }),
} as const satisfies SchemaFields;

const lambda = {
  type: "object",
  description: "Invokes a Lambda function asynchronously, without waiting for its result (AWS).",
  required: ["functionName"],
  properties: lambdaFields,
  rules: [
    ruleOn<SchemaValues<typeof lambdaFields, "functionName">>({
      localOnly: "CEL cannot parse JSON",
      at: "payload",
      wanted: "JSON, with each {{…}} inside quotes",
      holds: ({ payload }) => payload === undefined || isJson(payload),
      found: ({ payload = "" }) => jsonTemplateProblem(payload) ?? "",
    }),
  ],
} as const satisfies ObjectField;

/** The types of actions in AWS. */
export const awsActionFields = { deregisterTargets, replaceSecurityGroups, detach, sns, lambda };
