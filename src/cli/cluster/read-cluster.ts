import { isAutopilot, isSpot, readKubeletConfiguration } from "../../audit/objects/audit-node.ts";
import { leanObject, readManifest, type TemplatePath } from "../../audit/objects/manifest.ts";
import { objectKey, ownerKeys } from "../../audit/objects/workload-list.ts";
import type { KubeAnswer, KubeApi } from "../../contracts/kube-api.ts";
import type { ShutdownGroup } from "../../core/drain-plan/grace-budget.ts";
import { type Fields, isFields, textOf, valueAt } from "../../core/json/json-field.ts";
import { isLastcallError, LastcallError, messageOf } from "../../errors.ts";
import { answerMessage, meaningOf } from "../../kube/object/api-error.ts";
import { listPages } from "../../kube/watch/list.ts";
import {
  type AuditedKind,
  clusterKinds,
  customKinds,
  namespacedKinds,
  podKind,
} from "../input/audited-kind.ts";

/** Requests `/configz` of a node's kubelet; throws LastcallError if there is no response. */
export type AskKubelet = (node: Fields, signal?: AbortSignal) => Promise<KubeAnswer>;

export interface KubeletBudgets {
  /** By node name. Nodes without an entry keep the default of their platform. */
  readonly read: ReadonlyMap<string, readonly ShutdownGroup[]>;
  /** One sentence for each node without an entry. */
  readonly notes: readonly string[];
}

const nodesAtOnce = 16;

/**
 * Asks the kubelet through the API server. Needs `get` on nodes/proxy, which amounts to running
 * commands in every pod of every node.
 */
export function proxiedKubelet(api: KubeApi): AskKubelet {
  return (node, signal) =>
    api.send({ method: "GET", path: `/api/v1/nodes/${nodeNameOf(node)}/proxy/configz`, signal });
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
  return { read, notes: notes.sort() };
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
 * listed: a few of tens of thousands. Throws API_REFUSED, RIGHT_MISSING, API_UNAUTHORIZED and the
 * API's own errors. Skips a resource that the server does not know.
 */
export async function readCluster(options: ReadClusterOptions): Promise<LiveCluster> {
  const objects: Fields[] = [];
  const known = new Set<string>();
  const owners = [...namespacedKinds, ...(await customKinds(options))];
  for (const kind of [...clusterKinds, ...owners, podKind]) {
    for await (const json of listed(kind, options)) {
      const manifest = readManifest({ json }, "default");
      if (kind === podKind && ownerKeys(manifest).some((key) => known.has(key))) continue;
      if (owners.includes(kind)) known.add(objectKey(manifest));
      objects.push(json);
    }
  }
  if (options.askKubelet === undefined) return { objects, readBudgets: new Map(), notes: [] };
  const nodes = objects.filter(isSpotNode);
  const { read, notes } = await readKubeletBudgets(nodes, options.askKubelet, options.signal);
  return { objects, readBudgets: read, notes };
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
  const path = clusterKinds.includes(kind) ? kind.path : pathIn(kind, namespace);
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
