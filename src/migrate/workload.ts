import { isFields } from "../core/json/json-field.ts";
import { LastcallError } from "../errors.ts";
import { type ChartValues, fieldsIn, isGiven, type Setting } from "./setting.ts";

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

/** The one workload that is to be translated. Throws INPUT_INVALID where it is not one. */
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
  const all = objectsIn(container.env).map((one) => ({
    isHidden: one.value === undefined && one.valueFrom !== undefined,
    setting: {
      name: String(one.name),
      text: one.value === undefined ? "" : String(one.value),
      place: `${place}: the variable ${String(one.name)}`,
    },
  }));
  return {
    settings: all.filter(({ isHidden }) => !isHidden).map(({ setting }) => setting),
    hidden: all.filter(({ isHidden }) => isHidden).map(({ setting }) => setting),
  };
}

/** A flag of another tool: the name of its setting, and its single letter where it has one. */
export type FlagNames = Readonly<
  Record<string, { readonly name: string; readonly short?: string }>
>;

/**
 * Reads `--flag=value`, `--flag value`, `-f value` and `-fvalue`; unknown flags are returned
 * separately.
 */
export function readArguments(
  args: readonly string[],
  flags: FlagNames,
  place: string,
): { readonly settings: readonly Setting[]; readonly unknown: readonly string[] } {
  const settings: Setting[] = [];
  const unknown: string[] = [];
  for (let at = 0; at < args.length; at += 1) {
    const { flag, value } = splitArgument(String(args[at]));
    const long = Object.keys(flags).find(
      (one) => flag === `--${one}` || flag === `-${flags[one]?.short}`,
    );
    const next = args[at + 1];
    const takesNext = value === undefined && next !== undefined && !String(next).startsWith("-");
    if (takesNext) at += 1;
    if (long === undefined) {
      unknown.push(flag);
      continue;
    }
    const { name } = flags[long] as { readonly name: string };
    const text = value ?? (takesNext ? String(next) : "");
    settings.push({ name, text, place: `${place}: the flag ${flag}` });
  }
  return { settings, unknown };
}

function splitArgument(word: string): { readonly flag: string; readonly value?: string } {
  const [, long, value] = /^(--[^=]+)=(.*)$/s.exec(word) ?? [];
  if (long !== undefined && value !== undefined) return { flag: long, value };
  const [, short, rest] = /^(-[A-Za-z])=?(.+)$/s.exec(word) ?? [];
  return short !== undefined && rest !== undefined ? { flag: short, value: rest } : { flag: word };
}

/** Where the pod may run and what it is called with, as values of Lastcall's chart. */
export function podValues({ pod }: ToolWorkload): ChartValues {
  const { nodeSelector, tolerations, affinity, imagePullSecrets } = pod;
  return onlyGiven({ nodeSelector, tolerations, affinity, imagePullSecrets });
}

/** The value without what says nothing. */
export function onlyGiven(values: ChartValues): ChartValues {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => isGiven(value)));
}

export function objectsIn(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? value.filter(isFields) : [];
}
