import { jsonTemplateProblem } from "../../core/action/template.ts";
import {
  type ActionKind,
  type ActionPoint,
  actionKinds,
  causes,
  type MackerelStatus,
} from "../../core/policy/action.ts";
import {
  attemptDurationField,
  choiceField,
  type ListField,
  type ObjectField,
  positiveDurationField,
  repeatedName,
  ruleOn,
  type SchemaFields,
  type SchemaValue,
  type SchemaValues,
  switchField,
  wordsOf,
} from "./field-schema.ts";
import {
  apiField,
  baseUrlField,
  cloudEvents,
  http,
  isJson,
  isTemplate,
  isWithoutApiPath,
  messageField,
  secretField,
  slack,
  teams,
  telegram,
  templateField,
  textOf,
} from "./http-action-schema.ts";

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
const awsActionFields = { deregisterTargets, replaceSecurityGroups, detach, sns, lambda };

const matcherPattern =
  '^[A-Za-z_][A-Za-z0-9_]* *(=~|!~|!=|=) *("([^"\\\\]|\\\\.)*"|[^"\\s=~!]\\S*)$';

const alertmanagerSilence = {
  type: "object",
  description:
    "Creates a silence in Alertmanager. It is deleted if the departure is rolled back or its notice is withdrawn, and otherwise expires after `duration`.",
  required: ["url", "matchers"],
  properties: {
    url: {
      ...baseUrlField("The address of Alertmanager, without `/api/v2`."),
      rules: [isWithoutApiPath],
    },
    matchers: {
      type: "list",
      description: "Which alerts to silence: those that meet all matchers.",
      minItems: 1,
      maxItems: 32,
      wanted: "a list with at least one matcher",
      items: {
        type: "string",
        description: "A matcher; its value is a template.",
        pattern: matcherPattern,
        maxLength: 1024,
        wanted: 'a matcher such as instance="{{node}}"',
        rules: [isTemplate],
      },
    },
    duration: positiveDurationField({ description: "How long it lasts.", default: "2h" }),
    comment: templateField({
      description: "The comment of the silence; a template.",
      default: "{{node}} leaves: {{cause}}",
      maxLength: 512,
    }),
    secretRef: secretField("A bearer token, if Alertmanager asks for one."),
  },
} as const satisfies ObjectField;

const datadogMute = {
  type: "object",
  description: "Mutes the host in Datadog, and unmutes it if the departure is rolled back.",
  required: ["apiKey", "applicationKey"],
  properties: {
    url: apiField("The API of your Datadog site.", "https://api.datadoghq.com"),
    host: templateField({
      description: "The host's name in Datadog; a template.",
      default: "{{node}}",
      maxLength: 512,
    }),
    duration: positiveDurationField({ description: "How long it is muted.", default: "2h" }),
    apiKey: keyField("The API key."),
    applicationKey: keyField("The application key."),
  },
} as const satisfies ObjectField;

function keyField(description: string) {
  return {
    type: "object",
    description,
    required: ["secretRef"],
    properties: { secretRef: secretField(description) },
  } as const satisfies ObjectField;
}

const mackerelStatus = {
  type: "object",
  description:
    "Sets the host's status in Mackerel, and restores it if the departure is rolled back.",
  required: ["secretRef"],
  properties: {
    url: apiField("The API.", "https://api.mackerelio.com"),
    host: templateField({
      description: "The host's name or custom identifier; a template.",
      default: "{{node}}",
      maxLength: 512,
    }),
    status: choiceField({
      description: "The status to set.",
      choices: wordsOf<MackerelStatus["status"]>({
        maintenance: true,
        standby: true,
        poweroff: true,
      }),
      default: "maintenance",
    }),
    secretRef: secretField("The API key."),
  },
} as const satisfies ObjectField;

/** The types of actions; each is a field, and an action has exactly one of them. */
const actionKindFields = {
  ...awsActionFields,
  ...{ alertmanagerSilence, datadogMute, mackerelStatus },
  ...{ slack, teams, telegram, cloudEvents, http },
} as const satisfies Readonly<Record<Exclude<ActionKind, "unknown">, ObjectField>>;

/** The types of an action as the schema returns them. */
export type WrittenActionKinds = {
  readonly [Kind in keyof typeof actionKindFields]: SchemaValue<(typeof actionKindFields)[Kind]>;
};

const ownFields = {
  name: {
    type: "string",
    description: "The action's name in status, logs and messages; unique within the policy.",
    pattern: "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    maxLength: 63,
    wanted: "a name of lower case letters, digits and dashes",
  },
  at: choiceField({
    description:
      "`AtNotice`: when the departure starts, in parallel with cordon and drain; `BeforeDrain` and `AfterDrain`: before and after the drain, if there is one; `AtEnd`: once the outcome is known.",
    choices: wordsOf<ActionPoint>({
      AtNotice: true,
      BeforeDrain: true,
      AfterDrain: true,
      AtEnd: true,
    }),
  }),
  causes: {
    type: "list",
    description: "Runs only for departures with these causes; if not set, for all.",
    minItems: 1,
    maxItems: 8,
    unique: true,
    wanted: "a list with at least one cause (for all causes, omit the field)",
    items: choiceField({
      description: "A cause.",
      choices: causes,
    }),
  },
  timeout: attemptDurationField({
    description: "How long one attempt may take. A cancelled departure may wait for it.",
    default: "10s",
  }),
  retries: {
    type: "integer",
    description: "How many times to retry after a failed attempt; never after the deadline.",
    default: 3,
    minimum: 0,
    maximum: 20,
    wanted: "a whole number from 0 to 20",
  },
  required: switchField(
    "The drain of a planned departure waits for it, and does not start if it fails. Under a notice, nothing waits.",
  ),
} as const satisfies SchemaFields;

/** An entry of `spec.actions` as the schema returns it; it has one of the types. */
export interface WrittenAction
  extends SchemaValues<typeof ownFields, "name" | "at">,
    Partial<WrittenActionKinds> {
  /** A field that this version does not know and a newer CRD has let in: presumably its type. */
  readonly newerType?: string;
}

const actionField: ObjectField = {
  type: "object",
  description: "One action: when it runs, for which causes, and exactly one type.",
  required: ["name", "at"],
  properties: { ...ownFields, ...actionKindFields },
  rules: [
    ruleOn<WrittenAction>({
      cel: `[${actionKinds.map((kind) => `has(self.${kind})`).join(", ")}].filter(is, is).size() == 1`,
      wanted: "exactly one type of action, such as slack: {…} or detach: {}",
      holds: (action) => kindsOf(action).length === 1,
      found: (action) => kindsOf(action).join(" and ") || "none",
    }),
    ruleOn<WrittenAction>({
      cel: "!self.required || self.at in ['AtNotice', 'BeforeDrain']",
      at: "required",
      wanted: "true only with AtNotice or BeforeDrain: nothing after the drain can hold it back",
      holds: ({ required, at }) => !required || at === "AtNotice" || at === "BeforeDrain",
    }),
  ],
};

/** `spec.actions`. */
export const actionsField: ListField = {
  type: "list",
  description:
    "What else happens at a departure: deregistration from load balancers, quarantine, muted alerts, messages. See docs/actions.md.",
  default: [],
  maxItems: 32,
  items: actionField,
  rules: [
    ruleOn<readonly WrittenAction[]>({
      cel: "self.all(a, self.exists_one(o, o.name == a.name))",
      wanted: "a unique name for each action",
      holds: (actions) => repeatedName(actions) === undefined,
      found: (actions) => `the name ${JSON.stringify(repeatedName(actions))} twice`,
    }),
  ],
};

/** The types that an action has; one of a newer version counts. */
function kindsOf(action: WrittenAction): readonly string[] {
  const newer = action.newerType === undefined ? [] : [action.newerType];
  return [...actionKinds.filter((kind) => action[kind] !== undefined), ...newer];
}
