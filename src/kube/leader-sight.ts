import type { KubeObject, KubeRequest, KubeSender } from "../contracts/kube-api.ts";
import type { LeaderSight } from "../contracts/leader-sight.ts";
import { type LeasePlace, translateLease } from "./lease-record.ts";
import { apiError } from "./object/api-error.ts";

/** The controllers' Lease as it is now; undefined where there is none: then nobody can be judged by it. */
export async function readLeaderSight(
  api: KubeSender,
  { namespace, name }: LeasePlace,
): Promise<LeaderSight | undefined> {
  const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/${name}`;
  const request: KubeRequest = { method: "GET", path };
  const answer = await api.send(request);
  if (answer.status === 404) return undefined;
  if (answer.status >= 300) throw apiError(request, answer);
  const { resourceVersion, holder, durationMs } = translateLease(answer.body as KubeObject);
  return { version: resourceVersion, held: holder !== undefined, durationMs };
}
