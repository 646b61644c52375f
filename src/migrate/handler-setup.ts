/** Reads the settings of NTH: from the values of its chart, or from its manifest. */
import { isFields } from "../core/json/json-field.ts";
import {
  handlerLimits,
  handlerSettings,
  handlerSwitches,
  isQueueMode,
  usualTag,
  webhookSecret,
} from "./termination-handler.ts";
import {
  type ChartValues,
  checkExtraEnv,
  checkReadable,
  type FlagNames,
  fieldsIn,
  isGiven,
  type ManifestObject,
  objectsIn,
  onlyGiven,
  podValues,
  readArguments,
  type Setting,
  settingText,
  type ToolSetup,
  type ToolWorkload,
  unreadable,
  variablesOf,
  wordsOf,
} from "./workload.ts";

/** Settings by flag, such as ENABLE_REBALANCE_DRAINING for `--enable-rebalance-draining`. */
const handlerFlags: FlagNames = Object.fromEntries(
  handlerSettings.map((name) => [
    name.toLowerCase().replaceAll("_", "-"),
    { name, isSwitch: handlerSwitches.includes(name) },
  ]),
);

/**
 * Settings by the name of their value in the chart, such as ENABLE_REBALANCE_DRAINING for
 * `enableRebalanceDraining`. Values with another spelling are listed.
 */
const valueNames: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    handlerSettings.map((name) => [
      name.toLowerCase().replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
      name,
    ]),
  ),
  ...{
    queueURL: "QUEUE_URL",
    webhookURL: "WEBHOOK_URL",
    instanceMetadataURL: "INSTANCE_METADATA_URL",
  },
  ...{ checkASGTagBeforeDraining: "CHECK_ASG_TAG_BEFORE_DRAINING" },
  ...{ enableASGLifecycleDraining: "ENABLE_ASG_LIFECYCLE_DRAINING" },
  ...{ deleteSqsMsgIfNodeNotFound: "DELETE_SQS_MSG_IF_NODE_NOT_FOUND" },
  ...{ sqsMsgVisibilityTimeoutSec: "SQS_MSG_VISIBILITY_TIMEOUT_SEC" },
  procUptimeFile: "UPTIME_FROM_FILE",
};

/**
 * Defaults of the chart that it passes on even if their older names are set, so that NTH ignores
 * those. An empty value clears the default.
 */
const alwaysSet: ChartValues = { checkTagBeforeDraining: true, managedTag: usualTag };

/** Values that configure the pod and not NTH, without an equivalent worth a sentence. */
const silent = [
  ...[
    "image",
    "nameOverride",
    "fullnameOverride",
    "securityContext",
    "podSecurityContext",
    "probes",
  ],
  ...[
    "resources",
    "rbac",
    "dnsPolicy",
    "dnsConfig",
    "linuxDnsPolicy",
    "updateStrategy",
    "targetNodeOs",
  ],
  ...["useHostNetwork", "linuxUpdateStrategy", "windowsUpdateStrategy", "customLabels"],
  ...[
    "priorityClassName",
    "daemonsetPriorityClassName",
    "terminationGracePeriodSeconds",
    "extraEnv",
  ],
  ...["nodeSelectorTermsOs", "nodeSelectorTermsArch", "podDisruptionBudget", "service"],
  ...["revisionHistoryLimit", "topologySpreadConstraints", "fargate", "strategy", "initContainers"],
];

/**
 * The values that say where NTH's pods run, by the name of Lastcall's own. Of those of the
 * DaemonSet the first one that is set counts; the Deployment, in queue mode, has only the plain
 * one.
 */
const placing = {
  nodeSelector: ["linuxNodeSelector", "nodeSelector", "daemonsetNodeSelector"],
  tolerations: ["linuxTolerations", "tolerations", "daemonsetTolerations"],
  affinity: ["linuxAffinity", "affinity", "daemonsetAffinity"],
} as const;

const kept = [
  ...["serviceAccount", "podMonitor", "serviceMonitor", "replicas", "podLabels"],
  ...["podAnnotations", "webhookURLSecretName"],
  ...Object.values(placing).flat(),
];

/** Reads the values file of NTH's chart. */
export function handlerValuesSetup(values: unknown, file: string): ToolSetup {
  if (!isFields(values)) {
    throw unreadable({ name: "", text: JSON.stringify(values), place: file }, "a map of values");
  }
  checkExtraEnv(values.extraEnv, file, handlerLimits);
  for (const name of placing.nodeSelector) {
    if (!isGiven(values[name]) || isFields(values[name])) continue;
    const setting = { name, text: settingText(values[name]), place: `${file}: ${name}` };
    throw unreadable(setting, "a map of labels: without it, the policy would select other nodes");
  }
  const settings = new Map<string, Setting>();
  for (const [key, name] of Object.entries(valueNames)) {
    const value = key in values ? values[key] : alwaysSet[key];
    if (!isGiven(value)) continue;
    settings.set(name, { name, text: settingText(value), place: `${file}: ${key}` });
  }
  const extra = isFields(values.extraEnv)
    ? Object.entries(values.extraEnv)
    : objectsIn(values.extraEnv).map(({ name, value }) => [String(name), value] as const);
  for (const [name, value] of extra) {
    settings.set(name, { name, text: settingText(value), place: `${file}: extraEnv.${name}` });
  }
  if (isGiven(values.webhookURLSecretName)) {
    const text = String(values.webhookURLSecretName);
    settings.set(webhookSecret, {
      ...{ name: webhookSecret, text, place: `${file}: webhookURLSecretName` },
    });
  }
  const known = [...Object.keys(valueNames), ...silent, ...kept];
  const isQueue = isQueueMode(settings);
  const affinity = placeOf(values, "affinity", isQueue);
  return {
    settings,
    values: { ...valuesOf(values), ...placeValues(values, isQueue) },
    notes: [
      ...(affinity && !isQueue ? affinityNotes(values[affinity], `${file}: ${affinity}`) : []),
      ...Object.keys(values)
        .filter((name) => !known.includes(name) && isGiven(values[name]))
        .map((name) => `${file}: ${name} is not a value of NTH's chart 0.27 and is omitted`),
    ],
  };
}

function valuesOf(values: ChartValues): ChartValues {
  const { serviceAccount, replicas, podLabels, podAnnotations } = values;
  const monitors = {
    ...(fieldsIn(values, "podMonitor").create === true && { podMonitor: { enabled: true } }),
    ...(fieldsIn(values, "serviceMonitor").create === true && {
      serviceMonitor: { enabled: true },
    }),
  };
  return onlyGiven({
    serviceAccount: onlyGiven(isFields(serviceAccount) ? serviceAccount : {}),
    ...(typeof replicas === "number" && replicas > 1 && { controller: { replicas } }),
    ...{ podLabels, podAnnotations, metrics: monitors },
  });
}

/** The name of the value that NTH's chart would use. */
function placeOf(values: ChartValues, name: keyof typeof placing, isQueue: boolean) {
  return (isQueue ? [name] : placing[name]).find((one) => isGiven(values[one]));
}

function placeValues(values: ChartValues, isQueue: boolean): ChartValues {
  const given = (name: keyof typeof placing) => values[placeOf(values, name, isQueue) ?? name];
  return onlyGiven({
    nodeSelector: given("nodeSelector"),
    tolerations: given("tolerations"),
    affinity: isQueue ? given("affinity") : undefined,
    imagePullSecrets: fieldsIn(values, "image").pullSecrets,
  });
}

/** Labels in the affinity of NTH's DaemonSet that say nothing about which nodes it handles. */
const usualLabels = /^((beta\.)?kubernetes\.io\/(os|arch)|eks\.amazonaws\.com\/compute-type)$/;

/**
 * In IMDS mode NTH handles the nodes that its affinity allows, which concerns the policy as well as
 * the agents: that is left to the user.
 */
function affinityNotes(affinity: unknown, place: string): readonly string[] {
  if (!isGiven(affinity)) return [];
  const found = [...JSON.stringify(affinity).matchAll(/"key":"([^"]*)"/g)];
  if (found.length > 0 && found.every(([, key = ""]) => usualLabels.test(key))) return [];
  return [
    `${place} is omitted: to select the same nodes, set the policy's nodeSelector and agent.affinity`,
  ];
}

/** Reads a DaemonSet or Deployment of NTH, with the ServiceAccount that it names. */
export function handlerWorkloadSetup(
  workload: ToolWorkload,
  objects: readonly ManifestObject[],
  place: string,
): ToolSetup {
  checkReadable(workload, place, handlerLimits);
  const { settings: variables, hidden } = variablesOf(workload, place);
  const { settings: flags, unknown } = readArguments(wordsOf(workload), handlerFlags, place);
  const settings = new Map([...variables, ...flags].map((one) => [one.name, one]));
  const address = hidden.find(({ name }) => name === "WEBHOOK_URL");
  if (address !== undefined) {
    const { place: at } = address;
    settings.set(webhookSecret, { name: webhookSecret, text: "by reference", place: at });
  }
  const hiddenNotes = hidden
    .filter(({ name }) => handlerSettings.includes(name) && !fieldNames.includes(name))
    .filter((one) => one !== address)
    .map(({ place: at }) => `${at} is a reference, which cannot be read here, and is omitted`);
  const name = workload.pod.serviceAccountName;
  const account = objects.find(
    ({ kind, metadata }) =>
      kind === "ServiceAccount" && isFields(metadata) && metadata.name === name,
  );
  const annotations = Object.fromEntries(
    Object.entries(fieldsIn(fieldsIn(account, "metadata"), "annotations")).filter(([key]) =>
      key.startsWith("eks.amazonaws.com/"),
    ),
  );
  const { affinity, tolerations, ...placed } = podValues(workload);
  const isQueue = isQueueMode(settings);
  return {
    settings,
    values: onlyGiven({
      serviceAccount: onlyGiven({ name, annotations }),
      ...placed,
      ...(!isTolerant(tolerations) && { tolerations }),
      ...(isQueue && { affinity }),
    }),
    notes: [
      ...(isQueue ? [] : affinityNotes(affinity, `${place}: affinity`)),
      ...unknown.map(
        (flag) => `${place}: the flag ${flag} is not a setting of NTH 1.25 and is omitted`,
      ),
      ...hiddenNotes,
    ],
  };
}

/** Whether they are NTH's default, which nobody need have meant for the controller. */
function isTolerant(tolerations: unknown): boolean {
  return JSON.stringify(tolerations) === JSON.stringify([{ operator: "Exists" }]);
}

/** Variables that are always references to fields of the pod. */
const fieldNames = ["NODE_NAME", "POD_NAME", "NAMESPACE"];
