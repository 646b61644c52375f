import { excerpt } from "../core/json/json-field.ts";
import { type ErrorCode, LastcallError } from "../errors.ts";

/** A receiver's response, as far as it was read. */
export interface HttpAnswer {
  readonly status: number;
  readonly body: string;
  /** The redirect target. */
  readonly location?: string | undefined;
  /** The requested delay before a retry. */
  readonly retryAfterMs?: number | undefined;
}

/**
 * Converts an unsuccessful response to an error, for all receivers of actions. `what` completes
 * "Cannot …". The message contains no secret and no address, since that of a webhook is a secret.
 */
export function faultOfAnswer(what: string, answer: HttpAnswer): LastcallError {
  const { status, body } = answer;
  const code = codeOf(status);
  if (code === "ACTION_REDIRECTED") {
    const host = answer.location && URL.parse(answer.location)?.host;
    const to = host ? ` to ${host}` : "";
    const problem = `Cannot ${what}: it redirects${to} (${status}), use the address that it redirects to`;
    return new LastcallError(code, problem);
  }
  const isToWait = status === 429 || status === 503;
  const retryAfterMs = isToWait ? answer.retryAfterMs : undefined;
  const problem = `Cannot ${what}: found ${status} (${excerpt(body)})`;
  return new LastcallError(code, problem, { retryAfterMs });
}

function codeOf(status: number): ErrorCode {
  if (status === 429) return "ACTION_RATE_LIMITED";
  if (status === 408 || status === 425 || status >= 500) return "ACTION_UNREACHABLE";
  if (status === 401 || status === 403) return "ACTION_RIGHT_MISSING";
  if (status === 404 || status === 410) return "ACTION_TARGET_UNKNOWN";
  return status >= 300 && status < 400 ? "ACTION_REDIRECTED" : "ACTION_REFUSED";
}

/** The error for a response that is too long or does not match the receiver's documentation. */
export function answerInvalid(what: string, problem: string): LastcallError {
  return new LastcallError("ACTION_ANSWER_INVALID", `Cannot ${what}: ${problem}`);
}
