import { fieldsOf, textOf } from "../../core/json/json-field.ts";
import { type ErrorCode, LastcallError } from "../../errors.ts";

/** What one call to Azure Resource Manager was for, so that its failure can say so. */
export interface ArmPurpose {
  /** Ends the words "Cannot …". */
  readonly action: string;
  /** The Azure RBAC action that it needs. */
  readonly permission: string;
}

/**
 * A refusal in Resource Manager's words: an answer's `error`, or that of an operation that failed.
 */
export interface ArmRefusal {
  /** Absent for an operation's own error. */
  readonly status?: number | undefined;
  readonly code: string;
  readonly message: string;
}

interface Explanation {
  readonly code: ErrorCode;
  readonly retryable?: boolean;
  readonly wanted: string;
}

interface KnownCode extends Explanation {
  readonly name: RegExp;
}

/**
 * By Resource Manager's own code, which is more specific than the status. Source: Azure's common
 * errors.
 */
const known: readonly KnownCode[] = [
  {
    name: /^(TooManyRequests|OperationThrottled|Throttl\w*|SubscriptionRequestsThrottled)$/,
    code: "CLOUD_RATE_LIMITED",
    wanted: "fewer requests for a while",
  },
  {
    name: /^(AuthorizationFailed|LinkedAuthorizationFailed)$/,
    code: "CLOUD_RIGHT_MISSING",
    wanted: "the permission",
  },
  {
    name: /^(InvalidAuthenticationToken\w*|ExpiredAuthenticationToken|AuthenticationFailed\w*)$/,
    code: "CLOUD_CREDENTIALS",
    wanted: "a token that Azure takes",
  },
  { name: /^ScopeLocked$/, code: "CLOUD_REFUSED", wanted: "no lock on the resource" },
  {
    name: /^RequestDisallowedByPolicy$/,
    code: "CLOUD_REFUSED",
    wanted: "no Azure policy that forbids it",
  },
  {
    name: /^(OperationNotAllowed|AnotherOperationInProgress|Conflict\w*|EtagMismatch|OperationPreempted|ControlPlaneNotFound)$/,
    code: "CLOUD_REFUSED",
    retryable: true,
    wanted: "no other operation under way; retrying",
  },
  {
    name: /^Internal\w*Error$|^ServiceUnavailable$|^GatewayTimeout$/,
    code: "CLOUD_UNREACHABLE",
    wanted: "an answer; retrying",
  },
];

export function faultOfArm(refusal: ArmRefusal, purpose: ArmPurpose): LastcallError {
  const { code, retryable, wanted } = judge(refusal);
  const { status, message } = refusal;
  const words = [status, refusal.code].filter((word) => word !== undefined && word !== "");
  const told = message
    .replaceAll(/\s+/g, " ")
    .slice(0, 200)
    .replace(/\.\s*$/, "");
  const quoted = told === "" ? "" : ` (${told})`;
  const named = code === "CLOUD_RIGHT_MISSING" ? `the permission ${purpose.permission}` : wanted;
  return new LastcallError(
    code,
    `Cannot ${purpose.action}: Azure answered ${words.join(" ")}${quoted}, expected ${named}`,
    retryable === undefined ? {} : { retryable },
  );
}

/** The `error` of a body: `{"error":{"code":"…","message":"…"}}`. */
export function readArmError(body: unknown): Pick<ArmRefusal, "code" | "message"> {
  const { code, message } = fieldsOf(fieldsOf(body).error);
  return { code: textOf(code) ?? "", message: textOf(message) ?? "" };
}

function judge({ status, code }: ArmRefusal): Explanation {
  const found = known.find(({ name }) => name.test(code));
  if (found !== undefined) return found;
  if (status === undefined) return { code: "CLOUD_REFUSED", wanted: "the operation to succeed" };
  if (status === 429) return { code: "CLOUD_RATE_LIMITED", wanted: "fewer requests for a while" };
  if (status >= 500 || status === 408) {
    return { code: "CLOUD_UNREACHABLE", wanted: "an answer; retrying" };
  }
  if (status >= 300 && status < 400) {
    return { code: "CLOUD_UNREACHABLE", wanted: "an answer without a redirect" };
  }
  if (status === 401) return { code: "CLOUD_CREDENTIALS", wanted: "a token that Azure takes" };
  if (status === 403) return { code: "CLOUD_RIGHT_MISSING", wanted: "the permission" };
  if (status === 409 || status === 412) {
    return { code: "CLOUD_REFUSED", retryable: true, wanted: "no other change under way" };
  }
  if (status === 404) {
    return { code: "CLOUD_REFUSED", retryable: true, wanted: "what the request named" };
  }
  return { code: "CLOUD_REFUSED", wanted: "the request taken" };
}
