import { isLastcallError, LastcallError, messageOf } from "../../errors.ts";
import { type ApiCall, describeCall } from "../object/api-error.ts";
import type { DeadConnections } from "./connection-probe.ts";

/** The request and its server, for messages. */
export interface Asked extends ApiCall {
  readonly server: string;
}

/** The TLS errors that a person can fix. Source: OpenSSL's verify codes in Node. */
const certificateFaults: Readonly<Record<string, string>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: "its certificate is self-signed",
  SELF_SIGNED_CERT_IN_CHAIN: "a certificate of its chain is self-signed",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "the signer of its certificate is not trusted",
  UNABLE_TO_GET_ISSUER_CERT: "the signer of its certificate is not trusted",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "the signer of its certificate is not trusted",
  CERT_SIGNATURE_FAILURE: "the signature of its certificate is wrong",
  CERT_HAS_EXPIRED: "its certificate has expired",
  CERT_NOT_YET_VALID: "its certificate is not valid yet",
};

/** Converts any error of an exchange to the error that `KubeApi` throws. */
export function transportError(error: unknown, asked: Asked): LastcallError {
  if (isLastcallError(error)) return error;
  const code = codeOf(error);
  const fault = certificateFaults[code];
  if (fault !== undefined) {
    const wanted = "expected one signed by the cluster's certificate-authority";
    return unreachable(
      error,
      `${lead(asked)}: ${asked.server} is not trusted, ${fault}, ${wanted}`,
    );
  }
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") {
    const found = `the certificate of ${asked.server} is for another name (${messageOf(error)})`;
    return unreachable(error, `${lead(asked)}: ${found}, expected one for this address`);
  }
  if (code.startsWith("ERR_SSL") || code === "EPROTO") {
    const found = `no TLS connection to ${asked.server} (${fieldOf(error, "reason") || code})`;
    return unreachable(error, `${lead(asked)}: ${found}, expected a TLS server`);
  }
  const found = `no answer from ${asked.server} (${reasonOf(code, error)})`;
  const wanted = "expected a reachable API server, check its address and the network";
  return unreachable(error, `${lead(asked)}: ${found}, ${wanted}`);
}

/** The error of a request that timed out. */
export function timeoutError(asked: Asked, limitMs: number): LastcallError {
  return new LastcallError(
    "API_UNREACHABLE",
    `${lead(asked)}: no answer from ${asked.server} within ${limitMs / 1000} s, expected one in time`,
  );
}

/** The error of a watch whose connection a probe found dead. */
export function deadWatchError(server: string, dead: DeadConnections): LastcallError {
  return new LastcallError(
    "API_UNREACHABLE",
    `Cannot go on with the watches: ${foundOf(server, dead)}, new connections are made`,
  );
}

/** The error of a request in flight on a dead connection, whose result is unknown. */
export function deadRequestError(asked: Asked, dead: DeadConnections): LastcallError {
  return new LastcallError(
    "API_UNREACHABLE",
    `${lead(asked)}: ${foundOf(asked.server, dead)}, expected one that lives`,
  );
}

function foundOf(server: string, { found, silentMs }: DeadConnections): string {
  return found === "Silent"
    ? `no answer from ${server} to a probe of the connections within ${silentMs / 1000} s`
    : `the connection by which those to ${server} are tested was lost`;
}

/** The error of a request that the caller's signal aborted. */
export function interruptedError(asked: Asked, reason: unknown): LastcallError {
  return new LastcallError("INTERRUPTED", `${lead(asked)}: interrupted (${messageOf(reason)})`, {
    cause: reason,
  });
}

/** Whether the server closed or reset the connection, possibly before reading the request. */
export function isConnectionLost(error: unknown): boolean {
  return ["ECONNRESET", "EPIPE", "ECONNABORTED"].includes(codeOf(error));
}

function lead(asked: Asked): string {
  return `Cannot ${describeCall(asked)}`;
}

function unreachable(cause: unknown, message: string): LastcallError {
  return new LastcallError("API_UNREACHABLE", message, { cause });
}

function reasonOf(code: string, error: unknown): string {
  if (code === "ECONNREFUSED") return "connection refused";
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") return "its name does not resolve";
  if (isConnectionLost(error)) return "connection lost";
  return messageOf(error) || code || "unknown fault";
}

/** The error code. For a name with several addresses Node wraps all errors: the first one. */
function codeOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return codeOf(error.errors[0]);
  return fieldOf(error, "code");
}

function fieldOf(error: unknown, field: string): string {
  if (typeof error !== "object" || error === null) return "";
  return String((error as Record<string, unknown>)[field] ?? "");
}
