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

/** Lists every object of a collection, page by page. Throws the error of a failed page. */
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
 * The page size of a list, or `None` for a single response. Before Kubernetes 1.34 an API server
 * reads pages from etcd, which does not support selectors: a page of one node's pods reads those of
 * the whole cluster. A single response comes from its cache, indexed by node, and since 1.31 it is
 * as fresh as from etcd (KEP-2340 and KEP-4988, kubernetes#77733).
 */
export type PageLimit = number | "None";

export interface PageOptions {
  readonly query?: Readonly<Record<string, string>> | undefined;
  /** Default 500, as for kubectl. */
  readonly limit?: PageLimit | undefined;
  readonly urgency?: Urgency | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Lists page by page, so that only one page is in memory. */
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
 * The items of a list. Throws `API_ANSWER_INVALID` if the response is not a list, so that the
 * response of something else does not look like an empty fleet or an empty node.
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

/** The query parameter for the page size. */
export function limitQuery(limit: PageLimit): Readonly<Record<string, string>> {
  return limit === "None" ? {} : { limit: String(limit) };
}
