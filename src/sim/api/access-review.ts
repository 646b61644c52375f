import type { KubeAnswer, KubeRequest } from "../../contracts/kube-api.ts";
import { recordOf } from "./frozen-copy.ts";

const group = "/apis/authorization.k8s.io/v1";

/** Everybody may do everything in the model. */
const answers: Readonly<Record<string, { readonly kind: string; readonly status: object }>> = {
  [`${group}/subjectaccessreviews`]: {
    kind: "SubjectAccessReview",
    status: { allowed: true },
  },
  [`${group}/selfsubjectaccessreviews`]: {
    kind: "SelfSubjectAccessReview",
    status: { allowed: true },
  },
  [`${group}/selfsubjectrulesreviews`]: {
    kind: "SelfSubjectRulesReview",
    status: {
      resourceRules: [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"] }],
      nonResourceRules: [{ verbs: ["*"], nonResourceURLs: ["*"] }],
      incomplete: false,
    },
  },
};

/** What `kubectl auth can-i` asks; undefined for any other request. */
export function answerReview({ method, path, body }: KubeRequest): KubeAnswer | undefined {
  const answer = method === "POST" ? answers[path] : undefined;
  if (answer === undefined) return undefined;
  const { kind, status } = answer;
  const apiVersion = "authorization.k8s.io/v1";
  const { spec } = recordOf(body);
  return { status: 201, body: { kind, apiVersion, metadata: {}, spec, status } };
}
