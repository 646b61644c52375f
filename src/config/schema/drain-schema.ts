import type { PodRule } from "../../core/policy/policy.ts";
import {
  choiceField,
  type ListField,
  type ObjectField,
  positiveDurationField,
  ruleOn,
  type SchemaFields,
  type SchemaValues,
  wordsOf,
} from "./field-schema.ts";
import { labelSelectorField } from "./selector-schema.ts";

const podRuleFields = {
  selector: labelSelectorField("The pods; `{}` selects every pod."),
  namespaces: {
    type: "list",
    description: "The namespaces that the rule covers; if not set, all.",
    minItems: 1,
    maxItems: 64,
    wanted: "at least one namespace (all of them: leave namespaces out)",
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
      "`Evict` it, `Skip` it, let it `Block` a planned departure, wait until it has completed, or `Delete` it regardless of its budget.",
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
      "For `WaitCompleted`: how long at most; if not set, as long as the drain may take.",
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
        wanted: "no timeout but with the action WaitCompleted",
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
        "`RollBack`: the node stays and is uncordoned; `Proceed`: what is left is deleted; `Wait`: until the deadline.",
      choices: ["RollBack", "Proceed", "Wait"],
      default: "RollBack",
    }),
    podRules,
    onSingleReplica: choiceField({
      description:
        "For a single replica whose budget allows no disruption: `Wait` for the budget, or restart its owner so that a new pod comes up elsewhere first, which needs the role of `deploy/restart-owner`.",
      choices: ["Wait", "RestartOwner"],
      default: "Wait",
    }),
    budgetShare: {
      type: "string",
      description:
        "Under a notice: for how much of it a PodDisruptionBudget may hold a pod, which is deleted after that with the grace that is left. With `0%` a pod's grace period takes precedence over its budget.",
      pattern: "^([1-9]?[0-9]|100)%$",
      maxLength: 4,
      wanted: "a share from 0% to 100%",
      default: "50%",
    },
  },
} as const satisfies ObjectField;
