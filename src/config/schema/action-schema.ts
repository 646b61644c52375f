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
    description: "What status, log lines and messages call it; unique within the policy.",
    pattern: "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    maxLength: 63,
    wanted: "a name of lower case letters, digits and dashes",
  },
  at: choiceField({
    description:
      "`AtNotice`: when the departure begins, beside cordon and drain; `BeforeDrain` and `AfterDrain`: around the drain, where there is one; `AtEnd`: once the outcome is known.",
    choices: wordsOf<ActionPoint>({
      AtNotice: true,
      BeforeDrain: true,
      AfterDrain: true,
      AtEnd: true,
    }),
  }),
  causes: {
    type: "list",
    description: "Only for departures of these causes; if not set, for all.",
    minItems: 1,
    maxItems: 8,
    unique: true,
    wanted: "a list with at least one cause (all of them: leave causes out)",
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
    description: "How many attempts follow a first one that failed; none after the deadline.",
    default: 3,
    minimum: 0,
    maximum: 20,
    wanted: "a whole number from 0 to 20",
  },
  required: switchField(
    "The drain of a planned departure waits for it, and does not begin if it fails. Under a notice nothing waits.",
  ),
} as const satisfies SchemaFields;

/** An entry of `spec.actions` as it is written; one of the types is there. */
export interface WrittenAction
  extends SchemaValues<typeof ownFields, "name" | "at">,
    Partial<WrittenActionKinds> {
  /** A field that this version does not know, and a newer CRD has let in: its type, no doubt. */
  readonly newerType?: string;
}

const actionField: ObjectField = {
  type: "object",
  description: "One action: when, for which causes, and exactly one type of what it does.",
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
    "What happens around a departure: traffic out, quarantine, mute, tell. See docs/actions.md.",
  default: [],
  maxItems: 32,
  items: actionField,
  rules: [
    ruleOn<readonly WrittenAction[]>({
      cel: "self.all(a, self.exists_one(o, o.name == a.name))",
      wanted: "a name of its own for each action",
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
