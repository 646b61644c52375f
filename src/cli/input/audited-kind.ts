import type { TemplatePath } from "../../audit/objects/manifest.ts";
import type { KubeApi } from "../../contracts/kube-api.ts";
import { fieldsOf, listOf, textOf, valueAt } from "../../core/json/json-field.ts";
import { LastcallError } from "../../errors.ts";

/** A collection that the audit reads from a live cluster. */
export interface AuditedKind {
  readonly path: string;
  readonly apiVersion: string;
  readonly kind: string;
}

/** The namespaced kinds that the audit reads; pods are separate, because there may be very many. */
export const namespacedKinds: readonly AuditedKind[] = [
  kind("apps/v1", "Deployment", "deployments"),
  kind("apps/v1", "StatefulSet", "statefulsets"),
  kind("apps/v1", "DaemonSet", "daemonsets"),
  kind("batch/v1", "Job", "jobs"),
  kind("batch/v1", "CronJob", "cronjobs"),
  kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets"),
  kind("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"),
  kind("networking.k8s.io/v1", "Ingress", "ingresses"),
  kind("v1", "Service", "services"),
  kind("v1", "ReplicationController", "replicationcontrollers"),
];

export const podKind = kind("v1", "Pod", "pods");

/** The cluster-scoped kinds that the audit reads. */
export const clusterKinds: readonly AuditedKind[] = [
  kind("v1", "Node", "nodes"),
  kind("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses"),
];

function kind(apiVersion: string, name: string, resource: string): AuditedKind {
  const root = apiVersion.includes("/") ? "/apis" : "/api";
  return { path: `${root}/${apiVersion}/${resource}`, apiVersion, kind: name };
}

interface Discovery {
  readonly api: KubeApi;
  readonly templatePaths?: readonly TemplatePath[] | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * The collections of custom resources in the API server's preferred version, by discovery. Throws
 * USAGE if a group is missing or the server does not know the kind.
 */
export async function customKinds(discovery: Discovery): Promise<readonly AuditedKind[]> {
  const kinds: AuditedKind[] = [];
  for (const one of discovery.templatePaths ?? []) kinds.push(await customKind(one, discovery));
  return kinds;
}

async function customKind(
  { kind, group, path }: TemplatePath,
  discovery: Discovery,
): Promise<AuditedKind> {
  const typed = `--template-path ${group === undefined ? kind : `${kind}.${group}`}=${path.join(".")}`;
  if (group === undefined) {
    const fix = `name its API group when auditing a cluster, as in ${kind}.example.com=${path.join(".")}`;
    throw new LastcallError("USAGE", `Cannot use ${typed}: ${fix}`);
  }
  const preferred = valueAt(await discover(`/apis/${group}`, discovery), ["preferredVersion"]);
  const apiVersion = textOf(valueAt(preferred, ["groupVersion"]));
  const found = apiVersion && (await discover(`/apis/${apiVersion}`, discovery));
  const resources = listOf(valueAt(found, ["resources"])).map(fieldsOf);
  const resource = resources.find((one) => one.kind === kind && !`${one.name}`.includes("/"));
  if (apiVersion === undefined || resource === undefined) {
    const fix = "check kind and group with: kubectl api-resources";
    throw new LastcallError(
      "USAGE",
      `Cannot use ${typed}: the API server has no such kind, ${fix}`,
    );
  }
  return { path: `/apis/${apiVersion}/${resource.name}`, apiVersion, kind };
}

async function discover(path: string, { api, signal }: Discovery): Promise<unknown> {
  const { status, body } = await api.send({ method: "GET", path, signal });
  return status === 200 ? body : undefined;
}
