import { isAutopilot, isSpot, readKubeletConfiguration } from "../../audit/objects/audit-node.ts";
import { looseGangOf } from "../../audit/objects/gang-part.ts";
import {
  leanObject,
  type Manifest,
  readManifest,
  type TemplatePath,
} from "../../audit/objects/manifest.ts";
import { hidesItsPods, objectKey, ownerKeys } from "../../audit/objects/workload-list.ts";
import type { KubeAnswer, KubeApi } from "../../contracts/kube-api.ts";
import { gangObjectKinds } from "../../core/cluster/gang-object.ts";
import type { ShutdownGroup } from "../../core/drain-plan/drain-order.ts";
import { type Fields, isFields, textOf, valueAt } from "../../core/json/json-field.ts";
import { counted, isOrAre } from "../../core/reason/counted.ts";
import { isLastcallError, LastcallError, messageOf } from "../../errors.ts";
import { answerMessage, meaningOf } from "../../kube/object/api-call.ts";
import { listPages } from "../../kube/watch/collection.ts";
import { type AuditedKind, type CustomKind, customKinds, findKind } from "./audited-kind.ts";
import { checkNamespace } from "./missing-namespace.ts";

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

const podKind = kind("v1", "Pod", "pods");

/** The cluster-scoped kinds that the audit reads. */
export const clusterKinds: readonly AuditedKind[] = [
  kind("v1", "Node", "nodes"),
  kind("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses"),
];

/** Kinds that need not be listed, or that the API server need not have. */
interface OptionalKinds {
  readonly kinds: readonly (AuditedKind | CustomKind)[];
  /** What the audit does not see without them. */
  readonly lost: string;
  /** Which of them the audit needs. Default: all. */
  readonly needs?: (manifest: Manifest) => boolean;
}

const optionalKinds: readonly OptionalKinds[] = [
  {
    kinds: [
      kind("storage.k8s.io/v1", "StorageClass", "storageclasses"),
      kind("v1", "PersistentVolume", "persistentvolumes"),
      kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
    ],
    lost: "Volumes on local disks are not recognized",
  },
  {
    kinds: [kind("networking.k8s.io/v1", "IngressClass", "ingressclasses")],
    lost: "Of ALBs, only those of the class alb are recognized",
  },
  {
    kinds: [{ kind: "TargetGroupConfiguration", group: "gateway.k8s.aws" }],
    lost: "The load balancers of Gateways are not checked",
  },
  ...[...gangObjectKinds.map(({ kind, group }) => ({ kind, group }))].map((one) => ({
    kinds: [one],
    lost: "A workload on several nodes is reported although it may go on without one",
    // Pods show those that end together, unless they have ended.
    needs: (manifest: Manifest) =>
      manifest.kind === "PodGroup" || looseGangOf(manifest) !== undefined,
  })),
];

const scopeless: ReadonlySet<string> = new Set([
  ...clusterKinds.map(({ kind: name }) => name),
  "StorageClass",
  "PersistentVolume",
  "IngressClass",
]);

function kind(apiVersion: string, name: string, resource: string): AuditedKind {
  const root = apiVersion.includes("/") ? "/apis" : "/api";
  return { path: `${root}/${apiVersion}/${resource}`, apiVersion, kind: name };
}

/** Requests `/configz` of a node's kubelet; throws LastcallError if there is no response. */
export type AskKubelet = (node: Fields, signal?: AbortSignal) => Promise<KubeAnswer>;

export interface KubeletBudgets {
  /** By node name. Nodes without an entry keep the default of their platform. */
  readonly read: ReadonlyMap<string, readonly ShutdownGroup[]>;
  /** One sentence for each node without an entry; of many, for the first, and their number. */
  readonly notes: readonly string[];
}

const nodesAtOnce = 16;

const namedNodes = 3;

/**
 * Asks the kubelet through the API server. Needs `get` on nodes/proxy, which amounts to running
 * commands in every pod of every node.
 */
export function proxiedKubelet(api: KubeApi): AskKubelet {
  return async (node, signal) => {
    const name = nodeNameOf(node);
    const path = `/api/v1/nodes/${name}/proxy/configz`;
    try {
      return await api.send({ method: "GET", path, signal });
    } catch (error) {
      if (!isLastcallError(error) || error.code !== "API_UNREACHABLE") throw error;
      // The API server has just listed the nodes: it is the kubelet behind it that is silent.
      throw new LastcallError(
        "API_UNREACHABLE",
        `Cannot read /configz of the kubelet of ${name}: no response through the API server, check the kubelet`,
        { cause: error },
      );
    }
  };
}

/**
 * Asks the kubelets of all nodes, except those that must not be asked. Throws RIGHT_MISSING and
 * API_UNAUTHORIZED, because every further node would answer the same.
 */
export async function readKubeletBudgets(
  nodes: readonly Fields[],
  ask: AskKubelet,
  signal?: AbortSignal,
): Promise<KubeletBudgets> {
  const read = new Map<string, readonly ShutdownGroup[]>();
  const notes: string[] = [];
  const queue = nodes.filter((node) => !isAutopilot(nodeNameOf(node)));
  const worker = async (): Promise<void> => {
    for (let node = queue.shift(); node !== undefined; node = queue.shift()) {
      const name = nodeNameOf(node);
      try {
        read.set(name, budgetIn(await ask(node, signal), name));
      } catch (error) {
        if (isFinal(error)) throw error;
        notes.push(
          `${messageOf(error)}; node ${name} is audited with the defaults of its platform`,
        );
      }
    }
  };
  await Promise.all(Array.from({ length: nodesAtOnce }, worker));
  const named = notes.sort().slice(0, namedNodes);
  const more = notes.length - named.length;
  if (more > 0) {
    const nodes = `${counted(more, "more node")} ${isOrAre(more)}`;
    named.push(`${nodes} audited with the defaults of ${more === 1 ? "its" : "their"} platform`);
  }
  return { read, notes: named };
}

function budgetIn(answer: KubeAnswer, node: string): readonly ShutdownGroup[] {
  if (answer.status === 200) {
    return readKubeletConfiguration(answer.body, () => `the kubelet of ${node}`);
  }
  const { code, retryable } = meaningOf({ method: "GET", path: "/configz" }, answer);
  const found = `it responded with ${answer.status} (${answerMessage(answer)})`;
  throw new LastcallError(
    code,
    `Cannot read /configz of the kubelet of ${node}: ${found}, expected 200`,
    { retryable },
  );
}

function isFinal(error: unknown): boolean {
  if (!isLastcallError(error)) return true;
  return ["RIGHT_MISSING", "API_UNAUTHORIZED", "INTERRUPTED"].includes(error.code);
}

export function nodeNameOf(node: Fields): string {
  return textOf(valueAt(node, ["metadata", "name"])) ?? "";
}

/** The objects of a live cluster, and the budgets that its kubelets reported. */
export interface LiveCluster {
  readonly objects: readonly unknown[];
  readonly readBudgets: ReadonlyMap<string, readonly ShutdownGroup[]>;
  /** Remarks about how it was read, one sentence each. */
  readonly notes: readonly string[];
}

/** What to read from a live cluster. */
export interface ObjectSelection {
  /** Default: all namespaces. */
  readonly namespace?: string | undefined;
  /** Custom resources to read as well. */
  readonly templatePaths?: readonly TemplatePath[] | undefined;
}

export interface ReadClusterOptions extends ObjectSelection {
  readonly api: KubeApi;
  /** Default: no kubelet is asked, and nodes have the default of their platform. */
  readonly askKubelet?: AskKubelet | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Lists what the audit needs, trimmed. Of the pods, it keeps only those whose workload is not
 * listed: a few of tens of thousands. Throws NOT_FOUND for a namespace that does not exist,
 * API_REFUSED, RIGHT_MISSING, API_UNAUTHORIZED and the API's own errors. Skips a resource that the
 * server does not know.
 */
export async function readCluster(options: ReadClusterOptions): Promise<LiveCluster> {
  const objects: Fields[] = [];
  const known = new Set<string>();
  const owners = [...namespacedKinds, ...(await customKinds(options.templatePaths ?? [], options))];
  for (const kind of [...clusterKinds, ...owners, podKind]) {
    for await (const json of listed(kind, options)) {
      const manifest = readManifest({ json }, "default", options.templatePaths);
      if (kind === podKind && ownerKeys(manifest).some((key) => known.has(key))) continue;
      if (hidesItsPods(manifest)) known.add(objectKey(manifest));
      objects.push(json);
    }
  }
  const { namespace } = options;
  const isEmpty = objects.every((one) => valueAt(one, ["metadata", "namespace"]) === undefined);
  if (namespace !== undefined && isEmpty) await checkNamespace(namespace, options);
  const notes = await readOptional(options, { objects, owners });
  if (options.askKubelet === undefined) return { objects, readBudgets: new Map(), notes };
  const nodes = objects.filter(isSpotNode);
  const budgets = await readKubeletBudgets(nodes, options.askKubelet, options.signal);
  return { objects, readBudgets: budgets.read, notes: [...notes, ...budgets.notes] };
}

/** Adds the optional kinds to the objects; one sentence for those that may not be listed. */
async function readOptional(
  options: ReadClusterOptions,
  { objects, owners }: { readonly objects: Fields[]; readonly owners: readonly AuditedKind[] },
): Promise<readonly string[]> {
  const read = new Set(owners.map(({ path }) => path));
  const notes: string[] = [];
  for (const { kinds, lost, needs } of optionalKinds) {
    try {
      for (const one of kinds) {
        const kind = "path" in one ? one : await findKind(one, options);
        if (kind === undefined || read.has(kind.path)) continue;
        for await (const json of listed(kind, options)) {
          if (needs?.(readManifest({ json }, "default")) !== false) objects.push(json);
        }
      }
    } catch (error) {
      if (!isLastcallError(error) || error.code !== "RIGHT_MISSING") throw error;
      notes.push(`${lost}: ${error.message}`);
    }
  }
  return notes;
}

function pathIn({ path }: AuditedKind, namespace: string | undefined): string {
  if (namespace === undefined) return path;
  const cut = path.lastIndexOf("/");
  return `${path.slice(0, cut)}/namespaces/${namespace}${path.slice(cut)}`;
}

/**
 * All objects of a kind, or none if the server does not have the kind. They get the apiVersion and
 * kind of their list.
 */
async function* listed(
  kind: AuditedKind,
  { api, namespace, signal }: ReadClusterOptions,
): AsyncGenerator<Fields> {
  const path = scopeless.has(kind.kind) ? kind.path : pathIn(kind, namespace);
  try {
    for await (const page of listPages(api, path, { signal })) {
      for (const item of page.filter(isFields)) {
        yield leanObject({ ...item, apiVersion: kind.apiVersion, kind: kind.kind });
      }
    }
  } catch (error) {
    const code = isLastcallError(error) ? error.code : undefined;
    if (code !== "NOT_FOUND" && code !== "CRD_MISSING") throw error;
  }
}

function isSpotNode(object: unknown): boolean {
  if (valueAt(object, ["kind"]) !== "Node") return false;
  const labels = valueAt(object, ["metadata", "labels"]);
  return isFields(labels) && isSpot(labels as Readonly<Record<string, string>>);
}
