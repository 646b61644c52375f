import { clouds } from "../../cloud/clouds.ts";
import type { RemovalTool } from "../../contracts/cloud-descriptor.ts";
import type { KubeObject } from "../../contracts/kube-api.ts";
import {
  type Fields,
  fieldsOf,
  listOf,
  numberOf,
  textMapOf,
  textOf,
  valueAt,
} from "../../core/json/json-field.ts";
import type { HiddenOptions, OtherTool, OwnPod, WorkloadFacts } from "../../doctor/facts.ts";

type Component = "controller" | "agent";

const componentLabel = "app.kubernetes.io/component";
const nameLabel = "app.kubernetes.io/name";

/** Finds Lastcall's workload among Deployments or DaemonSets, whatever a chart calls it. */
export function ownWorkload(
  workloads: readonly KubeObject[],
  component: Component,
  namespace: string | undefined,
): KubeObject | undefined {
  return workloads.find(
    (one) =>
      (namespace === undefined || one.metadata?.namespace === namespace) &&
      isComponent(one, component),
  );
}

/** The ServiceAccounts of every installation of Lastcall, as `namespace/name`. */
export function ownAccounts(workloads: readonly KubeObject[]): ReadonlySet<string> {
  const all = (["controller", "agent"] as const).flatMap((component) =>
    workloads.filter((one) => isComponent(one, component)).map(workloadFacts),
  );
  return new Set(all.map(({ namespace, serviceAccount }) => `${namespace}/${serviceAccount}`));
}

function isComponent(workload: KubeObject, component: Component): boolean {
  const labels = workload.metadata?.labels ?? {};
  return labels[componentLabel] === component && isOwn(labels, ownContainer(workload));
}

/** Other applications of a shared namespace may have components of the same names. */
function isOwn(labels: Readonly<Record<string, string>>, { image }: { readonly image: string }) {
  return labels[nameLabel] === "lastcall" || /lastcall/.test(image);
}

export function workloadFacts(workload: KubeObject): WorkloadFacts {
  const { metadata = {} } = workload;
  const spec = fieldsOf(workload.spec);
  const status = fieldsOf(workload.status);
  const pod = fieldsOf(valueAt(spec, ["template", "spec"]));
  const container = ownContainer(workload);
  return {
    namespace: metadata.namespace ?? "default",
    name: metadata.name ?? "",
    serviceAccount: textOf(pod.serviceAccountName) ?? "default",
    wanted: numberOf(spec.replicas) ?? numberOf(status.desiredNumberScheduled) ?? 1,
    ready: numberOf(status.readyReplicas) ?? numberOf(status.numberReady) ?? 0,
    refused: refusedWhy(listOf(status.conditions).map(fieldsOf)),
    image: container.image,
    hostNetwork: pod.hostNetwork === true,
    priorityClass: textOf(pod.priorityClassName),
    podLabels: textMapOf(valueAt(spec, ["template", "metadata", "labels"])),
    overlaps: valueAt(spec, ["strategy", "type"]) !== "Recreate",
    options: Object.fromEntries(
      Object.entries(optionsOf(container)).filter(([, value]) => !isComposed(value)),
    ),
    hiddenOptions: hiddenOptionsOf(container),
    chart: metadata.labels?.["helm.sh/chart"],
  };
}

/** Only a Deployment has this condition; a DaemonSet has Events. */
function refusedWhy(conditions: readonly Fields[]): string | undefined {
  const found = conditions.find(
    ({ type, status }) => type === "ReplicaFailure" && status === "True",
  );
  return found && (textOf(found.message) || textOf(found.reason));
}

interface ContainerSpec {
  readonly image: string;
  /** Instead of the image's own. */
  readonly program: string | undefined;
  readonly args: readonly string[];
  readonly env: readonly unknown[];
  readonly envFrom: readonly unknown[];
}

function containersOf(workload: KubeObject): readonly ContainerSpec[] {
  const found = listOf(valueAt(workload.spec, ["template", "spec", "containers"]));
  return found.map(fieldsOf).map(({ image, args, command, env, envFrom }) => ({
    image: textOf(image) ?? "",
    program: textOf(listOf(command)[0]),
    args: [...listOf(command), ...listOf(args)].flatMap((one) => textOf(one) ?? []),
    env: listOf(env),
    envFrom: listOf(envFrom),
  }));
}

/** By its image, if a proxy or the like is beside it; a mirror may have given that another name. */
function ownContainer(workload: KubeObject): ContainerSpec {
  const all = containersOf(workload);
  const own = all.find(({ image }) => image.includes("lastcall")) ?? all[0];
  return own ?? { image: "", program: undefined, args: [], env: [], envFrom: [] };
}

/** `LASTCALL_DRY_RUN` sets the option `dry-run`. */
function optionOfVariable(name: unknown): string | undefined {
  const option = /^LASTCALL_([A-Z0-9_]+)$/.exec(textOf(name) ?? "")?.[1];
  return option?.toLowerCase().replaceAll("_", "-");
}

function optionsOfEnv(env: readonly unknown[]): Record<string, string> {
  const pairs = env.map(fieldsOf).flatMap(({ name, value }): [string, string][] => {
    const option = optionOfVariable(name);
    const text = textOf(value) ?? "";
    return option === undefined || text === "" ? [] : [[option, text]];
  });
  return Object.fromEntries(pairs);
}

/** As they are written: flags take precedence over variables. */
function optionsOf({ args, env }: ContainerSpec): Record<string, string> {
  return { ...optionsOfEnv(env), ...optionsOfArgs(args) };
}

/** `$(NAME)` is replaced by the value of another variable. */
function isComposed(text: string): boolean {
  return /\$\(\w+\)/.test(text);
}

/** Where options come from whose values only the container sees. */
function hiddenOptionsOf(container: ContainerSpec): readonly HiddenOptions[] {
  const shown = Object.entries(optionsOf(container));
  const composed = shown.flatMap(([option, value]) =>
    isComposed(value) ? [{ option, place: `${value} of its container` }] : [],
  );
  const referred = container.env.map(fieldsOf).flatMap(({ name, valueFrom }): HiddenOptions[] => {
    const option = optionOfVariable(name);
    const isAny = option === "config";
    if (option === undefined || valueFrom === undefined) return [];
    return [{ option: isAny ? undefined : option, place: placeOf(valueFrom) }];
  });
  const whole = container.envFrom.map((source) => ({ option: undefined, place: placeOf(source) }));
  const file = shown.flatMap(([option, value]) =>
    option === "config" ? [{ option: undefined, place: `the file ${value}` }] : [],
  );
  const joined = container.args
    .filter((arg, place) => {
      const isValue = /^--[-a-z0-9]+$/.test(container.args[place - 1] ?? "");
      return isComposed(arg) && !arg.startsWith("-") && !isValue;
    })
    .map((arg) => ({ option: undefined, place: `${arg} of its container` }));
  return [...composed, ...joined, ...programOf(container), ...referred, ...whole, ...file];
}

/** A shell or a wrapper may set any option before it starts Lastcall. */
function programOf({ program }: ContainerSpec): readonly HiddenOptions[] {
  const isOwn = program === undefined || /(?:^|\/)(?:lastcall|node)$/.test(program);
  return isOwn ? [] : [{ option: undefined, place: `the program ${program}` }];
}

function placeOf(source: unknown): string {
  const { configMapRef, configMapKeyRef, secretRef, secretKeyRef } = fieldsOf(source);
  const name = (reference: unknown) => textOf(fieldsOf(reference).name) ?? "";
  const [map, secret] = [configMapRef ?? configMapKeyRef, secretRef ?? secretKeyRef];
  if (map !== undefined) return `the ConfigMap ${name(map)}`;
  return secret === undefined ? "a field of the pod" : `the Secret ${name(secret)}`;
}

/** `--x=v`, `--x v`, `--x` and `--no-x`. */
function optionsOfArgs(args: readonly string[]): Record<string, string> {
  const options: Record<string, string> = {};
  args.forEach((arg, place) => {
    const match = /^--(no-)?([a-z][-a-z0-9]*)(?:=(.*))?$/s.exec(arg);
    if (match?.[2] === undefined) return;
    const next = args[place + 1];
    const apart = next === undefined || next.startsWith("-") ? "true" : next;
    options[match[2]] = match[1] === undefined ? (match[3] ?? apart) : "false";
  });
  return options;
}

/** Other tools that remove nodes, among all Deployments and DaemonSets. */
export function otherToolsIn(workloads: readonly KubeObject[]): readonly OtherTool[] {
  return workloads.flatMap((workload): OtherTool[] => {
    const { namespace = "default", name = "" } = workload.metadata ?? {};
    const place = `${workload.kind} ${namespace}/${name}`;
    const tool = containersOf(workload)
      .map(({ image }) => toolOfImage(image))
      .find((one) => one);
    return tool === undefined ? [] : [{ ...tool, place }];
  });
}

/** Lastcall's pods among all: each with its component, its node, and why it does not run. */
export function ownPods(pods: readonly KubeObject[]): readonly OwnPod[] {
  return pods.filter(isOwnPod).map(ownPod);
}

function isOwnPod({ metadata, spec }: KubeObject): boolean {
  const [first] = listOf(valueAt(spec, ["containers"])).map(fieldsOf);
  return isOwn(metadata?.labels ?? {}, { image: textOf(first?.image) ?? "" });
}

function ownPod(pod: KubeObject): OwnPod {
  const status = fieldsOf(pod.status);
  const statuses = listOf(status.containerStatuses);
  const conditions = listOf(status.conditions).map(fieldsOf);
  const waiting = statuses.flatMap(
    (one) => textOf(valueAt(one, ["state", "waiting", "reason"])) ?? [],
  );
  return {
    name: pod.metadata?.name ?? "",
    uid: pod.metadata?.uid ?? "",
    component: pod.metadata?.labels?.[componentLabel] ?? "",
    node: textOf(valueAt(pod.spec, ["nodeName"])),
    ready: conditions.some(({ type, status: is }) => type === "Ready" && is === "True"),
    // These two reasons are normal while a container starts.
    waiting: waiting.find(
      (reason) => reason !== "ContainerCreating" && reason !== "PodInitializing",
    ),
    unscheduled: unscheduledWhy(pod, conditions),
  };
}

/** What the scheduler says of a pod without a node; it may be gated, or nobody schedules it. */
function unscheduledWhy({ spec, status }: KubeObject, conditions: readonly Fields[]) {
  const isPending = valueAt(status, ["phase"]) === "Pending";
  const found = conditions.find(
    ({ type, status: is }) => type === "PodScheduled" && is === "False",
  );
  if (found !== undefined) return textOf(found.message) || textOf(found.reason);
  const hasNode = textOf(valueAt(spec, ["nodeName"])) !== undefined;
  return isPending && !hasNode ? "not scheduled yet" : undefined;
}

/**
 * Tools that remove nodes, by the names of their published images. Karpenter, cluster-autoscaler
 * and kured mark the node that they are removing, and Lastcall leaves such a node to them; the
 * others do not coordinate.
 */
const knownTools: readonly RemovalTool[] = [
  ...clouds.flatMap<RemovalTool>(({ doctor }) => doctor.tools),
  { tool: "spot termination handler", image: /spot-termination(-notice)?-handler/, rival: true },
  { tool: "draino", image: /(^|\/)draino(2)?[:@]/, rival: true },
  { tool: "Karpenter", image: /karpenter/, rival: false },
  { tool: "cluster-autoscaler", image: /cluster-autoscaler/, rival: false },
  { tool: "kured", image: /(^|\/)kured[:@]/, rival: false },
  { tool: "descheduler", image: /(^|\/)descheduler[:@]/, rival: false },
];

/** The tool that an image belongs to; undefined if unknown. */
function toolOfImage(image: string): Omit<RemovalTool, "image"> | undefined {
  const found = knownTools.find((one) => one.image.test(image));
  return found && { tool: found.tool, rival: found.rival };
}
