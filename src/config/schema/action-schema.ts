import { type ActionPoint, actionKinds, causes } from "../../core/policy/action.ts";
import { actionKindFields, type WrittenActionKinds } from "./action-kind-schema.ts";
import {
  choiceField,
  type ListField,
  type ObjectField,
  positiveDurationField,
  repeatedName,
  ruleOn,
  type SchemaFields,
  type SchemaValues,
  switchField,
  wordsOf,
} from "./field-schema.ts";

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
  timeout: positiveDurationField({
    description: "How long one attempt may take.",
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
