/** Translates the settings of aws-node-termination-handler (NTH), in both of its modes. */
import {
  fieldsIn,
  onlyGiven,
  policyDocument,
  type Setting,
  type Settings,
  settingOf,
  type ToolSetup,
  type Translation,
  unreadable,
} from "./workload.ts";

export const handlerImage = "aws-node-termination-handler";

type Reaction = "Drain" | "Cordon" | "Ignore";

/** Settings that make no difference at their default, and why any other value has no equivalent. */
const withoutEqual: Readonly<Record<string, { readonly usual: string; readonly why: string }>> = {
  TAINT_NODE: {
    usual: "true",
    why: "a departing node always has the taint lastcall.dev/departing",
  },
  TAINT_EFFECT: { usual: "NoSchedule", why: "the taint's effect is NoSchedule" },
  ENABLE_OUT_OF_SERVICE_TAINT: { usual: "false", why: "the drain waits for volumes instead" },
  EXCLUDE_FROM_LOAD_BALANCERS: { usual: "true", why: "a departing node always has that label" },
  DELETE_LOCAL_DATA: {
    usual: "true",
    why: "pods with an emptyDir are evicted; spec.drain.podRules can block some",
  },
  IGNORE_DAEMON_SETS: { usual: "true", why: "pods of DaemonSets are always skipped" },
  WORKERS: { usual: "10", why: "all nodes under notice are drained at once" },
  KUBE_API_QPS: { usual: "5", why: "requests adapt to the API server" },
  KUBE_API_BURST: { usual: "10", why: "requests adapt to the API server" },
  USE_APISERVER_CACHE: { usual: "false", why: "the controller watches" },
  EMIT_KUBERNETES_EVENTS: { usual: "true", why: "Events are always written" },
  KUBERNETES_EVENTS_EXTRA_ANNOTATIONS: { usual: "", why: "Events have no annotations" },
  ENABLE_PROMETHEUS_SERVER: { usual: "true", why: "metrics are always served, on 9101 by default" },
  PROMETHEUS_SERVER_PORT: {
    usual: "9092",
    why: "metrics are at controller.options.metrics-address, :9101 by default",
  },
  ENABLE_PROBES_SERVER: { usual: "true", why: "probes are always served" },
  PROBES_SERVER_PORT: { usual: "8080", why: "probes are at controller.options.health-address" },
  PROBES_SERVER_ENDPOINT: { usual: "/healthz", why: "probes are at /healthz and /readyz" },
  LOG_FORMAT_VERSION: { usual: "1", why: "log lines have stable events" },
  METADATA_TRIES: { usual: "3", why: "the metadata service is polled until it responds" },
  USE_PROVIDER_ID: { usual: "true", why: "nodes are always found by the instance's id" },
  COMPLETE_LIFECYCLE_ACTION_DELAY_SECONDS: {
    usual: "-1",
    why: "a lifecycle hook is completed when the node is empty",
  },
  HEARTBEAT_INTERVAL: {
    usual: "-1",
    why: "a hook whose node is still draining gets a heartbeat after half of its timeout",
  },
  HEARTBEAT_UNTIL: { usual: "-1", why: "heartbeats end when the node is drained" },
  SQS_MSG_VISIBILITY_TIMEOUT_SEC: {
    usual: "20",
    why: "a message stays hidden while it is being handled",
  },
  ENABLE_ASG_LIFECYCLE_DRAINING: { usual: "true", why: "lifecycle hooks arrive through the queue" },
  NODE_TERMINATION_GRACE_PERIOD: {
    usual: "120",
    why: "a drain is fitted into the time that the notice leaves",
  },
  WEBHOOK_HEADERS: {
    usual: '{"Content-type":"application/json"}',
    why: "the action webhook has Slack's own; the type http of spec.actions has headers",
  },
  WEBHOOK_PROXY: { usual: "", why: "set HTTPS_PROXY in extraEnv" },
  WEBHOOK_TEMPLATE: { usual: "", why: "set slack.message of the action webhook" },
  WEBHOOK_TEMPLATE_FILE: { usual: "", why: "set slack.message of the action webhook" },
};

const translated = [
  ...["DRY_RUN", "CORDON_ONLY", "ENABLE_SPOT_INTERRUPTION_DRAINING", "ENABLE_REBALANCE_DRAINING"],
  ...["ENABLE_SCHEDULED_EVENT_DRAINING", "ENABLE_REBALANCE_MONITORING", "QUEUE_URL", "AWS_REGION"],
  ...[
    "ENABLE_SQS_TERMINATION_DRAINING",
    "CHECK_TAG_BEFORE_DRAINING",
    "MANAGED_TAG",
    "AWS_ENDPOINT",
  ],
  ...["CHECK_ASG_TAG_BEFORE_DRAINING", "MANAGED_ASG_TAG", "DELETE_SQS_MSG_IF_NODE_NOT_FOUND"],
  ...["JSON_LOGGING", "LOG_LEVEL", "INSTANCE_METADATA_URL", "POD_TERMINATION_GRACE_PERIOD"],
  ...["GRACE_PERIOD", "NODE_NAME", "POD_NAME", "NAMESPACE", "UPTIME_FROM_FILE", "ENABLE_IMDS"],
  "WEBHOOK_URL",
];

/** Not a setting of NTH: its webhook's URL is in a Secret, and the text is the Secret's name. */
export const webhookSecret = "WEBHOOK_URL in a Secret";

/** Names of NTH's settings, for its flags and its chart's values. */
export const handlerSettings = [...Object.keys(withoutEqual), ...translated];

/** The settings that are switches. */
export const handlerSwitches = handlerSettings.filter(
  (name) =>
    /^(true|false)$/.test(withoutEqual[name]?.usual ?? "") ||
    /^(ENABLE|CHECK|DRY|DELETE_SQS|JSON)_|_ONLY$/.test(name),
);

/** Settings without which a policy would do more than was intended. */
export const handlerLimits = [
  ...["DRY_RUN", "CORDON_ONLY", "ENABLE_SPOT_INTERRUPTION_DRAINING", "ENABLE_REBALANCE_DRAINING"],
  ...["ENABLE_SCHEDULED_EVENT_DRAINING", "ENABLE_REBALANCE_MONITORING"],
  ...["ENABLE_SQS_TERMINATION_DRAINING", "CHECK_TAG_BEFORE_DRAINING", "MANAGED_TAG"],
  ...["CHECK_ASG_TAG_BEFORE_DRAINING", "MANAGED_ASG_TAG", "DELETE_SQS_MSG_IF_NODE_NOT_FOUND"],
];

/** Whether NTH reads a queue, as one Deployment, and not the metadata service of each node. */
export function isQueueMode(settings: Settings): boolean {
  return isOn(settings, "ENABLE_SQS_TERMINATION_DRAINING", false);
}

/** Throws INPUT_INVALID if a switch or a timeout cannot be parsed. */
export function translateHandler(setup: ToolSetup): Translation {
  const { settings } = setup;
  const isQueue = isQueueMode(settings);
  const { nodeSelector, tolerations, affinity, ...values } = setup.values;
  const expressions = selectorOf(isQueue ? undefined : nodeSelector);
  const policy = policyDocument("notices", {
    ...(expressions && {
      nodeSelector: { nodeSelectorTerms: [{ matchExpressions: expressions }] },
    }),
    onNotice: isQueue ? queueReactions(settings) : reactions(settings),
    ...(isOn(settings, "DRY_RUN", false) && { dryRun: true }),
    ...(webhookOf(settings) !== undefined && { actions: [webhookAction] }),
  });
  const agentValues = isQueue
    ? {}
    : {
        ...onAgents(settings),
        ...onlyGiven({ nodeSelector, tolerations }),
        ...(expressions && { affinity: onAnyNode }),
      };
  return {
    policies: [policy],
    values: {
      ...values,
      ...(isQueue && onlyGiven({ nodeSelector, tolerations, affinity })),
      controller: {
        ...fieldsIn(values, "controller"),
        options: {
          ...logOptions(settings),
          ...(isQueue && queueOptions(settings)),
          ...webhookHosts(settings),
        },
      },
      agent: { ...(isQueue && { enabled: false }), ...agentValues },
      ...(isQueue && queueVariables(settings)),
    },
    notes: [...setup.notes, ...notesOn(settings, isQueue, expressions !== undefined)],
  };
}

/**
 * Removes the chart's term that restricts the agents to known Spot labels: a node that has only the
 * labels of NTH's own selector would get no agent.
 */
const onAnyNode = { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: {} } };

function onAgents(settings: Settings) {
  const url = settingOf(settings, "INSTANCE_METADATA_URL")?.text;
  return {
    options: {
      cloud: "aws",
      ...(url !== undefined && { "metadata-url": url }),
      ...logOptions(settings),
    },
  };
}

function selectorOf(nodeSelector: unknown) {
  if (typeof nodeSelector !== "object" || nodeSelector === null) return undefined;
  const labels = Object.entries(nodeSelector).filter(([key]) => !key.endsWith("kubernetes.io/os"));
  if (labels.length === 0) return undefined;
  return labels.map(([key, value]) => ({ key, operator: "In", values: [String(value)] }));
}

function isOn(settings: Settings, name: string, usual: boolean): boolean {
  const setting = settingOf(settings, name);
  if (setting === undefined) return usual;
  const text = setting.text.toLowerCase();
  if (["true", "1", "t"].includes(text)) return true;
  if (["false", "0", "f"].includes(text)) return false;
  throw unreadable(setting, "true or false");
}

function reactions(settings: Settings) {
  const drain: Reaction = isOn(settings, "CORDON_ONLY", false) ? "Cordon" : "Drain";
  const monitored: Reaction = isOn(settings, "ENABLE_REBALANCE_MONITORING", false)
    ? "Cordon"
    : "Ignore";
  return {
    spotInterruption: isOn(settings, "ENABLE_SPOT_INTERRUPTION_DRAINING", true) ? drain : "Ignore",
    rebalance: isOn(settings, "ENABLE_REBALANCE_DRAINING", false) ? drain : monitored,
    maintenance: isOn(settings, "ENABLE_SCHEDULED_EVENT_DRAINING", true) ? drain : "Ignore",
  };
}

/** In queue mode NTH acts on every event, regardless of its switches for the metadata service. */
function queueReactions(settings: Settings) {
  const drain: Reaction = isOn(settings, "CORDON_ONLY", false) ? "Cordon" : "Drain";
  return { spotInterruption: drain, rebalance: drain, maintenance: drain };
}

export const usualTag = "aws-node-termination-handler/managed";

/** Settings of the tag with their older names, which NTH ignores if the newer one is set. */
const tagNames = {
  check: { newer: "CHECK_TAG_BEFORE_DRAINING", older: "CHECK_ASG_TAG_BEFORE_DRAINING" },
  tag: { newer: "MANAGED_TAG", older: "MANAGED_ASG_TAG" },
} as const;

/** The one of the two names that counts. */
function nameInUse(settings: Settings, { newer, older }: { newer: string; older: string }): string {
  return settingOf(settings, newer) === undefined ? older : newer;
}

function tagNotes(settings: Settings): readonly string[] {
  return Object.values(tagNames).flatMap(({ newer, older }) => {
    const [used, unused] = [settingOf(settings, newer), settingOf(settings, older)];
    if (used === undefined || unused === undefined) return [];
    if (used.text === unused.text) return [];
    return [
      `${unused.place} has no effect in NTH: ${newer}, which replaces it, is ${JSON.stringify(used.text)}`,
    ];
  });
}

/**
 * What the role of NTH's README lacks: NTH reads an instance's tags with the instance, hides no
 * messages, and extends hooks only if it is told to. docs/cloud/aws.md lists all that Lastcall
 * needs.
 */
function roleNote(settings: Settings): string {
  const forNotices = [
    "sqs:ChangeMessageVisibility",
    "autoscaling:RecordLifecycleActionHeartbeat",
    "autoscaling:DescribeLifecycleHooks",
    ...(checksTag(settings)
      ? ["ec2:DescribeTags (without it every instance counts as tagged)"]
      : []),
  ];
  const forRelease =
    "autoscaling:DescribeAutoScalingGroups, autoscaling:TerminateInstanceInAutoScalingGroup";
  return `NTH's role lacks permissions, unless you extended it: add ${forNotices.join(", ")}; and for planned or requested departures ${forRelease}`;
}

function checksTag(settings: Settings): boolean {
  return isOn(settings, nameInUse(settings, tagNames.check), true);
}

function queueOptions(settings: Settings): Readonly<Record<string, unknown>> {
  const url = settingOf(settings, "QUEUE_URL")?.text;
  const tag = settingOf(settings, nameInUse(settings, tagNames.tag));
  const deletes = isOn(settings, "DELETE_SQS_MSG_IF_NODE_NOT_FOUND", false);
  return {
    ...(url !== undefined && { "sqs-queue-url": url }),
    ...(checksTag(settings) && { "aws-managed-tag": tag?.text ?? usualTag }),
    ...(deletes && { "sqs-unknown": "Delete" }),
  };
}

function queueVariables(settings: Settings) {
  const region = settingOf(settings, "AWS_REGION")?.text;
  const endpoint = settingOf(settings, "AWS_ENDPOINT")?.text;
  const extraEnv = {
    ...(region !== undefined && { AWS_REGION: region }),
    ...(endpoint !== undefined && { AWS_ENDPOINT_URL: endpoint }),
  };
  return Object.keys(extraEnv).length === 0 ? {} : { extraEnv };
}

/**
 * NTH posts `{"text": …}`, which is what Slack's incoming webhooks accept. The URL is a secret: it
 * is kept in the one Secret that the controller may read.
 */
const webhookAction = {
  name: "webhook",
  at: "AtNotice",
  causes: [
    ...["SpotInterruption", "RebalanceRecommendation", "ScheduledMaintenance", "LifecycleHook"],
    ...["Preempted", "NodeShutdown"],
  ],
  slack: { secretRef: { name: "lastcall-actions", key: "webhook-url" } },
};

/** Where NTH has the URL of its webhook: as text, or in a Secret. */
function webhookOf(settings: Settings): Setting | undefined {
  return settingOf(settings, "WEBHOOK_URL") ?? settingOf(settings, webhookSecret);
}

function webhookHosts(settings: Settings): Readonly<Record<string, unknown>> {
  const url = settingOf(settings, "WEBHOOK_URL")?.text ?? "";
  return URL.canParse(url) ? { "action-hosts": new URL(url).host } : {};
}

/** The URL itself is not in any note: whoever has it may write to the channel. */
function webhookNotes(settings: Settings): readonly string[] {
  const found = webhookOf(settings);
  if (found === undefined) return [];
  const { name, text, place } = found;
  const create = "kubectl create secret generic lastcall-actions --from-literal=webhook-url=URL";
  const isKnown = name === "WEBHOOK_URL" && URL.canParse(text);
  return [
    `${place} becomes the action webhook, whose address is read from a Secret: create it in Lastcall's namespace with ${create}`,
    ...(isKnown ? [] : [`${place}: add the webhook's host to controller.options.action-hosts`]),
  ];
}

function logOptions(settings: Settings): Readonly<Record<string, unknown>> {
  const level = settingOf(settings, "LOG_LEVEL")?.text.toLowerCase();
  const isJson = isOn(settings, "JSON_LOGGING", false);
  return {
    "log-format": isJson ? "json" : "text",
    ...(level !== undefined && {
      "log-level": ["debug", "warn", "error"].includes(level) ? level : "info",
    }),
  };
}

function notesOn(settings: Settings, isQueue: boolean, isSelected: boolean): readonly string[] {
  const notes = [...settings.values()].flatMap((setting) => noteOn(setting));
  notes.push(...webhookNotes(settings));
  if (isQueue) notes.push(...tagNotes(settings), roleNote(settings));
  const grace =
    settingOf(settings, "POD_TERMINATION_GRACE_PERIOD") ?? settingOf(settings, "GRACE_PERIOD");
  if (grace !== undefined && wholeSeconds(grace) >= 0) {
    notes.push(
      `${grace.place} has no equivalent: each pod gets its own grace period, fitted into the notice`,
    );
  }
  for (const name of ["NODE_TERMINATION_GRACE_PERIOD", "HEARTBEAT_INTERVAL", "HEARTBEAT_UNTIL"]) {
    const setting = settingOf(settings, name);
    if (setting !== undefined) wholeSeconds(setting);
  }
  if (isQueue && settingOf(settings, "QUEUE_URL") === undefined) {
    notes.push("QUEUE_URL is not set: set controller.options.sqs-queue-url");
  }
  if (!isSelected) {
    notes.push(
      "NTH acts on any node: the policy selects those with the known Spot labels; set a nodeSelector to select others",
    );
  }
  return notes;
}

function noteOn({ name, text, place }: Setting): readonly string[] {
  if (text === "" || name === webhookSecret || translated.includes(name)) return [];
  const known = withoutEqual[name];
  if (known === undefined) return [`${place} is not a setting of NTH 1.25 and is omitted`];
  return text.toLowerCase() === known.usual.toLowerCase()
    ? []
    : [`${place} has no equivalent: ${known.why}`];
}

function wholeSeconds(setting: Setting): number {
  if (!/^-?\d+$/.test(setting.text)) throw unreadable(setting, "a whole number of seconds");
  return Number(setting.text);
}
