import type { KubeObject } from "../../contracts/kube-api.ts";
import {
  fieldsOf,
  listOf,
  numberOf,
  textMapOf,
  textOf,
  valueAt,
} from "../../core/json/json-field.ts";
import type { OtherTool, OwnPod, WorkloadFacts } from "../../doctor/facts.ts";

type Component = "controller" | "agent";

const componentLabel = "app.kubernetes.io/component";
const nameLabel = "app.kubernetes.io/name";

/** Finds Lastcall's workload among Deployments or DaemonSets, whatever a chart calls it. */
export function ownWorkload(
  workloads: readonly KubeObject[],
  component: Component,
  namespace: string | undefined,
): WorkloadFacts | undefined {
  const found = workloads.filter((one) => {
    const labels = one.metadata?.labels ?? {};
    if (namespace !== undefined && one.metadata?.namespace !== namespace) return false;
    return labels[componentLabel] === component && isOwn(labels, firstContainer(one));
  });
  return found[0] && workloadFacts(found[0]);
}

/** Other applications of a shared namespace may have components of the same names. */
function isOwn(labels: Readonly<Record<string, string>>, { image }: { readonly image: string }) {
  return labels[nameLabel] === "lastcall" || /lastcall/.test(image);
}

function workloadFacts(workload: KubeObject): WorkloadFacts {
  const { metadata = {} } = workload;
  const spec = fieldsOf(workload.spec);
  const status = fieldsOf(workload.status);
  const pod = fieldsOf(valueAt(spec, ["template", "spec"]));
  const container = firstContainer(workload);
  return {
    namespace: metadata.namespace ?? "default",
    name: metadata.name ?? "",
    serviceAccount: textOf(pod.serviceAccountName) ?? "default",
    wanted: numberOf(spec.replicas) ?? numberOf(status.desiredNumberScheduled) ?? 1,
    ready: numberOf(status.readyReplicas) ?? numberOf(status.numberReady) ?? 0,
    image: container.image,
    hostNetwork: pod.hostNetwork === true,
    priorityClass: textOf(pod.priorityClassName),
    podLabels: textMapOf(valueAt(spec, ["template", "metadata", "labels"])),
    options: { ...optionsOfEnv(container.env), ...optionsOfArgs(container.args) },
    chart: metadata.labels?.["helm.sh/chart"],
  };
}

interface ContainerSpec {
  readonly image: string;
  readonly args: readonly string[];
  readonly env: readonly unknown[];
}

function containersOf(workload: KubeObject): readonly ContainerSpec[] {
  const found = listOf(valueAt(workload.spec, ["template", "spec", "containers"]));
  return found.map(fieldsOf).map(({ image, args, command, env }) => ({
    image: textOf(image) ?? "",
    args: [...listOf(command), ...listOf(args)].flatMap((one) => textOf(one) ?? []),
    env: listOf(env),
  }));
}

function firstContainer(workload: KubeObject): ContainerSpec {
  return containersOf(workload)[0] ?? { image: "", args: [], env: [] };
}

/** `LASTCALL_DRY_RUN` sets the option `dry-run`. */
function optionsOfEnv(env: readonly unknown[]): Record<string, string> {
  const pairs = env.map(fieldsOf).flatMap(({ name, value }): [string, string][] => {
    const option = /^LASTCALL_([A-Z0-9_]+)$/.exec(textOf(name) ?? "")?.[1];
    const text = textOf(value) ?? "";
    return option === undefined || text === ""
      ? []
      : [[option.toLowerCase().replaceAll("_", "-"), text]];
  });
  return Object.fromEntries(pairs);
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
    component: pod.metadata?.labels?.[componentLabel] ?? "",
    node: textOf(valueAt(pod.spec, ["nodeName"])),
    ready: conditions.some(({ type, status: is }) => type === "Ready" && is === "True"),
    // These two reasons are normal while a container starts.
    waiting: waiting.find(
      (reason) => reason !== "ContainerCreating" && reason !== "PodInitializing",
    ),
  };
}

interface KnownTool {
  readonly tool: string;
  /** The names of its images. */
  readonly image: RegExp;
  /** Whether it drains on a notice or terminates machines, as Lastcall does. */
  readonly rival: boolean;
}

/**
 * Tools that remove nodes, by the names of their published images. Karpenter, cluster-autoscaler
 * and kured mark the node that they are removing, and Lastcall leaves such a node to them; the
 * others do not coordinate.
 */
const knownTools: readonly KnownTool[] = [
  { tool: "aws-node-termination-handler", image: /aws-node-termination-handler/, rival: true },
  { tool: "estafette's preemptible killer", image: /gke-preemptible-killer/, rival: true },
  {
    tool: "GCP node termination handler",
    image: /gke-node-termination-handler|k8s-node-termination-handler/,
    rival: true,
  },
  { tool: "spot termination handler", image: /spot-termination(-notice)?-handler/, rival: true },
  { tool: "draino", image: /(^|\/)draino(2)?[:@]/, rival: true },
  { tool: "Karpenter", image: /karpenter/, rival: false },
  { tool: "cluster-autoscaler", image: /cluster-autoscaler/, rival: false },
  { tool: "kured", image: /(^|\/)kured[:@]/, rival: false },
  { tool: "descheduler", image: /(^|\/)descheduler[:@]/, rival: false },
];

/** The tool that an image belongs to; undefined if unknown. */
function toolOfImage(image: string): Omit<KnownTool, "image"> | undefined {
  const found = knownTools.find((one) => one.image.test(image));
  return found && { tool: found.tool, rival: found.rival };
}
