import { isFields } from "../../core/json/json-field.ts";
import type { PodRule } from "../../core/policy/policy.ts";
import {
  choiceField,
  type ListField,
  type MapField,
  type ObjectField,
  percentMeant,
  positiveDurationField,
  ruleOn,
  type SchemaFields,
  type SchemaRule,
  type SchemaValue,
  type SchemaValues,
  type StringField,
  wordsOf,
} from "./field-schema.ts";

/** `values` is omitted with Exists and DoesNotExist. */
interface WrittenRequirement {
  readonly key: string;
  readonly operator: string;
  readonly values?: readonly string[];
}

const labelKeyPattern =
  "^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$";

const labelValuePattern = "^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$";

const labelKey: StringField = {
  type: "string",
  description: "The label's name.",
  pattern: labelKeyPattern,
  maxLength: 317,
  wanted: "a label name such as example.com/tier",
};

const labelValue: StringField = {
  type: "string",
  description: "The label's value.",
  pattern: labelValuePattern,
  maxLength: 63,
  wanted: "a label value: at most 63 letters, digits, dots, dashes and underscores",
};

const valuesWhereAsked: SchemaRule = ruleOn<WrittenRequirement>({
  cel: "!(self.operator in ['In', 'NotIn']) || (has(self.values) && size(self.values) > 0)",
  at: "values",
  wanted: "at least one value with the operator In or NotIn",
  holds: ({ operator, values = [] }) => !isOneOf(operator, "In", "NotIn") || values.length > 0,
});

const noValuesWhereNot: SchemaRule = ruleOn<WrittenRequirement>({
  cel: "!(self.operator in ['Exists', 'DoesNotExist']) || !has(self.values) || size(self.values) == 0",
  at: "values",
  wanted: "no values with the operator Exists or DoesNotExist",
  holds: ({ operator, values = [] }) =>
    !isOneOf(operator, "Exists", "DoesNotExist") || values.length === 0,
});

const oneNumberToCompare: SchemaRule = ruleOn<WrittenRequirement>({
  cel: "!(self.operator in ['Gt', 'Lt']) || (has(self.values) && size(self.values) == 1 && self.values[0].matches('^[0-9]+$'))",
  at: "values",
  wanted: "exactly one whole number with the operator Gt or Lt",
  holds: ({ operator, values = [] }) =>
    !isOneOf(operator, "Gt", "Lt") || (values.length === 1 && /^[0-9]+$/.test(values[0] ?? "")),
});

const oneName: SchemaRule = ruleOn<WrittenRequirement>({
  cel: "has(self.values) && size(self.values) == 1",
  at: "values",
  wanted: "exactly one node name",
  holds: ({ values = [] }) => values.length === 1,
});

function isOneOf(operator: string, ...operators: readonly string[]): boolean {
  return operators.includes(operator);
}

function valuesField(item: StringField) {
  return {
    type: "list",
    description: "The values to compare with.",
    items: item,
    maxItems: 64,
  } as const satisfies ListField;
}

function requirementField<const Operator extends string>(
  operators: readonly Operator[],
  rules: readonly SchemaRule[],
) {
  return {
    type: "object",
    description: "One requirement.",
    required: ["key", "operator"],
    properties: {
      key: labelKey,
      operator: choiceField({ description: "The operator.", choices: operators }),
      values: valuesField(labelValue),
    },
    rules,
  } as const satisfies ObjectField;
}

const setOperators = ["In", "NotIn", "Exists", "DoesNotExist"] as const;

const matchLabels: MapField = {
  type: "map",
  description: "Labels that must all be present with exactly these values.",
  keyPattern: labelKeyPattern,
  keyMaxLength: 317,
  values: labelValue,
  maxProperties: 32,
};

/** A label that was written without the field around it. */
function labelsFor(name: string, value: unknown): string {
  const isLeaf = typeof value === "string" || typeof value === "number";
  return `matchLabels: {${name}: ${isLeaf ? JSON.stringify(String(value)) : "…"}}`;
}

/** Selects pods by their labels, as in Kubernetes: `{}` selects every pod. */
export function labelSelectorField(description: string) {
  return {
    type: "object",
    description,
    instead: labelsFor,
    properties: {
      matchLabels,
      matchExpressions: {
        type: "list",
        description: "Requirements that must all hold.",
        maxItems: 32,
        items: requirementField(setOperators, [valuesWhereAsked, noValuesWhereNot]),
      },
    },
  } as const satisfies ObjectField;
}

export type WrittenLabelSelector = SchemaValue<ReturnType<typeof labelSelectorField>>;

const matchFields = {
  type: "list",
  description: "Requirements on `metadata.name`, the only field that node affinity supports.",
  maxItems: 32,
  items: {
    type: "object",
    description: "One requirement.",
    required: ["key", "operator"],
    properties: {
      key: choiceField({ description: "The field.", choices: ["metadata.name"] }),
      operator: choiceField({ description: "The operator.", choices: ["In", "NotIn"] }),
      values: valuesField({ type: "string", description: "A node's name.", maxLength: 253 }),
    },
    rules: [oneName],
  },
} as const satisfies ListField;

/** Labels that were written as in a label selector, as what node affinity has for them. */
function expressionFor(name: string, value: unknown, all: object = {}): string {
  const { key: label, operator, values } = all as Partial<WrittenRequirement>;
  if (typeof label === "string" && typeof operator === "string") {
    const listed = Array.isArray(values) ? `, values: [${values.join(", ")}]` : "";
    return `matchExpressions: [{key: ${label}, operator: ${operator}${listed}}]`;
  }
  const isLabels = name === "matchLabels" && isFields(value);
  // Requirements, or terms, at another level than theirs.
  if (!isLabels && typeof value === "object") return "matchExpressions: […]";
  const [first] = isLabels ? Object.entries(value) : [];
  const [key, text] = first ?? [name, value];
  const shown = typeof text === "string" ? text : "VALUE";
  return `matchExpressions: [{key: ${key}, operator: In, values: [${JSON.stringify(shown)}]}]`;
}

/** Selects nodes as a pod's required node affinity does. */
export function nodeSelectorField(description: string) {
  return {
    type: "object",
    description,
    required: ["nodeSelectorTerms"],
    instead: (name, value) => `nodeSelectorTerms: [{${expressionFor(name, value)}}]`,
    properties: {
      nodeSelectorTerms: {
        type: "list",
        description:
          "A node is selected when any of the terms matches it; a term matches when all of its requirements do. An empty list and an empty term match no node.",
        maxItems: 32,
        items: {
          type: "object",
          description: "One term.",
          instead: expressionFor,
          properties: {
            matchExpressions: {
              type: "list",
              description: "Requirements on labels.",
              maxItems: 32,
              items: requirementField(
                [...setOperators, "Gt", "Lt"],
                [valuesWhereAsked, noValuesWhereNot, oneNumberToCompare],
              ),
            },
            matchFields,
          },
        },
      },
    },
  } as const satisfies ObjectField;
}

export type WrittenNodeSelector = SchemaValue<ReturnType<typeof nodeSelectorField>>;

const podRuleFields = {
  selector: labelSelectorField("The pods; `{}` selects every pod."),
  namespaces: {
    type: "list",
    description: "The namespaces that the rule covers; if not set, all namespaces.",
    minItems: 1,
    maxItems: 64,
    wanted: "at least one namespace (for all namespaces, omit the field)",
    items: {
      type: "string",
      description: "A namespace.",
      pattern: "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
      maxLength: 63,
      wanted: "the name of a namespace",
    },
  },
  action: choiceField({
    description:
      "`Evict`: evict the pod; `Skip`: leave it on the node; `Block`: start no planned departure; `WaitCompleted`: wait until the pod has completed; `Delete`: delete it regardless of its budget.",
    choices: wordsOf<PodRule["action"]>({
      Evict: true,
      Skip: true,
      Block: true,
      WaitCompleted: true,
      Delete: true,
    }),
  }),
  timeout: positiveDurationField({
    description:
      "For `WaitCompleted`: the longest wait; if not set, as long as the drain may take.",
  }),
} as const satisfies SchemaFields;

export type WrittenPodRule = SchemaValues<typeof podRuleFields, "selector" | "action">;

const podRules = {
  type: "list",
  description: "What happens to certain pods; the first rule that selects a pod decides.",
  default: [],
  maxItems: 64,
  items: {
    type: "object",
    description: "One rule.",
    required: ["selector", "action"],
    properties: podRuleFields,
    rules: [
      ruleOn<WrittenPodRule>({
        cel: "!has(self.timeout) || self.action == 'WaitCompleted'",
        at: "timeout",
        wanted: "timeout only with the action WaitCompleted",
        holds: ({ timeout, action }) => timeout === undefined || action === "WaitCompleted",
      }),
    ],
  },
} as const satisfies ListField;

/** `spec.drain`. */
export const drainField = {
  type: "object",
  description: "How the pods of a node leave.",
  default: {},
  properties: {
    timeout: positiveDurationField({
      description: "How long a planned drain may take.",
      default: "5m",
    }),
    onTimeout: choiceField({
      description:
        "`RollBack`: uncordon the node and keep it; `Proceed`: delete the remaining pods; `Wait`: wait until the deadline.",
      choices: ["RollBack", "Proceed", "Wait"],
      default: "RollBack",
    }),
    podRules,
    onSingleReplica: choiceField({
      description:
        "For a single replica whose budget allows no disruption. `Wait`: wait for the budget; `RestartOwner`: restart its owner so that a new pod starts elsewhere first, which requires the role of `deploy/restart-owner`.",
      choices: ["Wait", "RestartOwner"],
      default: "Wait",
    }),
    budgetShare: {
      type: "string",
      description:
        "The share of a notice for which a PodDisruptionBudget may hold a pod; after that, the pod is deleted with the grace period that is left. With `0%`, a pod's grace period takes precedence over its budget.",
      pattern: "^([1-9]?[0-9]|100)%$",
      maxLength: 4,
      meant: percentMeant,
      wanted: "a percentage from 0% to 100%",
      default: "50%",
    },
  },
} as const satisfies ObjectField;
