import type { LeaveOptions, MarkDisruptedOptions } from "../../contracts/cluster.ts";
import type { KubeAnswer, KubeRequest, KubeSender } from "../../contracts/kube-api.ts";
import type { PodIdentity } from "../../core/cluster/pod.ts";
import type { EvictionAnswer } from "../../core/drain/drain-answer.ts";
import { explainDrain } from "../../core/drain-plan/drain-plan-report.ts";
import { fieldsOf, listOf, numberOf, textOf, wordsOf } from "../../core/json/json-field.ts";
import { formatInstant, type Instant, type Millis } from "../../core/time/time.ts";
import { type ErrorCode, isLastcallError } from "../../errors.ts";
import {
  answerMessage,
  apiError,
  isDenied,
  isGone,
  isPassing,
  retryAfterMs,
} from "../object/api-call.ts";

export interface EvictOptions extends Partial<LeaveOptions> {
  /** Checks budgets and admission but changes nothing. */
  readonly dryRun?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Asks the API server to evict one pod, identified by its uid: a pod that took its name is not
 * touched. `Accepted` means that its termination has started. Throws only if the signal aborts, or
 * if another replica may lead.
 * Source of the responses: kubernetes pkg/registry/core/pod/storage/eviction.go.
 */
export async function evictPod(
  api: KubeSender,
  pod: PodIdentity,
  options: EvictOptions = {},
): Promise<EvictionAnswer> {
  const { namespace, name } = pod;
  return await ask(api, {
    method: "POST",
    path: `${pathOf(pod)}/eviction`,
    bodyAtTurn: () => ({
      apiVersion: "policy/v1",
      kind: "Eviction",
      metadata: { namespace, name },
      deleteOptions: deleteOptions(pod, options),
    }),
    dueAt: options.dueAt,
    signal: options.signal,
  });
}

/**
 * Deletes one pod, identified by its uid, regardless of its budgets. Results and errors as for
 * `evictPod`.
 */
export async function deletePod(
  api: KubeSender,
  pod: PodIdentity,
  options: EvictOptions = {},
): Promise<EvictionAnswer> {
  return await ask(api, {
    method: "DELETE",
    path: pathOf(pod),
    bodyAtTurn: () => ({
      apiVersion: "v1",
      kind: "DeleteOptions",
      ...deleteOptions(pod, options),
    }),
    dueAt: options.dueAt,
    signal: options.signal,
  });
}

export interface DisruptionMark extends MarkDisruptedOptions {
  readonly now: Instant;
  readonly signal: AbortSignal;
}

/**
 * Sets the pod's condition `DisruptionTarget`. The uid in the patch is a precondition, because a
 * uid cannot be changed. Does nothing if the pod is gone. Throws if the request fails or is
 * refused.
 */
export async function markDisrupted(
  api: KubeSender,
  pod: PodIdentity,
  { reason, dueAt, now, signal }: DisruptionMark,
): Promise<void> {
  const detail = reason === "NamespaceTerminating" ? pod.namespace : undefined;
  const condition = {
    type: "DisruptionTarget",
    status: "True",
    reason: "DeletionByLastcall",
    message: `Lastcall: the pod ${explainDrain(reason, { detail })}`,
    lastTransitionTime: formatInstant(now),
  };
  const request: KubeRequest = {
    method: "PATCH",
    path: `${pathOf(pod)}/status`,
    // Merges the conditions by type.
    patchType: "application/strategic-merge-patch+json",
    body: { metadata: { uid: pod.uid }, status: { conditions: [condition] } },
    dueAt,
    signal,
  };
  const answer = await api.send(request);
  if (answer.status >= 300 && answer.status !== 404) throw apiError(request, answer);
}

function pathOf(pod: PodIdentity): string {
  return `/api/v1/namespaces/${pod.namespace}/pods/${pod.name}`;
}

/** The grace period of a terminating pod can only be shortened. */
function deleteOptions(pod: PodIdentity, { graceSeconds: graceNow, dryRun }: EvictOptions) {
  const graceSeconds = graceNow?.();
  return {
    preconditions: { uid: pod.uid },
    ...(graceSeconds === undefined ? {} : { gracePeriodSeconds: graceSeconds }),
    ...(dryRun === true ? { dryRun: ["All"] } : {}),
  };
}

/** The errors of a request that was given up, or that only the leader may send. */
const notAsked: ReadonlySet<ErrorCode> = new Set(["INTERRUPTED", "LEASE_LOST"]);

async function ask(api: KubeSender, request: KubeRequest): Promise<EvictionAnswer> {
  try {
    return readAnswer(await api.send(request));
  } catch (error) {
    if (!isLastcallError(error) || notAsked.has(error.code)) throw error;
    return { kind: "NoAnswer", message: error.message };
  }
}

/** The Status object of a response, or its plain text. */
interface Status {
  readonly message: string;
  readonly causes: readonly Readonly<Record<string, unknown>>[];
  readonly retryAfterMs: Millis | undefined;
}

const foreign =
  "the response is not a Kubernetes object, check whether a proxy responds in place of the API server";

function readAnswer(answer: KubeAnswer): EvictionAnswer {
  const body = fieldsOf(answer.body);
  const code = answer.status < 300 ? codeInside(body) : answer.status;
  const status = statusOf(answer, body);
  if (code < 300 && textOf(body.kind) !== undefined) return { kind: "Accepted" };
  if (code < 300) return { kind: "NoAnswer", message: foreign };
  if (isDenied(answer)) {
    const { message, retryAfterMs } = status;
    return { kind: "Refused", status: code, message, retryAfterMs };
  }
  if (isAboutTwoBudgets(status.message)) {
    return { kind: "MultipleBudgets", message: status.message };
  }
  if (code === 429) return tooMany(status);
  // The response to an unknown path is a 404 too, which must not look like a pod that has left.
  if (isGone({ ...answer, status: code })) return { kind: "Gone" };
  if (code === 409) return conflict(status);
  if (isPassing({ status: code })) {
    return { kind: "Failed", status: code, retryable: true, message: status.message };
  }
  if (status.causes.some((cause) => cause.reason === "NamespaceTerminating")) {
    return { kind: "NamespaceTerminating" };
  }
  if (code >= 400) return { kind: "Refused", status: code, message: status.message };
  // A redirect or the like, which an API server never sends.
  return { kind: "Failed", status: code, retryable: false, message: status.message };
}

/**
 * The handler that creates evictions responds with 201 whatever the result: the body may contain a
 * failure. Returns 200 for anything that is not a failure.
 */
function codeInside(body: Readonly<Record<string, unknown>>): number {
  return body.kind === "Status" && body.status === "Failure" ? (numberOf(body.code) ?? 500) : 200;
}

function statusOf(answer: KubeAnswer, body: Readonly<Record<string, unknown>>): Status {
  const details = fieldsOf(body.details);
  return {
    message: wordsOf(answerMessage(answer)),
    causes: listOf(details.causes).map(fieldsOf),
    retryAfterMs: retryAfterMs(answer),
  };
}

function isAboutTwoBudgets(message: string): boolean {
  return message.includes("more than one PodDisruptionBudget");
}

/**
 * A budget refused the eviction (only a cause says so), or the server is overloaded (plain text, or
 * a Status without a cause).
 */
function tooMany({ message, causes, retryAfterMs }: Status): EvictionAnswer {
  const cause = causes.find(({ reason }) => reason === "DisruptionBudget");
  if (cause === undefined) return { kind: "Overloaded", message, retryAfterMs };
  const found = wordsOf(textOf(cause.message) ?? message);
  return {
    kind: "Blocked",
    budget: /disruption budget (\S+) /.exec(found)?.[1],
    message: found,
    retryAfterMs,
    stale: found.includes("still being processed"),
  };
}

/**
 * The uid differs, or the pod changed while the server handled the request: it deletes a pending
 * pod with a resourceVersion of its own. Sources: apiserver pkg/registry/rest/delete.go and
 * pkg/storage/interfaces.go, whose messages for the former differ.
 */
function conflict({ message }: Status): EvictionAnswer {
  if (/UID in (the )?precondition/i.test(message)) return { kind: "Replaced" };
  return { kind: "Failed", status: 409, retryable: true, message };
}
