import {
  jsonTemplateProblem,
  templateProblem,
  templateWanted,
} from "../../core/action/template.ts";
import {
  type ObjectField,
  ruleOn,
  type SchemaFields,
  type SchemaRule,
  type SchemaValues,
  type StringField,
  switchField,
} from "./field-schema.ts";

export const isTemplate: SchemaRule = ruleOn<string>({
  localOnly: "CEL reads no mustache",
  wanted: templateWanted,
  holds: (text) => templateProblem(text) === undefined,
  found: (text) => templateProblem(text) ?? "",
});

export function isJson(text: string): boolean {
  return jsonTemplateProblem(text) === undefined;
}

export function templateField<
  Options extends {
    readonly description: string;
    readonly default?: string;
    readonly maxLength?: number;
  },
>(options: Options): StringField & Options {
  const { maxLength = 4096 } = options;
  const wanted = `text of at most ${maxLength} characters`;
  return { type: "string", ...options, maxLength, wanted, rules: [isTemplate] };
}

export const messageField = templateField({
  description: "The message, a template.",
  default: "{{summary}}",
});

export function urlField(description: string): StringField {
  return {
    type: "string",
    description,
    pattern: "^https?://[^\\s/@{}]+(/[^\\s{}]*)?$",
    maxLength: 1024,
    wanted: "an address such as https://example.com/path, without a password or template",
  };
}

export function apiField(description: string, fallback: string) {
  return { ...urlField(description), default: fallback } as const satisfies StringField;
}

export function urlTemplate(description: string): StringField {
  return {
    ...urlField(description),
    pattern: "^https?://[^\\s/@{}]+(/\\S*)?$",
    wanted: "an address such as https://example.com/{{node}}, whose host is no template",
    rules: [isTemplate],
  };
}

export function secretField(description: string) {
  return {
    type: "object",
    description: `${description} A Secret in the namespace of Lastcall.`,
    required: ["name", "key"],
    properties: {
      name: {
        type: "string",
        description: "The Secret's name.",
        pattern: "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
        maxLength: 253,
        wanted: "the name of a Secret",
      },
      key: {
        type: "string",
        description: "The key in its data.",
        pattern: "^[-._a-zA-Z0-9]+$",
        maxLength: 253,
        wanted: "a key of a Secret",
      },
    },
  } as const satisfies ObjectField;
}

export function textOf(options: {
  readonly description: string;
  readonly pattern: string;
  readonly maxLength: number;
  readonly wanted: string;
}): StringField {
  return { type: "string", ...options };
}

const deregisterTargets = {
  type: "object",
  description:
    "The machine leaves every target group of its load balancers, and classic load balancers (AWS).",
  properties: {
    wait: {
      type: "boolean",
      description: "End only when no target is draining any more, or `timeout` is over.",
      default: true,
    },
  },
} as const satisfies ObjectField;

const replaceSecurityGroups = {
  type: "object",
  description: "The security groups of every network interface are replaced by these (AWS).",
  required: ["groupIds"],
  properties: {
    groupIds: {
      type: "list",
      description: "The security groups that the machine has from then on.",
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
    "The machine is detached from its Auto Scaling group, so that a replacement starts at once (AWS).",
  properties: {
    decrementDesiredCapacity: switchField("The group shrinks by it: no replacement starts."),
  },
} as const satisfies ObjectField;

const sns = {
  type: "object",
  description: "A message to an SNS topic (AWS).",
  required: ["topicArn"],
  properties: {
    topicArn: textOf({
      description: "The topic.",
      pattern: "^arn:[a-z-]+:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_.-]+$",
      maxLength: 512,
      wanted: "the ARN of an SNS topic",
    }),
    subject: templateField({
      description: "The subject, a template; cut to 99 characters.",
      default: "{{node}} {{cause}} {{outcome}}",
      maxLength: 256,
    }),
    message: messageField,
  },
} as const satisfies ObjectField;

const lambdaFields = {
  functionName: textOf({
    description: "Its name or ARN, with a version or alias if wanted.",
    pattern: "^[A-Za-z0-9:_$.-]+$",
    maxLength: 256,
    wanted: "the name or ARN of a Lambda function",
  }),
  payload: templateField({
    description: "JSON, a template; if not set, an object of instanceId, node, cause and deadline.",
  }),
} as const satisfies SchemaFields;

const lambda = {
  type: "object",
  description: "A Lambda function is invoked as an event: nobody waits for its answer (AWS).",
  required: ["functionName"],
  properties: lambdaFields,
  rules: [
    ruleOn<SchemaValues<typeof lambdaFields, "functionName">>({
      localOnly: "CEL reads no JSON",
      at: "payload",
      wanted: "JSON, with each {{…}} inside quotes",
      holds: ({ payload }) => payload === undefined || isJson(payload),
      found: ({ payload = "" }) => jsonTemplateProblem(payload) ?? "",
    }),
  ],
} as const satisfies ObjectField;

/** The types of actions that are carried out in AWS. */
export const awsActionFields = { deregisterTargets, replaceSecurityGroups, detach, sns, lambda };
