import { isFields, listOf, textOf, valueAt } from "../audit/json-field.ts";
import { isSpot } from "../audit/spot-label.ts";
import type { KubeAnswer, KubeApi } from "../contracts/kube-api.ts";
import { LastcallError } from "../errors.ts";
import type { LiveCluster } from "./audit.ts";
import { type AuditedKind, clusterKinds, namespacedKinds, podKind } from "./audited-kind.ts";
import { type AskKubelet, readKubeletBudgets } from "./kubelet-budgets.ts";

export interface ReadClusterOptions {
  readonly api: KubeApi;
  /** Absent: all namespaces. */
  readonly namespace?: string | undefined;
  /** Absent: no kubelet is asked, and nodes give what their platform ships. */
  readonly askKubelet?: AskKubelet | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Lists what the audit judges. Throws API_REFUSED, RIGHT_MISSING, API_UNAUTHORIZED and what the API
 * throws; a resource that the server does not know is passed over.
 */
export async function readCluster(options: ReadClusterOptions): Promise<LiveCluster> {
  const objects: unknown[] = [];
  for (const { path } of clusterKinds) objects.push(...(await listAll(path, options)));
  for (const kind of [...namespacedKinds, podKind]) {
    objects.push(...(await listAll(pathIn(kind, options.namespace), options)));
  }
  if (options.askKubelet === undefined) return { objects, readBudgets: new Map(), notes: [] };
  const nodes = objects.filter(isFields).filter(isSpotNode);
  const { read, notes } = await readKubeletBudgets(nodes, options.askKubelet, options.signal);
  return { objects, readBudgets: read, notes };
}

function pathIn({ path }: AuditedKind, namespace: string | undefined): string {
  if (namespace === undefined) return path;
  const cut = path.lastIndexOf("/");
  return `${path.slice(0, cut)}/namespaces/${namespace}${path.slice(cut)}`;
}

/** All pages of a list; the items get the head that a list leaves away. */
async function listAll(path: string, options: ReadClusterOptions): Promise<readonly unknown[]> {
  const objects: unknown[] = [];
  let next: string | undefined;
  do {
    const query = { limit: "500", ...(next === undefined ? {} : { continue: next }) };
    const answer = await options.api.send({ method: "GET", path, query, signal: options.signal });
    if (answer.status === 404) return [];
    if (answer.status !== 200) throw refusal(path, answer);
    const kind = textOf(valueAt(answer.body, ["kind"]))?.replace(/List$/, "");
    const apiVersion = textOf(valueAt(answer.body, ["apiVersion"]));
    for (const item of listOf(valueAt(answer.body, ["items"]))) {
      if (isFields(item)) objects.push({ apiVersion, kind, ...item });
    }
    next = textOf(valueAt(answer.body, ["metadata", "continue"])) || undefined;
  } while (next !== undefined);
  return objects;
}

function isSpotNode(object: unknown): boolean {
  if (valueAt(object, ["kind"]) !== "Node") return false;
  const labels = valueAt(object, ["metadata", "labels"]);
  return isFields(labels) && isSpot(labels as Readonly<Record<string, string>>);
}

function refusal(path: string, { status, body }: KubeAnswer): LastcallError {
  const code =
    ({ 401: "API_UNAUTHORIZED", 403: "RIGHT_MISSING" } as const)[status] ?? "API_REFUSED";
  const said = textOf(valueAt(body, ["message"])) ?? textOf(body) ?? "no reason";
  return new LastcallError(
    code,
    `Cannot list ${path}: the API server answered ${status} (${said}), 200 is wanted`,
  );
}
