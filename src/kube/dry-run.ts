import type { KubeApi, KubeRequest } from "../contracts/kube-api.ts";
import { fieldsOf } from "../core/json/json-field.ts";

/**
 * The same request, which the API server authorizes, admits and validates, and then does not store.
 * The body of a deletion takes precedence over its query.
 */
export function dryRunOf(request: KubeRequest): KubeRequest {
  const { method, query } = request;
  if (method === "GET") return request;
  const dry = { ...request, query: { ...query, dryRun: "All" } };
  return method === "DELETE"
    ? { ...dry, body: { ...fieldsOf(request.body), dryRun: ["All"] } }
    : dry;
}

/** An API that stores nothing. Each write is answered as it would be: refusals of RBAC included. */
export function dryRunApi(api: KubeApi): KubeApi {
  return {
    send: (request) => api.send(dryRunOf(request)),
    watch: (request) => api.watch(request),
  };
}
