import type { KubeObject, KubeRequest, KubeSender, Urgency } from "../../contracts/kube-api.ts";
import { apiError } from "../object/api-error.ts";

interface ListBody {
  readonly metadata?: { readonly continue?: string };
  readonly items?: readonly KubeObject[];
}

/** Every object of a collection, in pages. Throws the fault of the first answer that is none. */
export async function listAll(
  api: KubeSender,
  path: string,
  query: Readonly<Record<string, string>> = {},
): Promise<readonly KubeObject[]> {
  const objects: KubeObject[] = [];
  for await (const page of listPages(api, path, { query })) objects.push(...page);
  return objects;
}

export interface PageOptions {
  readonly query?: Readonly<Record<string, string>> | undefined;
  /** Objects a page; the default is kubectl's. */
  readonly limit?: number | undefined;
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
    const page = { ...query, limit: String(limit), ...from };
    const request: KubeRequest = { method: "GET", path, query: page, urgency, signal };
    const answer = await api.send(request);
    if (answer.status !== 200) throw apiError(request, answer);
    const body = answer.body as ListBody;
    yield body.items ?? [];
    next = body.metadata?.continue === "" ? undefined : body.metadata?.continue;
  } while (next !== undefined);
}
