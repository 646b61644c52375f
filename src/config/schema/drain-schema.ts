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
      wanted: "a percentage from 0% to 100%",
      default: "50%",
    },
  },
} as const satisfies ObjectField;
