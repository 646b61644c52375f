import { knownClouds } from "../../cloud/facts/known-clouds.ts";
import type {
  GangRule,
  HookResult,
  NoticeReaction,
  ReleaseMode,
} from "../../core/policy/policy.ts";
import { andList } from "../../core/reason/word-list.ts";
import { actionsField, type WrittenAction } from "./action-schema.ts";
import {
  amountField,
  choiceField,
  durationField,
  instantField,
  type ListField,
  type ObjectField,
  percentMeant,
  positiveDurationField,
  recordedDurationField,
  ruleOn,
  type SchemaFields,
  type SchemaValues,
  switchField,
  wordsOf,
} from "./field-schema.ts";
import { baseUrlField, isWithoutApiPath } from "./http-action-schema.ts";
import { lifetimeField } from "./lifetime-schema.ts";
import { drainField, labelSelectorField, nodeSelectorField } from "./selector-schema.ts";
import { windowsField } from "./window-schema.ts";

const spacing = {
  type: "object",
  description: "How far apart the departures of the policy are.",
  default: {},
  properties: {
    mode: choiceField({
      description:
        "`Late`: every node as late as a gap of `min` allows; `Even`: the widest gap possible.",
      choices: ["Late", "Even"],
      default: "Late",
    }),
    min: durationField({
      description: "The gap to keep in `Late`; a smaller one is used if no plan can keep it.",
      default: "15m",
    }),
  },
} as const satisfies ObjectField;

const budgetFields = {
  nodes: amountField(
    "How many nodes may leave at once: a count, or a share of the matched nodes rounded down, but at least 1. Nodes that are not ready, cordoned by others, terminating or under notice count as out.",
  ),
  perHour: {
    type: "integer",
    description: "The number of departures that may start in any 60 minutes.",
    minimum: 1,
    maximum: 100_000,
    wanted: "a whole number from 1 to 100000",
  },
  scope: choiceField({
    description:
      "For `nodes`: counted over the policy's nodes (the default), over the nodes of one zone, or over the nodes of all policies.",
    choices: ["Policy", "Zone", "Cluster"],
  }),
} as const satisfies SchemaFields;
type WrittenBudget = SchemaValues<typeof budgetFields>;

const budgets = {
  type: "list",
  description: "How many nodes may be leaving at once, or leave in an hour. All budgets apply.",
  default: [],
  maxItems: 32,
  items: {
    type: "object",
    description: "One limit: `nodes` or `perHour`.",
    properties: budgetFields,
    rules: [
      ruleOn<WrittenBudget>({
        cel: "has(self.nodes) || has(self.perHour)",
        wanted: "nodes or perHour",
        holds: ({ nodes, perHour }) => (nodes ?? perHour) !== undefined,
        found: () => "a budget without either",
      }),
      ruleOn<WrittenBudget>({
        cel: "!has(self.nodes) || !has(self.perHour)",
        at: "perHour",
        wanted: "one budget for nodes and one for perHour",
        holds: ({ nodes, perHour }) => nodes === undefined || perHour === undefined,
        found: () => "perHour beside nodes",
      }),
      ruleOn<WrittenBudget>({
        cel: "!has(self.perHour) || !has(self.scope) || self.scope == 'Policy'",
        at: "scope",
        wanted: "the scope Policy with perHour",
        holds: ({ perHour, scope = "Policy" }) => perHour === undefined || scope === "Policy",
      }),
    ],
  },
} as const satisfies ListField;

const waves = {
  type: "object",
  description:
    "Planned departures in waves, the canary first. If not set, only the budgets limit how many leave.",
  required: ["sizes"],
  properties: {
    sizes: {
      type: "list",
      description:
        "The number of departures in each wave. The next wave starts when all of them have succeeded; after the last wave there is no limit. A departure that is rolled back, fails or leaves pods behind halts the waves: nodes then leave only at their deadlines.",
      minItems: 1,
      maxItems: 32,
      wanted: "at least one wave, such as [1, 10%]",
      items: amountField("A count, or a share of the matched nodes rounded down, but at least 1."),
    },
    restartedAt: instantField(
      "What ended before this instant does not count: the waves start again with the canary. To continue after a halt, or to test a change of the policy carefully, set it to the current time.",
    ),
  },
} as const satisfies ObjectField;

const alerts = {
  type: "object",
  description:
    "Holds departures while Alertmanager reports a firing alert that the matchers select, or does not respond.",
  required: ["url"],
  properties: {
    url: {
      ...baseUrlField(
        "The address of Alertmanager, without `/api/v2`. Its host must be in `--action-hosts`.",
      ),
      rules: [isWithoutApiPath],
    },
    matchers: {
      type: "list",
      description: "Matchers that an alert must all meet; if empty, every alert counts.",
      default: [],
      maxItems: 32,
      items: {
        type: "string",
        description: "One matcher.",
        pattern: '^[A-Za-z_][A-Za-z0-9_]* *(=~|!~|!=|=) *("([^"\\\\]|\\\\.)*"|[^"\\s=~!]\\S*)$',
        maxLength: 1024,
        wanted: 'a matcher such as severity="critical"',
      },
    },
  },
} as const satisfies ObjectField;

const gates = {
  type: "object",
  description: "What holds planned departures back. A notice passes every gate.",
  default: {},
  properties: {
    freezeUntil: instantField("No planned departure starts before this instant."),
    alerts,
    blockingPods: {
      type: "list",
      description: "A node does not leave while a pod runs on it that one of these selects.",
      default: [],
      maxItems: 32,
      items: labelSelectorField("Selects pods of all namespaces."),
    },
    gangWorkloads: choiceField({
      description:
        "Nodes whose departure would end a workload that runs on several nodes: hosts of a TPU slice or of queued provisioning (GKE), and nodes with pods of a JobSet, a LeaderWorkerSet or another gang. Hold: they do not leave on their own, not even at their deadline. Allow: they leave one by one, like others.",
      default: "Hold",
      choices: wordsOf<GangRule>({ Hold: true, Allow: true }),
    }),
    maxUnhealthy: {
      type: "string",
      description:
        "No planned or requested departure starts while at least this share of the policy's nodes, or of all nodes, is not Ready (and at least three of them), whatever their deadlines. `100%`: only while none is Ready.",
      pattern: "^([1-9][0-9]?|100)%$",
      maxLength: 4,
      meant: percentMeant,
      wanted: "a percentage from 1% to 100%",
      default: "55%",
    },
  },
} as const satisfies ObjectField;

const replacement = {
  type: "object",
  description: "Whether capacity for the pods is reserved before they are evicted.",
  default: {},
  properties: {
    when: choiceField({
      description: "`BeforeDrain`: the capacity is ready before the first eviction.",
      choices: ["BeforeDrain", "None"],
      default: "None",
    }),
    timeout: positiveDurationField({
      description: "How long to wait for the capacity.",
      default: "10m",
    }),
    onTimeout: choiceField({
      description: "What to do if the capacity is not ready by then.",
      choices: ["Proceed", "RollBack"],
      default: "Proceed",
    }),
    expectFor: recordedDurationField({
      description:
        "How long a machine that its group should replace is expected back. Until then it counts as out in the budgets, and if too many are not back after `timeout`, no voluntary departure starts. After that, the fleet counts as smaller. A machine that the cloud took is expected back for at most an hour. `0s`: none is.",
      default: "24h",
    }),
  },
} as const satisfies ObjectField;

const reactions = wordsOf<NoticeReaction>({
  Drain: true,
  Release: true,
  Cordon: true,
  Notify: true,
  Ignore: true,
});

const onNotice = {
  type: "object",
  description:
    "What to do at a notice from the cloud. `Notify`: the node keeps running, and an Event reports the notice; `Release`: as `Drain`, and the machine is released by `instance.release` as soon as its node is drained, instead of when the cloud interrupts it.",
  default: {},
  properties: {
    spotInterruption: choiceField({
      description: "The machine is about to be interrupted.",
      choices: reactions,
      default: "Drain",
    }),
    rebalance: choiceField({
      description:
        "The cloud recommends leaving the machine (EC2 rebalance recommendation). Budgets, waves, windows and gates apply.",
      choices: reactions,
      default: "Ignore",
    }),
    maintenance: choiceField({
      description: "A scheduled event that ends or restarts the machine.",
      choices: reactions,
      default: "Drain",
    }),
  },
} as const satisfies ObjectField;

const instance = {
  type: "object",
  description: "What happens to the machine once its node is drained.",
  default: {},
  properties: {
    release: choiceField({
      description:
        "`Recreate`: its group replaces it; `Delete`: its group shrinks by one; `DeleteInstance`: the instance is deleted without its group, if it has one; `NodeClaim`: Karpenter terminates it, which is also what `Recreate` means for Karpenter's nodes; `None`: it is kept.",
      choices: wordsOf<ReleaseMode>({
        Recreate: true,
        Delete: true,
        DeleteInstance: true,
        NodeClaim: true,
        None: true,
      }),
      default: "Recreate",
    }),
    awaitMachine: durationField({
      description:
        "How long a drained node waits for its machine to be terminated before a planned departure is abandoned and the node uncordoned. With `release: None` another tool terminates it; with any other value the wait is for a cloud that cannot be reached or refuses.",
      default: "30m",
    }),
    loadBalancerDelay: durationField({
      description:
        "How long load balancers may keep sending traffic to a node after its cordon. A machine that Lastcall releases is kept for at least this long after its drain has begun, but under a notice not past its deadline.",
      default: "0s",
    }),
    lifecycleHook: choiceField({
      description:
        "The result sent to an EC2 Auto Scaling group that waits at a lifecycle hook for the machine's termination, once the drain is over. `Continue`: the group continues with the remaining hooks; `Abandon`: it skips them. The instance is terminated either way, unless the group's own policy retains abandoned ones. Never sent for one that the group returns to its warm pool.",
      choices: wordsOf<HookResult>({ Continue: true, Abandon: true }),
      default: "Continue",
    }),
  },
} as const satisfies ObjectField;

const products = andList([
  ...knownClouds.map(({ kubernetes }) => kubernetes.toUpperCase()),
  "Karpenter",
]);

const fieldsBeforeActions = {
  weight: {
    type: "integer",
    description:
      "If several policies select a node, the one with the highest weight applies, then the first by name.",
    default: 0,
    minimum: -1_000_000,
    maximum: 1_000_000,
    wanted: "a whole number from -1000000 to 1000000",
  },
  nodeSelector: nodeSelectorField(
    `The nodes, as in node affinity. If not set, the labels by which ${products} mark Spot and preemptible nodes.`,
  ),
  lifetime: lifetimeField,
  spacing,
  windows: windowsField,
  budgets,
  waves,
  gates,
  replacement,
  drain: drainField,
  onNotice,
  instance,
} as const satisfies SchemaFields;

const switches = {
  paused: switchField("No planned departures of this policy start; notices still apply."),
  dryRun: switchField("Decide and report, but change nothing, not even on a notice or a request."),
} as const satisfies SchemaFields;

/** `DeparturePolicy.spec`. */
export const policySpec: ObjectField = {
  type: "object",
  description: "Which nodes leave, when, how many at once, and how.",
  properties: { ...fieldsBeforeActions, actions: actionsField, ...switches },
};

/** `DeparturePolicy.spec` once the schema has accepted it and set its defaults. */
export type PolicySpec = SchemaValues<typeof fieldsBeforeActions & typeof switches> & {
  readonly actions: readonly WrittenAction[];
};
