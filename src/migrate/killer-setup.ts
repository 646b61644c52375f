/** Reads the settings of the killer: from the values of its chart, or from its manifest. */
import { isFields } from "../core/json/json-field.ts";
import { killerFlags, killerLimits } from "./killer.ts";
import {
  type ChartValues,
  checkExtraEnv,
  checkReadable,
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

/** Values that have the same name in Lastcall's chart. */
const sameName = [
  ...["serviceAccount", "nodeSelector", "tolerations", "affinity", "imagePullSecrets", "rbac"],
  ...["nameOverride", "fullnameOverride", "podSecurityContext", "securityContext", "extraLabels"],
];

/** Values with other names in Lastcall's chart; `killerSettings` reports the settings. */
const otherName: Readonly<Record<string, string>> = {
  extraPodLabels: "podLabels",
  extraPodAnnotations: "podAnnotations",
};

const known = [
  ...sameName,
  ...Object.keys(otherName),
  ...["drainTimeout", "interval", "logFormat", "extraArgs", "extraEnv", "secret", "replicaCount"],
  ...["image", "resources", "prometheus"],
];

/** Reads the values file of the killer's chart. */
export function killerValuesSetup(values: unknown, file: string): ToolSetup {
  if (!isFields(values)) {
    throw unreadable({ name: "", text: JSON.stringify(values), place: file }, "a map of values");
  }
  const { settings, unknown, other } = valueSettings(values, file);
  const kept = sameName.map((name) => [name, values[name]] as const);
  const renamed = Object.entries(otherName).map(([from, to]) => [to, values[from]] as const);
  const replicas = replicasIn(values, file);
  const added = addedValues(values);
  return {
    settings,
    values: onlyGiven({
      ...Object.fromEntries([...kept, ...renamed]),
      // The killer needs exactly one replica, because its replicas do not coordinate.
      ...(replicas !== 1 && { controller: { replicas } }),
      secret: secretValues(fieldsIn(values, "secret")),
      extraEnv: other,
      ...added,
    }),
    notes: [
      ...unknown.map(
        (flag) => `${file}: the flag ${flag} is not a setting of the killer 1.3.1 and is omitted`,
      ),
      ...Object.keys(values)
        .filter((name) => !known.includes(name) && !(name in added) && isGiven(values[name]))
        .map(
          (name) => `${file}: ${name} is not a value of the killer's chart 1.3.1 and is omitted`,
        ),
      ...Object.keys(other).map(
        (name) =>
          `${file}: extraEnv.${name} is not a setting of the killer 1.3.1: the controller gets it unchanged`,
      ),
      ...valueNotes(values, file),
    ],
  };
}

/** The images of Lastcall, if the file names them already, as docs/migrate.md describes. */
function addedValues({ image, agent }: ChartValues): ChartValues {
  const { repository } = fieldsIn({ image }, "image");
  if (!isGiven(repository) || /estafette-gke-preemptible-killer/.test(String(repository)))
    return {};
  return onlyGiven({ image, agent });
}

/** Helm accepts a string as a number here. */
function replicasIn({ replicaCount }: ChartValues, file: string): number {
  const text = settingText(replicaCount ?? "1");
  if (/^\d+$/.test(text)) return Number(text);
  throw unreadable(
    { name: "replicaCount", text, place: `${file}: replicaCount` },
    "a number of replicas",
  );
}

const valueNames: Readonly<Record<string, string>> = {
  drainTimeout: "DRAIN_TIMEOUT",
  interval: "INTERVAL",
  logFormat: "ESTAFETTE_LOG_FORMAT",
};

/** The killer's own variables, of those that the chart passes on. */
const killerVariables = [
  ...Object.values(killerFlags).map(({ name }) => name),
  "ESTAFETTE_LOG_FORMAT",
  "ESTAFETTE_LOG_LEVEL",
];

/** Flags take precedence over variables; of two variables, the later one counts. */
function valueSettings(values: ChartValues, file: string) {
  checkExtraEnv(values.extraEnv, file, killerLimits);
  const settings = new Map<string, Setting>();
  const other: Record<string, unknown> = {};
  for (const [key, name] of Object.entries(valueNames)) {
    const value = values[key];
    if (value === undefined || value === null) continue;
    settings.set(name, { name, text: settingText(value), place: `${file}: ${key}` });
  }
  for (const [name, value] of variablesIn(values.extraEnv)) {
    const place = `${file}: extraEnv.${name}`;
    if (killerVariables.includes(name))
      settings.set(name, { name, text: settingText(value), place });
    else other[name] = value;
  }
  const { extraArgs } = values;
  if (isGiven(extraArgs) && !Array.isArray(extraArgs)) {
    const setting = {
      name: "extraArgs",
      text: JSON.stringify(extraArgs),
      place: `${file}: extraArgs`,
    };
    throw unreadable(setting, "a list of arguments");
  }
  const args = Array.isArray(extraArgs) ? extraArgs.map(String) : [];
  const read = readArguments(args, killerFlags, file);
  for (const setting of read.settings) settings.set(setting.name, setting);
  return { settings, unknown: read.unknown, other };
}

function variablesIn(extraEnv: unknown): readonly (readonly [string, unknown])[] {
  if (isFields(extraEnv)) return Object.entries(extraEnv);
  return objectsIn(extraEnv).map(({ name, value }) => [String(name), value]);
}

/** Omits the key itself, which must not be copied to another file. */
function secretValues(secret: Readonly<Record<string, unknown>>): ChartValues {
  const { workloadIdentityServiceAccount, useGcpServiceAccountAnnotation } = secret;
  const kept = fieldsIn(secret, "googleServiceAccountSecret");
  return onlyGiven({
    workloadIdentityServiceAccount,
    ...(useGcpServiceAccountAnnotation === true && { useGcpServiceAccountAnnotation }),
    ...(isGiven(kept.name) && { googleServiceAccountSecret: onlyGiven(kept) }),
  });
}

/** The example key of the chart is not a key. */
function hasKey(secret: Readonly<Record<string, unknown>>): boolean {
  const text = secret.googleServiceAccountKeyfileJson;
  return (
    typeof text === "string" &&
    text !== "" &&
    !/^\s*\{\s*"type":\s*"service_account"\s*\}\s*$/.test(text)
  );
}

function valueNotes(values: ChartValues, file: string): readonly string[] {
  const secret = fieldsIn(values, "secret");
  const isUsed = !isGiven(secret.workloadIdentityServiceAccount) && hasKey(secret);
  const image = fieldsIn(values, "image");
  const monitor = fieldsIn(fieldsIn(values, "prometheus"), "servicemonitor");
  const hasIdentity = isGiven(secret.workloadIdentityServiceAccount);
  return [
    ...(hasIdentity && !isGiven(fieldsIn(values, "serviceAccount").name)
      ? [
          `${file}: serviceAccount.name is not set: set it to the account of the killer's release, which Workload Identity knows`,
        ]
      : []),
    ...(isUsed
      ? [
          `${file}: secret.googleServiceAccountKeyfileJson is not copied: install with --set-file secret.googleServiceAccountKeyfileJson=FILE, or name its Secret in secret.googleServiceAccountSecret`,
        ]
      : []),
    ...(isGiven(values.resources)
      ? [`${file}: resources fit a program of another size and are omitted: the chart has its own`]
      : []),
    ...((isGiven(image.repository) || isGiven(image.tag)) && !("image" in addedValues(values))
      ? [`${file}: image is the killer's and is omitted: set image.repository to Lastcall's`]
      : []),
    ...(monitor.enabled === true
      ? [`${file}: prometheus.servicemonitor is omitted: set metrics.serviceMonitor.enabled`]
      : []),
  ];
}

/** Reads a Deployment of the killer, with the ServiceAccount and Secret that it names. */
export function killerWorkloadSetup(
  workload: ToolWorkload,
  objects: readonly ManifestObject[],
  place: string,
): ToolSetup {
  checkReadable(workload, place, killerLimits);
  const { settings: variables } = variablesOf(workload, place);
  const { settings: flags, unknown } = readArguments(wordsOf(workload), killerFlags, place);
  return {
    settings: new Map([...variables, ...flags].map((one) => [one.name, one])),
    values: { ...podValues(workload), ...accountValues(workload, objects) },
    notes: unknown.map(
      (flag) => `${place}: the flag ${flag} is not a setting of the killer 1.3.1 and is omitted`,
    ),
  };
}

/** Its ServiceAccount and its Google identity, so that the bindings of both are kept. */
function accountValues(workload: ToolWorkload, objects: readonly ManifestObject[]): ChartValues {
  const name = workload.pod.serviceAccountName;
  const account = objects.find(
    ({ kind, metadata }) =>
      kind === "ServiceAccount" && isFields(metadata) && metadata.name === name,
  );
  const annotations = fieldsIn(fieldsIn(account, "metadata"), "annotations");
  const identity = annotations["iam.gke.io/gcp-service-account"];
  const secret = isGiven(identity)
    ? { workloadIdentityServiceAccount: identity }
    : onlyGiven({ googleServiceAccountSecret: keySecret(workload) });
  return onlyGiven({ serviceAccount: onlyGiven({ name }), secret });
}

/** The Secret whose volume has the file that GOOGLE_APPLICATION_CREDENTIALS names. */
function keySecret({ pod, container }: ToolWorkload): ChartValues | undefined {
  const variable = objectsIn(container.env).find(
    ({ name }) => name === "GOOGLE_APPLICATION_CREDENTIALS",
  );
  const path = String(variable?.value ?? "");
  const mount = objectsIn(container.volumeMounts).find((one) =>
    path.startsWith(`${one.mountPath}/`),
  );
  const volume = objectsIn(pod.volumes).find(({ name }) => name === mount?.name);
  const name = fieldsIn(volume, "secret").secretName;
  if (mount === undefined || !isGiven(name)) return undefined;
  return { name, key: path.slice(String(mount.mountPath).length + 1) };
}
