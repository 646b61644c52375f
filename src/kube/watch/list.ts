import type {
  KubeAnswer,
  KubeObject,
  KubeRequest,
  KubeSender,
  Urgency,
} from "../../contracts/kube-api.ts";
import { fieldsOf, textOf } from "../../core/json/json-field.ts";
import { LastcallError } from "../../errors.ts";
import { apiError } from "../object/api-error.ts";

interface ListBody {
  readonly metadata?: { readonly continue?: string };
}

/** Every object of a collection, in pages. Throws the fault of the first answer that is none. */
export async function listAll(
  api: KubeSender,
  path: string,
  query: Readonly<Record<string, string>> = {},
  limit?: PageLimit,
): Promise<readonly KubeObject[]> {
  const objects: KubeObject[] = [];
  for await (const page of listPages(api, path, { query, limit })) objects.push(...page);
  return objects;
}

/**
 * Objects in one page of a list, or `None` for all in one answer. Before Kubernetes 1.34 an API
 * server asks etcd for pages, and etcd knows no selectors: a page of one node's pods means to read
 * those of the whole cluster. In one answer it takes them from its cache, where they are indexed
 * by node, and since 1.31 as fresh as from etcd (KEP-2340 and KEP-4988, kubernetes#77733).
 */
export type PageLimit = number | "None";

export interface PageOptions {
  readonly query?: Readonly<Record<string, string>> | undefined;
  /** The default is kubectl's. */
  readonly limit?: PageLimit | undefined;
  readonly urgency?: Urgency | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The same page by page, so that no more than one of them has to be held. */
export async function* listPages(
  api: KubeSender,
  path: string,
  { query, limit = 500, urgency, signal }: PageOptions,
): AsyncGenerator<readonly KubeObject[]> {
  let next: string | undefined;
  do {
    const from = next === undefined ? {} : { continue: next };
    const page = { ...query, ...limitQuery(limit), ...from };
    const request: KubeRequest = { method: "GET", path, query: page, urgency, signal };
    const answer = await api.send(request);
    if (answer.status !== 200) throw apiError(request, answer);
    yield itemsOf(path, answer) as readonly KubeObject[];
    const { metadata } = answer.body as ListBody;
    next = metadata?.continue === "" ? undefined : metadata?.continue;
  } while (next !== undefined);
}

/**
 * What a list holds. Throws `API_ANSWER_INVALID` where the answer is no list: a fleet is not gone,
 * and a node is not empty, because something else has answered in the server's place.
 */
export function itemsOf(path: string, { body }: Pick<KubeAnswer, "body">): readonly unknown[] {
  const { kind, items } = fieldsOf(body);
  if (Array.isArray(items)) return items;
  if ((items ?? null) === null && textOf(kind)?.endsWith("List")) return [];
  throw new LastcallError(
    "API_ANSWER_INVALID",
    `Cannot list ${path}: found ${textOf(kind) ?? "no kind"}, expected a list with items`,
  );
}

/** The part of a list's query that says how much it may answer at once. */
export function limitQuery(limit: PageLimit): Readonly<Record<string, string>> {
  return limit === "None" ? {} : { limit: String(limit) };
}
