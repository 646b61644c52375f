import {
  choiceField,
  type ListField,
  type MapField,
  type ObjectField,
  ruleOn,
  type SchemaRule,
  type SchemaValue,
  type StringField,
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

/** Selects pods by their labels, as in Kubernetes: `{}` selects every pod. */
export function labelSelectorField(description: string) {
  return {
    type: "object",
    description,
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

/** Selects nodes as a pod's required node affinity does. */
export function nodeSelectorField(description: string) {
  return {
    type: "object",
    description,
    required: ["nodeSelectorTerms"],
    properties: {
      nodeSelectorTerms: {
        type: "list",
        description:
          "A node is selected when any of the terms matches it; a term matches when all of its requirements do. An empty list and an empty term match no node.",
        maxItems: 32,
        items: {
          type: "object",
          description: "One term.",
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
