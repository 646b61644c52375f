import { type Fields, fieldsOf, isFields, nameOf } from "../core/json/json-field.ts";
import { LastcallError } from "../errors.ts";

/** One setting of another tool, as it was found. */
export interface Setting {
  /** The name of its environment variable, which also identifies its flag and its value. */
  readonly name: string;
  readonly text: string;
  /** Its place in messages: `values.yaml: drainTimeout`. */
  readonly place: string;
}

/** By the setting's name; if there are several, the one that the tool itself would use. */
export type Settings = ReadonlyMap<string, Setting>;

/** The configuration of another tool, as it was read. */
export interface ToolSetup {
  readonly settings: Settings;
  /** Values of Lastcall's chart that follow from the tool's pod and account. */
  readonly values: ChartValues;
  /** One sentence for each setting without an equivalent. */
  readonly notes: readonly string[];
}

export type ChartValues = Readonly<Record<string, unknown>>;

/** A DeparturePolicy as it is printed. */
export interface PolicyManifest {
  readonly apiVersion: "lastcall.dev/v1alpha1";
  readonly kind: "DeparturePolicy";
  readonly metadata: { readonly name: string };
  readonly spec: Readonly<Record<string, unknown>>;
}

/** The translation of another tool's configuration. */
export interface Translation {
  readonly policies: readonly PolicyManifest[];
  readonly values: ChartValues;
  readonly notes: readonly string[];
}

export function policyDocument(name: string, spec: PolicyManifest["spec"]): PolicyManifest {
  return { apiVersion: "lastcall.dev/v1alpha1", kind: "DeparturePolicy", metadata: { name }, spec };
}

/** A setting without which the policy would do more than was intended. */
export function unreadable({ place, text }: Setting, wanted: string): LastcallError {
  const found = text === "" ? "nothing" : JSON.stringify(text);
  return new LastcallError(
    "INPUT_INVALID",
    `Cannot translate ${nameOf(place)}: found ${found}, expected ${wanted}`,
  );
}

/** A value as a setting's text; anything else, such as a list, as JSON. */
export function settingText(value: unknown): string {
  if (value === undefined || value === null) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** A setting's text, if it is set and not empty. */
export function settingOf(settings: Settings, name: string): Setting | undefined {
  const found = settings.get(name);
  return found === undefined || found.text.trim() === "" ? undefined : found;
}

/** An object's field that is an object itself, otherwise an empty object. */
export function fieldsIn(value: unknown, name: string): Fields {
  return fieldsOf(fieldsOf(value)[name]);
}

/** Whether a value is set: neither null nor an empty text, list or map. */
export function isGiven(value: unknown): boolean {
  if (value === undefined || value === null || value === "") return false;
  if (Array.isArray(value)) return value.length > 0;
  return !isFields(value) || Object.keys(value).length > 0;
}

/** An object of the cluster or of a manifest, as it was parsed. */
export type ManifestObject = Readonly<Record<string, unknown>>;

/** A Deployment or DaemonSet of another tool. */
export interface ToolWorkload {
  readonly kind: "Deployment" | "DaemonSet";
  readonly namespace: string | undefined;
  readonly name: string;
  readonly pod: Readonly<Record<string, unknown>>;
  readonly container: Readonly<Record<string, unknown>>;
  readonly replicas: number;
}

/** The workloads among the objects that run an image with this in its name. */
export function workloadsOf(
  objects: readonly ManifestObject[],
  image: string,
): readonly ToolWorkload[] {
  return objects.flatMap(itemsOf).flatMap((object): readonly ToolWorkload[] => {
    const { kind } = object;
    if (kind !== "Deployment" && kind !== "DaemonSet") return [];
    const spec = fieldsIn(object, "spec");
    const pod = fieldsIn(fieldsIn(spec, "template"), "spec");
    const container = objectsIn(pod.containers).find((one) =>
      String(one.image ?? "").includes(image),
    );
    if (container === undefined) return [];
    const metadata = fieldsIn(object, "metadata");
    const namespace = typeof metadata.namespace === "string" ? metadata.namespace : undefined;
    const replicas = typeof spec.replicas === "number" ? spec.replicas : 1;
    return [{ kind, namespace, name: String(metadata.name), pod, container, replicas }];
  });
}

/** The objects of a List, or the object itself. */
export function itemsOf(object: unknown): readonly ManifestObject[] {
  if (!isFields(object)) return [];
  return Array.isArray(object.items) ? object.items.flatMap(itemsOf) : [object];
}

/** The one workload to translate. Throws INPUT_INVALID if there is not exactly one. */
export function onlyWorkload(
  found: readonly ToolWorkload[],
  place: string,
  image: string,
): ToolWorkload {
  const [one, ...others] = found;
  if (one !== undefined && others.length === 0) return one;
  const names = found.map(({ namespace, name }) => `${namespace ?? "default"}/${name}`);
  const what = names.length === 0 ? "none" : `${names.length} (${names.join(", ")})`;
  throw new LastcallError(
    "INPUT_INVALID",
    `Cannot translate ${place}: found ${what} with an image of ${image}, expected one Deployment or DaemonSet`,
  );
}

/** The variables of a container; one that comes from elsewhere cannot be read here. */
export function variablesOf(
  { container }: ToolWorkload,
  place: string,
): { readonly settings: readonly Setting[]; readonly hidden: readonly Setting[] } {
  const known = new Map<string, string>();
  const all = objectsIn(container.env).map((one) => {
    const name = String(one.name);
    const text = expanded(settingText(one.value), known);
    const isHidden = one.value === undefined && one.valueFrom !== undefined;
    if (!isHidden) known.set(name, text);
    return { isHidden, setting: { name, text, place: `${place}: the variable ${name}` } };
  });
  return {
    settings: all.filter(({ isHidden }) => !isHidden).map(({ setting }) => setting),
    hidden: all.filter(({ isHidden }) => isHidden).map(({ setting }) => setting),
  };
}

/**
 * Expands `$(NAME)` as Kubernetes does: an unknown variable is left as it is, and `$$` is a dollar
 * sign.
 */
function expanded(text: string, variables: ReadonlyMap<string, string>): string {
  return text.replaceAll(/\$\$|\$\(([-._A-Za-z][-._A-Za-z0-9]*)\)/g, (found, name: string) =>
    found === "$$" ? "$" : (variables.get(name) ?? found),
  );
}

/** The arguments of a container, without the program's own path. */
export function wordsOf(workload: ToolWorkload): readonly string[] {
  const { command, args } = workload.container;
  const { settings } = variablesOf(workload, "");
  const variables = new Map(settings.map(({ name, text }) => [name, text] as const));
  return (
    [command, args]
      .flatMap((list) => (Array.isArray(list) ? list.map(String) : []))
      // It comes first if the image's entry point is not used.
      .filter((word, at) => at > 0 || word.startsWith("-"))
      .map((word) => expanded(word, variables))
  );
}

/**
 * Throws INPUT_INVALID if one of these settings may be in something that cannot be read here: a
 * policy without it would do more than was intended.
 */
export function checkReadable(
  workload: ToolWorkload,
  place: string,
  limits: readonly string[],
): void {
  const { command, args, envFrom } = workload.container;
  for (const [name, list] of Object.entries({ command, args, env: workload.container.env })) {
    if (!isGiven(list) || Array.isArray(list)) continue;
    const setting = { name, text: settingText(list), place: `${place}: ${name}` };
    throw unreadable(setting, "a list, as the API server accepts it");
  }
  const limit = variablesOf(workload, place).hidden.find(({ name }) => limits.includes(name));
  if (limit !== undefined) throw unreadable(limit, "its value, not a reference to it");
  const sources = objectsIn(envFrom).map((one) => {
    const ref = Object.keys(one).find((key) => key.endsWith("Ref")) ?? "";
    return `${ref} ${fieldsIn(one, ref).name}`;
  });
  if (sources.length > 0) {
    const setting = { name: "envFrom", text: sources.join(", "), place: `${place}: envFrom` };
    throw unreadable(setting, "its variables under env, which may include hours or switches");
  }
  const words = [command, args].flatMap((list) => (Array.isArray(list) ? list.map(String) : []));
  if (words.some((word) => /(^|\/)[a-z]{0,4}sh$/.test(word))) {
    const setting = { name: "command", text: words.join(" "), place: `${place}: command` };
    throw unreadable(setting, "the program's own flags, not a shell's script");
  }
}

/**
 * Throws INPUT_INVALID if the `extraEnv` of a values file is neither a map nor a list of variables,
 * or if one of these in it is a reference.
 */
export function checkExtraEnv(extraEnv: unknown, file: string, limits: readonly string[]): void {
  const isList = Array.isArray(extraEnv) && extraEnv.every(isFields);
  if (isGiven(extraEnv) && !isList && !isFields(extraEnv)) {
    const place = `${file}: extraEnv`;
    const setting = { name: "extraEnv", text: settingText(extraEnv), place };
    throw unreadable(setting, "a map of variables, or a list of {name, value}");
  }
  const hidden = objectsIn(extraEnv).find(
    ({ name, value, valueFrom }) =>
      limits.includes(String(name)) && value === undefined && valueFrom !== undefined,
  );
  if (hidden === undefined) return;
  const name = String(hidden.name);
  const setting = { name, text: "", place: `${file}: extraEnv.${name}` };
  throw unreadable(setting, "its value, not a reference to it");
}

/** A flag of another tool: the name of its setting, and its single letter if it has one. */
export interface ToolFlag {
  readonly name: string;
  readonly short?: string;
  /** Whether the flag alone means `true`, and takes a value only with `=`. */
  readonly isSwitch?: boolean;
}

export type FlagNames = Readonly<Record<string, ToolFlag>>;

/**
 * Reads `--flag=value`, `--flag value`, `-f value` and `-fvalue`, and for a tool without single
 * letters `-flag` as well; unknown flags are returned separately. Throws INPUT_INVALID for a known
 * flag without a value.
 */
export function readArguments(
  args: readonly string[],
  flags: FlagNames,
  place: string,
): { readonly settings: readonly Setting[]; readonly unknown: readonly string[] } {
  const settings: Setting[] = [];
  const unknown: string[] = [];
  for (let at = 0; at < args.length; at += 1) {
    const { flag, value } = splitArgument(String(args[at]), flags);
    const known = Object.entries(flags).find(
      ([long, { short }]) => flag.replace(/^--?/, "") === long || flag === `-${short}`,
    )?.[1];
    const next = value === undefined && !known?.isSwitch ? args[at + 1] : undefined;
    const taken = next === undefined || String(next).startsWith("-") ? undefined : String(next);
    if (taken !== undefined) at += 1;
    if (known === undefined) {
      unknown.push(flag);
      continue;
    }
    const { name, isSwitch } = known;
    const text = value ?? taken ?? (isSwitch ? "true" : undefined);
    const setting = { name, text: text ?? "", place: `${place}: the flag ${flag}` };
    if (text === undefined) throw unreadable(setting, "a value");
    settings.push(setting);
  }
  return { settings, unknown };
}

function splitArgument(
  word: string,
  flags: FlagNames,
): { readonly flag: string; readonly value?: string } {
  const [, start = "", name = "", value] = /^(--?)([^=]+)(?:=(.*))?$/s.exec(word) ?? [];
  const isLetter = Object.values(flags).some(({ short }) => short === name[0]);
  if (start === "--" || (start === "-" && name in flags && !isLetter)) {
    return { flag: `${start}${name}`, ...(value !== undefined && { value }) };
  }
  const [, short, rest] = /^(-[A-Za-z])=?(.+)$/s.exec(word) ?? [];
  return short !== undefined && rest !== undefined ? { flag: short, value: rest } : { flag: word };
}

/** Where the pod may run and its image pull secrets, as values of Lastcall's chart. */
export function podValues({ pod }: ToolWorkload): ChartValues {
  const { nodeSelector, tolerations, affinity, imagePullSecrets } = pod;
  return onlyGiven({ nodeSelector, tolerations, affinity, imagePullSecrets });
}

/** The values that are set. */
export function onlyGiven(values: ChartValues): ChartValues {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => isGiven(value)));
}

export function objectsIn(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? value.filter(isFields) : [];
}
