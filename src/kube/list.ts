import type { KubeApi, KubeObject, KubeRequest } from "../contracts/kube-api.ts";
import { faultOf } from "./fault.ts";

interface ListBody {
  readonly metadata?: { readonly continue?: string };
  readonly items?: readonly KubeObject[];
}

/** Every object of a collection, in pages. Throws the fault of the first answer that is none. */
export async function listAll(
  api: KubeApi,
  path: string,
  query: Readonly<Record<string, string>> = {},
): Promise<readonly KubeObject[]> {
  const objects: KubeObject[] = [];
  let next: string | undefined;
  do {
    const page = { ...query, limit: "500", ...(next === undefined ? {} : { continue: next }) };
    const request: KubeRequest = { method: "GET", path, query: page };
    const answer = await api.send(request);
    if (answer.status !== 200) throw faultOf(request, answer);
    const body = answer.body as ListBody;
    objects.push(...(body.items ?? []));
    next = body.metadata?.continue === "" ? undefined : body.metadata?.continue;
  } while (next !== undefined);
  return objects;
}
