import type { KubeObject, KubeRequest, KubeSender } from "../../contracts/kube-api.ts";
import type { ObservedLease } from "../../contracts/leadership.ts";
import { fieldsOf, instantOf, listOf } from "../../core/json/json-field.ts";
import { type Instant, plus } from "../../core/time/time.ts";
import { apiError, isGone, objectError } from "../object/api-call.ts";
import { type LeasePlace, translateLease } from "./lease-store.ts";

/**
 * Reads the controllers' current Lease; undefined if there is none, in which case it says nothing
 * about the controllers.
 */
export async function readObservedLease(
  api: KubeSender,
  { namespace, name }: LeasePlace,
): Promise<ObservedLease | undefined> {
  const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/${name}`;
  const request: KubeRequest = { method: "GET", path };
  const answer = await api.send(request);
  if (isGone(answer)) return undefined;
  if (answer.status >= 300) throw objectError(request, answer);
  const { resourceVersion, holder, durationMs } = translateLease(answer.body as KubeObject);
  return { version: resourceVersion, held: holder !== undefined, durationMs };
}

/** A Lease that is held, with a renewal that has not expired. */
export interface LiveLease {
  readonly namespace: string;
  readonly holder: string;
  readonly renewedAt: Instant;
}

/**
 * The live Leases of that name in all namespaces at an instant of the cluster's clock; undefined
 * if the caller may not list them, as the controller's own account may not.
 */
export async function liveLeases(
  api: KubeSender,
  about: { readonly name: string; readonly at: Instant; readonly signal: AbortSignal },
): Promise<readonly LiveLease[] | undefined> {
  const { name, at, signal } = about;
  const path = "/apis/coordination.k8s.io/v1/leases";
  const query = { fieldSelector: `metadata.name=${name}` };
  const request: KubeRequest = { method: "GET", path, query, signal };
  const answer = await api.send(request);
  if (answer.status === 403) return undefined;
  if (answer.status >= 300) throw apiError(request, answer);
  return listOf(fieldsOf(answer.body).items).flatMap((item) => {
    const lease = fieldsOf(item) as KubeObject;
    const { holder, durationMs } = translateLease(lease);
    const renewedAt = instantOf(fieldsOf(lease.spec).renewTime);
    if (lease.metadata?.name !== name || holder === undefined || renewedAt === undefined) return [];
    if (plus(renewedAt, durationMs) <= at) return [];
    return [{ namespace: lease.metadata.namespace ?? "", holder, renewedAt }];
  });
}
