import type { Impersonation, KubeAnswer, KubeApi, KubeRequest } from "../../contracts/kube-api.ts";
import type { NodeIdentity } from "../../core/cluster/node.ts";
import type { OwnPod, TrialAnswer } from "../../doctor/facts.ts";
import { LastcallError } from "../../errors.ts";
import { dryRunOf } from "../../kube/dry-run.ts";
import { answerMessage, apiError } from "../../kube/object/api-call.ts";
import { type Account, accountGroups, accountUser, askReview } from "./cluster-facts.ts";

/** Where an account's token is bound to: the API server adds it to every request (1.30). */
interface BoundTo {
  readonly pod?: Pick<OwnPod, "name" | "uid"> | undefined;
  readonly node?: NodeIdentity | undefined;
}

/** A ServiceAccount as its token identifies it to the API server. */
export function tokenOf(account: Account, { pod, node }: BoundTo): Impersonation {
  const bound = { "pod-name": pod?.name, "pod-uid": pod?.uid };
  const placed = { "node-name": node?.name, "node-uid": node?.uid };
  const extra = Object.entries({ ...bound, ...placed }).flatMap(([key, value]) =>
    value === undefined ? [] : [[`authentication.kubernetes.io/${key}`, value] as const],
  );
  return {
    user: accountUser(account),
    groups: accountGroups(account),
    extra: Object.fromEntries(extra),
  };
}

/** The caller may not act as Lastcall's accounts, so nothing can be tried. */
class NotAllowedToTry extends Error {}

function notAllowed({ namespace, name }: Account, said: string): NotAllowedToTry {
  return new NotAllowedToTry(
    `not tried in a dry run: the caller may not act as ${namespace}/${name} (${said}); grant impersonate on serviceaccounts, groups and userextras.authentication.k8s.io`,
  );
}

/** Throws NotAllowedToTry if the caller may not impersonate the account. */
export async function checkMayTry(
  api: KubeApi,
  account: Account,
  signal: AbortSignal,
): Promise<void> {
  const right = { verb: "impersonate", group: "", resource: "serviceaccounts" };
  const named = { ...right, name: account.name, own: true };
  const allowed = await askReview(api, { right: named, account, subject: {} }, signal);
  if (allowed !== true) throw notAllowed(account, "impersonate serviceaccounts is missing");
}

export type TrialRequest = Pick<KubeRequest, "method" | "path" | "body" | "patchType">;

/**
 * Sends one request as this account, in a dry run, and tells how it was answered.
 */
export async function tryAs(
  api: KubeApi,
  { account, as, request }: { account: Account; as: Impersonation; request: TrialRequest },
  signal: AbortSignal,
): Promise<TrialAnswer> {
  const dry = dryRunOf({ ...request, as, signal });
  const answer = await api.send(dry);
  const message = answerMessage(answer);
  if (/cannot impersonate resource/.test(message)) throw notAllowed(account, message);
  return meaningOf(dry, answer, message);
}

/**
 * Source of the texts: apiserver `pkg/endpoints/handlers/responsewriters/errors.go` for RBAC and
 * `pkg/admission/plugin/policy/validating/dispatcher.go` for policies.
 */
function meaningOf(request: KubeRequest, answer: KubeAnswer, message: string): TrialAnswer {
  const { status } = answer;
  // A name that is taken is found after the admission.
  const isTaken = status === 409 && /already exists$/.test(message);
  if (status < 300 || isTaken) return { kind: "Accepted" };
  if (status === 403 && /\bcannot \S+ resource\b/.test(message)) return { kind: "NotGranted" };
  const plain = message.replace(/^\S+ "[^"]*" is forbidden: /, "");
  const [, policy, why = plain] =
    /ValidatingAdmissionPolicy '([^']+)'.*? denied request: (.*)/s.exec(message) ?? [];
  const isDenied = policy !== undefined || status === 403 || /denied the request/.test(message);
  if (isDenied) return { kind: "Denied", policy, message: why };
  return { kind: "Unknown", why: apiError(request, answer).message };
}

/** Runs a trial; any error is its own answer, except that the caller may not try anything. */
export async function answered(trial: () => Promise<TrialAnswer>): Promise<TrialAnswer> {
  try {
    return await trial();
  } catch (error) {
    if (error instanceof LastcallError) return { kind: "Unknown", why: error.message };
    throw error;
  }
}
