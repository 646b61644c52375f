import { type ErrorCode, LastcallError } from "../../errors.ts";

interface Verdict {
  readonly code: ErrorCode;
  readonly wanted: string;
}

/** What of an error of AWS' client is read; it may be anything. */
interface ForeignError {
  readonly name?: unknown;
  readonly message?: unknown;
  readonly $metadata?: { readonly httpStatusCode?: unknown };
}

/** Codes by which AWS says that it does not know who asks, and what its client says before it asks. */
const strangerNames = new Set([
  "CredentialsProviderError",
  "ExpiredToken",
  "ExpiredTokenException",
  "InvalidClientTokenId",
  "InvalidSecurity",
  "MissingAuthenticationToken",
  "SignatureDoesNotMatch",
  "TokenProviderError",
  "UnrecognizedClientException",
]);

/** What became of a request to the queue that failed, as one of our faults. `action` ends "Cannot …". */
export function faultOfQueue(
  error: unknown,
  asked: { readonly action: string; readonly permission: string },
): LastcallError {
  const { name, message, $metadata } = (error ?? {}) as ForeignError;
  const status = Number($metadata?.httpStatusCode ?? 0);
  const word = typeof name === "string" ? name : "no word";
  const { code, wanted } = judge(word, status, asked.permission);
  const told = typeof message === "string" ? message.replaceAll(/\s+/g, " ").slice(0, 200) : "";
  const found = `found ${word}${status === 0 ? "" : ` (status ${status})`}`;
  const quoted = told === "" ? "" : `, "${told.replace(/\.\s*$/, "")}"`;
  return new LastcallError(code, `Cannot ${asked.action}: ${found}${quoted}, wanted ${wanted}`, {
    cause: error,
  });
}

function judge(name: string, status: number, permission: string): Verdict {
  if (/throttl|TooManyRequests|RequestLimit|OverLimit/i.test(name) || status === 429) {
    return { code: "CLOUD_RATE_LIMITED", wanted: "fewer requests" };
  }
  if (strangerNames.has(name) || status === 401) {
    return { code: "CLOUD_CREDENTIALS", wanted: "credentials that AWS accepts" };
  }
  if (/AccessDenied/i.test(name) || status === 403) {
    return { code: "CLOUD_RIGHT_MISSING", wanted: `the permission ${permission} on the queue` };
  }
  if (status >= 400 && status < 500) {
    return {
      code: "CLOUD_REFUSED",
      wanted: "a queue that is there, by the URL of --sqs-queue-url",
    };
  }
  return { code: "CLOUD_UNREACHABLE", wanted: "an answer of SQS" };
}
