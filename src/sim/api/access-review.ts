import type { KubeAnswer, KubeRequest } from "../../contracts/kube-api.ts";
import { recordOf } from "./frozen-copy.ts";

const reviewPath = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

export function isReview(request: KubeRequest): boolean {
  return request.method === "POST" && request.path === reviewPath;
}

/** Everybody may do everything in the model. */
export function answerReview(request: KubeRequest): KubeAnswer {
  const spec = recordOf(request.body).spec;
  const body = {
    kind: "SelfSubjectAccessReview",
    apiVersion: "authorization.k8s.io/v1",
    metadata: {},
    spec,
    status: { allowed: true },
  };
  return { status: 201, body };
}
