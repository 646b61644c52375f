import { leanObject } from "../../audit/objects/lean-object.ts";
import { readManifest } from "../../audit/objects/manifest.ts";
import { objectKey, ownerKeys } from "../../audit/objects/workload-list.ts";
import { isSpot } from "../../audit/spot-label.ts";
import type { KubeApi } from "../../contracts/kube-api.ts";
import { type Fields, isFields, listOf, textOf, valueAt } from "../../core/json/json-field.ts";
import { apiError } from "../../kube/object/api-error.ts";
import type { LiveCluster, WantedObjects } from "../commands/audit.ts";
import {
  type AuditedKind,
  clusterKinds,
  customKinds,
  namespacedKinds,
  podKind,
} from "../input/audited-kind.ts";
import { type AskKubelet, readKubeletBudgets } from "./kubelet-budgets.ts";

export interface ReadClusterOptions extends WantedObjects {
  readonly api: KubeApi;
  /** Absent: no kubelet is asked, and nodes give what their platform ships. */
  readonly askKubelet?: AskKubelet | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Lists what the audit judges, lean, and of the pods only those whose workload is not listed: of
 * tens of thousands few are left. Throws API_REFUSED, RIGHT_MISSING, API_UNAUTHORIZED and what the
 * API throws; a resource that the server does not know is passed over.
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

/** All objects of a kind; they get the head that a list leaves away. */
async function* listed(
  kind: AuditedKind,
  { api, namespace, signal }: ReadClusterOptions,
): AsyncGenerator<Fields> {
  const path = clusterKinds.includes(kind) ? kind.path : pathIn(kind, namespace);
  let next: string | undefined;
  do {
    const query = { limit: "500", ...(next === undefined ? {} : { continue: next }) };
    const answer = await api.send({ method: "GET", path, query, signal });
    if (answer.status === 404) return;
    if (answer.status !== 200) throw apiError({ method: "GET", path }, answer);
    for (const item of listOf(valueAt(answer.body, ["items"])).filter(isFields)) {
      yield leanObject({ ...item, apiVersion: kind.apiVersion, kind: kind.kind });
    }
    next = textOf(valueAt(answer.body, ["metadata", "continue"])) || undefined;
  } while (next !== undefined);
}

function isSpotNode(object: unknown): boolean {
  if (valueAt(object, ["kind"]) !== "Node") return false;
  const labels = valueAt(object, ["metadata", "labels"]);
  return isFields(labels) && isSpot(labels as Readonly<Record<string, string>>);
}
