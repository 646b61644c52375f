import type { Manifest } from "./manifest.ts";

/** Where each kind that makes pods keeps their template, and the API group that owns the kind. */
interface WorkloadKind {
  readonly groups: readonly string[];
  readonly templatePath: readonly string[];
  /** Where the wanted number of pods stands; absent: the kind has none. */
  readonly replicasPath?: readonly string[];
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
  },
  CronJob: {
    groups: ["batch"],
    templatePath: ["spec", "jobTemplate", "spec", "template"],
    replicasPath: ["spec", "jobTemplate", "spec", "parallelism"],
  },
  Pod: { groups: [""], templatePath: [] },
};

/**
 * A custom resource of which it was said where it keeps its template; never one of Kubernetes' own.
 */
function isCustomWorkload(
  manifest: Manifest,
): manifest is Manifest & { readonly templatePath: readonly string[] } {
  return manifest.templatePath !== undefined && !ownGroups.has(manifest.group);
}

/** API groups of Kubernetes itself that do not end in `.k8s.io`. */
const ownGroups = new Set(["", "apps", "autoscaling", "batch", "extensions", "policy"]);

/**
 * How a kind keeps its pods; undefined for a kind that makes none, or that is not Kubernetes' own.
 */
export function workloadKindOf(manifest: Manifest): WorkloadKind | undefined {
  if (isCustomWorkload(manifest)) {
    return { groups: [manifest.group], templatePath: manifest.templatePath, replicasPath };
  }
  const found = Object.hasOwn(workloadKinds, manifest.kind)
    ? workloadKinds[manifest.kind]
    : undefined;
  return found?.groups.includes(manifest.group) ? found : undefined;
}

const kindsInSmall = new Set(Object.keys(workloadKinds).map((kind) => kind.toLowerCase()));

/**
 * Whether an object means a kind that makes pods, by a name or a group that no API server knows.
 */
export function isMisnamed(manifest: Manifest): boolean {
  const { group, kind } = manifest;
  const known = ownGroups.has(group) && kindsInSmall.has(kind.toLowerCase());
  return known && workloadKindOf(manifest) === undefined;
}

/**
 * Whether an object is of a kind that Kubernetes does not define: what pods its controller makes
 * (a Prometheus or a Kafka makes many) no file shows.
 */
export function isCustomResource(manifest: Manifest): boolean {
  const { group, kind } = manifest;
  if (isCustomWorkload(manifest)) return false;
  if (ownGroups.has(group) || /(^|\.)k8s\.io$/.test(group)) return false;
  return !(podlessGroups.has(group) || podlessKinds.has(`${kind}.${group}`));
}

/** Wide-spread custom resources that are known to make no pods. */
const podlessGroups = new Set([
  "cert-manager.io",
  "cilium.io",
  "dapr.io",
  "external-secrets.io",
  "keda.sh",
  "kyverno.io",
  "lastcall.dev",
  "networking.istio.io",
  "security.istio.io",
  "traefik.io",
]);
const podlessKinds = new Set(
  ["PodMonitor", "Probe", "PrometheusRule", "ScrapeConfig", "ServiceMonitor"].map(
    (kind) => `${kind}.monitoring.coreos.com`,
  ),
);
