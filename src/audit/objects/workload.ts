import { defaultGraceSeconds, type GraceSource } from "../../core/drain-plan/drain-order.ts";
import {
  describeValue,
  fieldsOf,
  listOf,
  nameOf,
  valueAt,
  wholeNumberOf,
} from "../../core/json/json-field.ts";
import { type Manifest, placeOf } from "./manifest.ts";
import { claimFor, type PodTemplate, readPodTemplate } from "./pod-template.ts";

/** An object that creates pods, and what those pods ask for. */
export interface Workload {
  readonly kind: string;
  readonly group: string;
  readonly namespace: string;
  readonly name: string;
  /**
   * The object that was read: the workload itself, or one pod of an owner that is not in the input.
   */
  readonly manifest: Manifest;
  readonly template: PodTemplate;
  /** The number of pods; absent for a DaemonSet, and if the number cannot be parsed. */
  readonly replicas?: number | undefined;
  /** The Rollout that runs the pods of this Deployment, which is usually scaled to 0. */
  readonly rollout?: string | undefined;
  readonly priority: number;
  /** A priority class that was named and is not in the input; its value was assumed to be 0. */
  readonly unknownPriorityClass?: string | undefined;
  readonly wantedGraceSeconds: number;
  readonly graceSource: GraceSource;
}

/**
 * The key of an object of the cluster. It may be in the input more than once, as its base and as
 * rendered, and its pods exist once. Objects without a name get one each.
 */
export function identityOf(workload: Workload): string | Workload {
  const { kind, manifest } = workload;
  const isNamed =
    manifest.kind !== kind || nameOf(valueAt(manifest.json, ["metadata", "name"])) !== undefined;
  return isNamed ? keyOf(workload) : workload;
}

/** What the key of an object of the cluster consists of. */
interface NamedObject {
  readonly kind: string;
  readonly group: string;
  readonly namespace: string;
  readonly name: string;
}

/**
 * The same for an object and what refers to it. Several groups may have a kind of one name, and
 * the kinds of `apps` were in `extensions` before.
 */
export function keyOf({ kind, group, namespace, name }: NamedObject): string {
  return `${kind}.${group === "extensions" ? "apps" : group} ${namespace}/${name}`;
}

type ReadWorkload =
  | { readonly kind: "Workload"; readonly workload: Workload }
  | { readonly kind: "Problem"; readonly problem: string };

/** Reads one object of a workload kind; an invalid grace period is a problem of the input. */
export function readWorkload(manifest: Manifest, classes: PriorityClasses): ReadWorkload {
  const kind = workloadKindOf(manifest);
  const template = valueAt(manifest.json, kind?.templatePath ?? []);
  const podSpec = valueAt(template, ["spec"]);
  const grace = readGrace(podSpec, manifest, kind?.templatePath ?? []);
  if (grace.kind === "Problem") return grace;
  const { priority, unknownClass } = resolvePriority(podSpec, classes);
  const workload: Workload = {
    kind: manifest.kind,
    group: manifest.group,
    namespace: manifest.namespace,
    name: manifest.name,
    manifest,
    template: asItsController(readPodTemplate(template), manifest),
    replicas: readReplicas(manifest, kind),
    priority,
    unknownPriorityClass: unknownClass,
    wantedGraceSeconds: grace.seconds,
    graceSource: grace.source,
  };
  return { kind: "Workload", workload };
}

/** The template as the workload's controller completes it for each of its pods. */
function asItsController(template: PodTemplate, manifest: Manifest): PodTemplate {
  if (manifest.kind === "Job") return withJobName(template, manifest.name);
  return manifest.kind === "StatefulSet" ? withClaims(template, manifest) : template;
}

/** Source: kubernetes api batch/v1. */
function withJobName(template: PodTemplate, name: string): PodTemplate {
  const written = { "job-name": name, "batch.kubernetes.io/job-name": name };
  return { ...template, labels: { ...template.labels, ...written } };
}

/** A claim replaces the volume of the same name. Source: kubernetes stateful_set_utils.go. */
function withClaims(template: PodTemplate, { json }: Manifest): PodTemplate {
  const claims = listOf(valueAt(json, ["spec", "volumeClaimTemplates"])).map((claim) =>
    claimFor(nameOf(valueAt(claim, ["metadata", "name"])) ?? "", claim),
  );
  const names = new Set(claims.map(({ name }) => name));
  const others = template.volumes.filter(({ name }) => !names.has(name));
  return { ...template, volumes: [...others, ...claims] };
}

type ReadGrace =
  | { readonly kind: "Grace"; readonly seconds: number; readonly source: GraceSource }
  | { readonly kind: "Problem"; readonly problem: string };

function readGrace(
  podSpec: unknown,
  manifest: Manifest,
  templatePath: readonly string[],
): ReadGrace {
  const field = "terminationGracePeriodSeconds";
  const written = valueAt(podSpec, [field]);
  if (written === undefined || written === null) {
    return { kind: "Grace", seconds: defaultGraceSeconds, source: "Default" };
  }
  const seconds = wholeNumberOf(written);
  if (seconds === undefined || seconds < 0) {
    const problem =
      `Cannot audit ${placeOf(manifest, [...templatePath, "spec", field])}: ${field} is ` +
      `${describeValue(written)}, expected a whole number of seconds from 0 on`;
    return { kind: "Problem", problem };
  }
  return {
    kind: "Grace",
    seconds,
    source: isServersDefault(manifest, seconds) ? "Default" : "Set",
  };
}

/**
 * The API server sets 30 for every pod without a grace period, so in an object that it returned, 30
 * says nothing; unless the manifest that kubectl applied sets it.
 */
function isServersDefault(manifest: Manifest, graceSeconds: number): boolean {
  if (manifest.origin !== "Recorded" || graceSeconds !== defaultGraceSeconds) return false;
  const applied = manifest.annotations["kubectl.kubernetes.io/last-applied-configuration"];
  return !applied?.includes('"terminationGracePeriodSeconds":30');
}

/** The API server's default is 1; with text (a value of a template) the number is unknown. */
function readReplicas({ kind, json }: Manifest, from: WorkloadKind | undefined) {
  if (kind === "DaemonSet") return undefined;
  const written = valueAt(json, from?.replicasPath ?? [""]) ?? 1;
  const limit = valueAt(json, from?.limitPath ?? [""]) ?? written;
  const [pods, most] = [wholeNumberOf(written), wholeNumberOf(limit)];
  return pods === undefined || most === undefined ? undefined : Math.min(pods, most);
}

/** The classes of every cluster. Source: kubernetes pkg/apis/scheduling/v1/helpers.go. */
const builtInClasses = [
  ["system-cluster-critical", 2_000_000_000],
  ["system-node-critical", 2_000_001_000],
] as const;

interface PriorityClasses {
  readonly values: ReadonlyMap<string, number>;
  /** The priority of a pod without a class: that of the global default, otherwise 0. */
  readonly whenNone: number;
  readonly problems: readonly string[];
}

/** Collects the PriorityClasses of the input and the built-in ones. */
export function readPriorityClasses(manifests: readonly Manifest[]): PriorityClasses {
  const values = new Map<string, number>(builtInClasses);
  const problems: string[] = [];
  let whenNone = 0;
  for (const manifest of manifests) {
    if (manifest.kind !== "PriorityClass" || manifest.group !== "scheduling.k8s.io") continue;
    const written = fieldsOf(manifest.json).value;
    const value = wholeNumberOf(written);
    if (value === undefined) {
      problems.push(
        `Cannot audit ${placeOf(manifest, ["value"])}: value is ${describeValue(written)}, expected a whole number`,
      );
      continue;
    }
    values.set(manifest.name, value);
    if (fieldsOf(manifest.json).globalDefault === true) whenNone = value;
  }
  return { values, whenNone, problems };
}

/**
 * The priority of a pod as the admission plugin would resolve it: its number, otherwise its class,
 * otherwise the global default. A class that is not in the input counts as 0.
 */
function resolvePriority(
  podSpec: unknown,
  classes: PriorityClasses,
): { readonly priority: number; readonly unknownClass?: string } {
  const written = wholeNumberOf(valueAt(podSpec, ["priority"]));
  if (written !== undefined) return { priority: written };
  const className = valueAt(podSpec, ["priorityClassName"]);
  if (typeof className !== "string" || className === "") return { priority: classes.whenNone };
  const priority = classes.values.get(className);
  const unknownClass = nameOf(className) ?? "";
  return priority === undefined ? { priority: 0, unknownClass } : { priority };
}

/** Where each kind that creates pods has their template, and the API group of the kind. */
interface WorkloadKind {
  readonly groups: readonly string[];
  readonly templatePath: readonly string[];
  /** The field with the desired number of pods; absent: the kind has none. */
  readonly replicasPath?: readonly string[];
  /** The field with a number that the pods never exceed. */
  readonly limitPath?: readonly string[];
}

const apps = ["apps", "extensions"];
const replicasPath = ["spec", "replicas"];

const workloadKinds: Readonly<Record<string, WorkloadKind>> = {
  Deployment: {
    groups: apps,
    templatePath: ["spec", "template"],
    replicasPath,
  },
  StatefulSet: {
    groups: apps,
    templatePath: ["spec", "template"],
    replicasPath,
  },
  ReplicaSet: {
    groups: apps,
    templatePath: ["spec", "template"],
    replicasPath,
  },
  ReplicationController: {
    groups: [""],
    templatePath: ["spec", "template"],
    replicasPath,
  },
  DaemonSet: { groups: apps, templatePath: ["spec", "template"] },
  Job: {
    groups: ["batch"],
    templatePath: ["spec", "template"],
    replicasPath: ["spec", "parallelism"],
    limitPath: ["spec", "completions"],
  },
  CronJob: {
    groups: ["batch"],
    templatePath: ["spec", "jobTemplate", "spec", "template"],
    replicasPath: ["spec", "jobTemplate", "spec", "parallelism"],
    limitPath: ["spec", "jobTemplate", "spec", "completions"],
  },
  Pod: { groups: [""], templatePath: [] },
};

/** A custom resource with a known template path; never a kind of Kubernetes itself. */
function isCustomWorkload(
  manifest: Manifest,
): manifest is Manifest & { readonly templatePath: readonly string[] } {
  return manifest.templatePath !== undefined && !ownGroups.has(manifest.group);
}

/** API groups of Kubernetes itself that do not end in `.k8s.io`. */
const ownGroups = new Set(["", "apps", "autoscaling", "batch", "extensions", "policy"]);

/** Where a kind has its pods; undefined if it creates none, or is not a kind of Kubernetes. */
export function workloadKindOf(manifest: Manifest): WorkloadKind | undefined {
  if (isCustomWorkload(manifest)) {
    return { groups: [manifest.group], templatePath: manifest.templatePath, replicasPath };
  }
  const found = Object.hasOwn(workloadKinds, manifest.kind)
    ? workloadKinds[manifest.kind]
    : undefined;
  return found?.groups.includes(manifest.group) ? found : undefined;
}

/** The group of a kind that Kubernetes has, for a reference that does not name it. */
export function usualGroupOf(kind: string): string {
  return (Object.hasOwn(workloadKinds, kind) && workloadKinds[kind]?.groups[0]) || "";
}

const kindsInSmall = new Set(Object.keys(workloadKinds).map((kind) => kind.toLowerCase()));

/**
 * Whether an object is meant as a kind that creates pods, but with a name or a group that no API
 * server knows.
 */
export function isMisnamed(manifest: Manifest): boolean {
  const { group, kind } = manifest;
  const known = ownGroups.has(group) && kindsInSmall.has(kind.toLowerCase());
  return known && workloadKindOf(manifest) === undefined;
}

/**
 * Whether an object is of a kind that Kubernetes does not define: no file shows which pods its
 * controller creates (a Prometheus or a Kafka creates many).
 */
export function isCustomResource(manifest: Manifest): boolean {
  const { group, kind } = manifest;
  if (isCustomWorkload(manifest)) return false;
  if (ownGroups.has(group) || /(^|\.)k8s\.io$/.test(group)) return false;
  return !(podlessGroups.has(group) || podlessKinds.has(`${kind}.${group}`));
}

/** Widespread custom resources that are known to create no pods. */
const podlessGroups = new Set([
  "cert-manager.io",
  "cilium.io",
  "dapr.io",
  "eks.amazonaws.com",
  "elbv2.k8s.aws",
  "external-secrets.io",
  "gateway.k8s.aws",
  "karpenter.k8s.aws",
  "karpenter.sh",
  "keda.sh",
  "kueue.x-k8s.io",
  "kyverno.io",
  "lastcall.dev",
  "networking.istio.io",
  "scheduling.volcano.sh",
  "scheduling.x-k8s.io",
  "security.istio.io",
  "traefik.io",
]);
const podlessKinds = new Set([
  ...["PodMonitor", "Probe", "PrometheusRule", "ScrapeConfig", "ServiceMonitor"].map(
    (kind) => `${kind}.monitoring.coreos.com`,
  ),
  "ClusterTrainingRuntime.trainer.kubeflow.org",
  "TrainingRuntime.trainer.kubeflow.org",
]);
