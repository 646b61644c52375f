import type { KubeSender } from "../contracts/kube-api.ts";
import { textOf, valueAt } from "../core/json/json-field.ts";

const path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

/**
 * The name of the user whose credentials are used, by SelfSubjectReview, which everybody may
 * create. Served from Kubernetes 1.28; undefined if it is not served.
 */
export async function callerName(
  api: KubeSender,
  signal?: AbortSignal,
): Promise<string | undefined> {
  const body = { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" };
  const answer = await api.send({ method: "POST", path, body, signal });
  return textOf(valueAt(answer.body, ["status", "userInfo", "username"])) || undefined;
}
