import type { KubeSender } from "../contracts/kube-api.ts";
import { valueAt } from "../core/json/json-field.ts";
import { apiError } from "./object/api-error.ts";
import { reviewsPath } from "./object/paths.ts";

export interface AskedRight {
  readonly verb: string;
  /** Empty: the core group. */
  readonly group: string;
  readonly resource: string;
}

/** Whether the caller has a right, by SelfSubjectAccessReview, which everybody may ask. */
export async function hasRight(api: KubeSender, right: AskedRight): Promise<boolean> {
  const request = {
    method: "POST",
    path: reviewsPath,
    body: {
      apiVersion: "authorization.k8s.io/v1",
      kind: "SelfSubjectAccessReview",
      spec: { resourceAttributes: right },
    },
  } as const;
  const answer = await api.send(request);
  if (answer.status !== 201) throw apiError(request, answer);
  return valueAt(answer.body, ["status", "allowed"]) === true;
}
