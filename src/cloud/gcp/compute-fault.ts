import { type ErrorCode, LastcallError } from "../../errors.ts";

/** What one call was for, so that its failure can say so. */
export interface CallPurpose {
  /** Ends the words "Cannot …", such as `read the instance p/z/n`. */
  readonly action: string;
  /** The IAM permission that it needs, such as `compute.instances.get`. */
  readonly permission: string;
}

/** A refusal in Compute Engine's words: an HTTP error, or an operation that ended in one. */
interface Refusal {
  readonly status: number;
  /**
   * `rateLimitExceeded` of an answer or `RATE_LIMIT_EXCEEDED` of an operation; empty if it had
   * none.
   */
  readonly reason: string;
  readonly message: string;
}

interface Explanation {
  readonly code: ErrorCode;
  readonly retryable?: boolean;
  readonly wanted: string;
}

/** Reasons that pass by themselves: the machine or its disk is busy with something else. */
const busy = new Set(["resourceinusebyanotherresource", "resourcenotready", "resourceinuse"]);
const overRate = new Set(["ratelimitexceeded", "userratelimitexceeded"]);

/**
 * Makes an error of an answer that refuses. Statuses and reasons as observed on the real service
 * and kept in the platform notes of docs/cloud/gcp.md; note that a rate limit comes as 403.
 */
export function faultOfAnswer(
  answer: { readonly status: number; readonly body: unknown },
  purpose: CallPurpose,
): LastcallError {
  return faultOf({ status: answer.status, ...readErrorBody(answer.body) }, purpose);
}

/** Makes an error of an operation that is DONE and failed, or undefined when it did not fail. */
export function faultOfOperation(
  operation: Readonly<Record<string, unknown>>,
  purpose: CallPurpose,
): LastcallError | undefined {
  const errors = field(operation.error, "errors");
  const first = Array.isArray(errors) ? errors[0] : undefined;
  const status = operation.httpErrorStatusCode;
  if (first === undefined && typeof status !== "number") return undefined;
  const message = text(field(first, "message")) || text(operation.httpErrorMessage);
  const refusal = {
    status: typeof status === "number" ? status : 400,
    reason: text(field(first, "code")),
    message,
  };
  return faultOf(refusal, purpose);
}

/**
 * The reason and message of an error body:
 * `{"error":{"code":403,"message":"…","errors":[{"domain":"…","reason":"rateLimitExceeded"}]}}`.
 */
export function readErrorBody(body: unknown): { reason: string; message: string } {
  const error = field(body, "error");
  const errors = field(error, "errors");
  const first = Array.isArray(errors) ? errors[0] : undefined;
  return { reason: text(field(first, "reason")), message: text(field(error, "message")) };
}

function faultOf(refusal: Refusal, purpose: CallPurpose): LastcallError {
  const { code, retryable, wanted } = judge(refusal, purpose);
  const answer = [refusal.status, refusal.reason].filter((part) => part !== "").join(" ");
  const quoted = refusal.message === "" ? "" : ` (${refusal.message.replace(/\.\s*$/, "")})`;
  return new LastcallError(
    code,
    `Cannot ${purpose.action}: Compute Engine answered ${answer}${quoted}, expected ${wanted}`,
    retryable === undefined ? {} : { retryable },
  );
}

function judge(refusal: Refusal, purpose: CallPurpose): Explanation {
  const { status } = refusal;
  const reason = refusal.reason.replaceAll("_", "").toLowerCase();
  if (status === 429 || overRate.has(reason)) {
    return { code: "CLOUD_RATE_LIMITED", wanted: "fewer requests for a while" };
  }
  if (status >= 500 || status === 408) {
    return { code: "CLOUD_UNREACHABLE", wanted: "an answer; retrying" };
  }
  if (status >= 300 && status < 400) {
    return { code: "CLOUD_UNREACHABLE", wanted: "an answer without a redirect" };
  }
  if (status === 401) {
    return { code: "CLOUD_CREDENTIALS", wanted: "an access token that Compute Engine takes" };
  }
  if (status === 403) return judgeForbidden(reason, { refusal, purpose });
  return judgeRefused(status, reason);
}

function judgeForbidden(
  reason: string,
  context: { readonly refusal: Refusal; readonly purpose: CallPurpose },
): Explanation {
  if (reason === "accessnotconfigured") {
    return { code: "CLOUD_REFUSED", wanted: "the Compute Engine API enabled in the project" };
  }
  const named = /'(compute\.[A-Za-z.]+)'/.exec(context.refusal.message)?.[1];
  const permission = named ?? context.purpose.permission;
  return { code: "CLOUD_RIGHT_MISSING", wanted: `the permission ${permission}` };
}

function judgeRefused(status: number, reason: string): Explanation {
  if (busy.has(reason)) {
    return {
      code: "CLOUD_REFUSED",
      retryable: true,
      wanted: "no other operation on the machine; retrying",
    };
  }
  if (status === 409) {
    return { code: "CLOUD_REFUSED", retryable: true, wanted: "no other change under way" };
  }
  if (status === 404) {
    return { code: "CLOUD_REFUSED", retryable: true, wanted: "what the request named" };
  }
  if (reason === "invalidresourceusage") {
    return { code: "CLOUD_REFUSED", wanted: "a machine without deletion protection" };
  }
  return { code: "CLOUD_REFUSED", wanted: "the request taken" };
}

function field(value: unknown, name: string): unknown {
  if (typeof value !== "object" || value === null) return undefined;
  return (value as Readonly<Record<string, unknown>>)[name];
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
