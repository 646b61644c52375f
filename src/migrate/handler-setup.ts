/** Reads the settings of NTH: from the values of its chart, or from its manifest. */
import { isFields } from "../core/json/json-field.ts";
import {
  handlerLimits,
  handlerSettings,
  handlerSwitches,
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
  ...["useHostNetwork", "linuxUpdateStrategy", "windowsUpdateStrategy", "customLabels", "affinity"],
  ...[
    "priorityClassName",
    "daemonsetPriorityClassName",
    "terminationGracePeriodSeconds",
    "extraEnv",
  ],
  ...[
    "nodeSelectorTermsOs",
    "nodeSelectorTermsArch",
    "podDisruptionBudget",
    "service",
    "tolerations",
  ],
  ...["revisionHistoryLimit", "topologySpreadConstraints", "fargate", "strategy", "initContainers"],
];

const kept = [
  ...["serviceAccount", "podMonitor", "serviceMonitor", "replicas", "nodeSelector", "podLabels"],
  ...["linuxNodeSelector", "daemonsetNodeSelector", "podAnnotations", "webhookURLSecretName"],
];

/** The values that select the nodes NTH runs on; the first one that is set counts. */
const selectors = ["daemonsetNodeSelector", "linuxNodeSelector", "nodeSelector"];

/** Reads the values file of NTH's chart. */
export function handlerValuesSetup(values: unknown, file: string): ToolSetup {
  if (!isFields(values)) {
    throw unreadable({ name: "", text: JSON.stringify(values), place: file }, "a map of values");
  }
  checkExtraEnv(values.extraEnv, file, handlerLimits);
  for (const name of selectors) {
    if (!isGiven(values[name]) || isFields(values[name])) continue;
    const setting = { name, text: settingText(values[name]), place: `${file}: ${name}` };
    throw unreadable(setting, "a map of labels: without it, the policy would select other nodes");
  }
  const settings = new Map<string, Setting>();
  for (const [key, name] of Object.entries(valueNames)) {
    const value = values[key];
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
  return {
    settings,
    values: valuesOf(values),
    notes: [
      ...Object.keys(values)
        .filter((name) => !known.includes(name) && isGiven(values[name]))
        .map((name) => `${file}: ${name} is not a value of NTH's chart 0.27 and is omitted`),
    ],
  };
}

function valuesOf(values: ChartValues): ChartValues {
  const { serviceAccount, replicas, podLabels, podAnnotations } = values;
  const nodeSelector = selectors.map((name) => values[name]).find(isGiven);
  const monitors = {
    ...(fieldsIn(values, "podMonitor").create === true && { podMonitor: { enabled: true } }),
    ...(fieldsIn(values, "serviceMonitor").create === true && {
      serviceMonitor: { enabled: true },
    }),
  };
  return onlyGiven({
    serviceAccount: onlyGiven(isFields(serviceAccount) ? serviceAccount : {}),
    ...(typeof replicas === "number" && replicas > 1 && { controller: { replicas } }),
    ...{ podLabels, podAnnotations, nodeSelector, metrics: monitors },
  });
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
  const { nodeSelector } = podValues(workload);
  return {
    settings,
    values: onlyGiven({ serviceAccount: onlyGiven({ name, annotations }), nodeSelector }),
    notes: [
      ...unknown.map(
        (flag) => `${place}: the flag ${flag} is not a setting of NTH 1.25 and is omitted`,
      ),
      ...hiddenNotes,
    ],
  };
}

/** Variables that are always references to fields of the pod. */
const fieldNames = ["NODE_NAME", "POD_NAME", "NAMESPACE"];
