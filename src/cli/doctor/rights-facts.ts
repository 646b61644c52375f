import type { KubeApi } from "../../contracts/kube-api.ts";
import { fieldsOf, textOf, valueAt } from "../../core/json/json-field.ts";
import { type Right, rightName } from "../../doctor/controller-rights.ts";
import type { RightFacts } from "../../doctor/facts.ts";
import { LastcallError } from "../../errors.ts";
import { apiError } from "../../kube/object/api-error.ts";

export interface Account {
  readonly namespace: string;
  readonly name: string;
}

const reviews = "/apis/authorization.k8s.io/v1";
const whoAmI = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

/**
 * Whether a ServiceAccount has each of the rights, by SubjectAccessReview; where the caller may not
 * ask that, and is this ServiceAccount, by SelfSubjectAccessReview. A review is asked by a POST and
 * leaves nothing behind. Throws RIGHT_MISSING where neither can be asked.
 */
export async function rightsOfAccount(
  api: KubeApi,
  account: Account,
  rights: readonly Right[],
  signal: AbortSignal,
): Promise<readonly RightFacts[]> {
  const user = `system:serviceaccount:${account.namespace}:${account.name}`;
  const groups = [
    "system:serviceaccounts",
    `system:serviceaccounts:${account.namespace}`,
    "system:authenticated",
  ];
  const [first, ...others] = rights;
  if (first === undefined) return [];
  const review = (one: Right, subject: object) =>
    askReview(api, { right: one, account, subject }, signal);
  const tried = await review(first, { user, groups });
  const isRefused = tried === "Refused";
  if (isRefused && (await callerName(api, signal)) !== user) {
    throw new LastcallError(
      "RIGHT_MISSING",
      `Cannot ask for the rights of ${account.namespace}/${account.name}: it is forbidden, expected the right create on subjectaccessreviews.authorization.k8s.io, or this command run in its pod`,
    );
  }
  const subject = isRefused ? {} : { user, groups };
  const answers = await Promise.all(
    (isRefused ? rights : others).map(async (one) => ({
      name: rightName(one),
      allowed: (await review(one, subject)) === true,
    })),
  );
  return isRefused ? answers : [{ name: rightName(first), allowed: tried }, ...answers];
}

async function askReview(
  api: KubeApi,
  asked: { readonly right: Right; readonly account: Account; readonly subject: object },
  signal: AbortSignal,
): Promise<boolean | "Refused"> {
  const { own, ...right } = asked.right;
  const resourceAttributes = { ...right, ...(own ? { namespace: asked.account.namespace } : {}) };
  const kind = "user" in asked.subject ? "SubjectAccessReview" : "SelfSubjectAccessReview";
  const path = `${reviews}/${kind.toLowerCase()}s`;
  const body = {
    apiVersion: "authorization.k8s.io/v1",
    kind,
    spec: { ...asked.subject, resourceAttributes },
  };
  const answer = await api.send({ method: "POST", path, body, signal });
  if (answer.status === 403) return "Refused";
  if (answer.status !== 201) throw apiError({ method: "POST", path }, answer);
  return fieldsOf(valueAt(answer.body, ["status"])).allowed === true;
}

/** Served from Kubernetes 1.28 on; undefined where it is not. */
async function callerName(api: KubeApi, signal: AbortSignal): Promise<string | undefined> {
  const body = { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" };
  const answer = await api.send({ method: "POST", path: whoAmI, body, signal });
  return textOf(valueAt(answer.body, ["status", "userInfo", "username"]));
}
