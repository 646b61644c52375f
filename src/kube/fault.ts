import type { KubeAnswer, KubeRequest } from "../contracts/kube-api.ts";
import { LastcallError } from "../errors.ts";
import { departuresPath, policiesPath } from "./paths.ts";

/** The `message` of a Status body, or the text itself, or the bare code. */
export function statusMessage(answer: KubeAnswer): string {
  const body = answer.body;
  if (typeof body === "string" && body !== "") return body.trim();
  if (typeof body === "object" && body !== null && "message" in body) return String(body.message);
  return `HTTP ${answer.status}`;
}

/** Turns an answer that the caller did not expect into the fault it is. */
export function faultOf(request: KubeRequest, answer: KubeAnswer): LastcallError {
  const asked = `Cannot ${request.method} ${request.path}`;
  const said = statusMessage(answer);
  switch (answer.status) {
    case 401:
      return new LastcallError(
        "API_UNAUTHORIZED",
        `${asked}: the API server does not know who asks (${said}), valid credentials are needed`,
      );
    case 403:
      return new LastcallError("RIGHT_MISSING", `${asked}: ${said}`);
    case 404:
      return notFound(request.path, `${asked}: ${said}`);
    case 409:
      return new LastcallError("CONFLICT", `${asked}: ${said}`);
    case 429:
    case 503:
    case 504:
      return new LastcallError("API_OVERLOADED", `${asked}: ${said}`);
    default:
      return new LastcallError("API_REFUSED", `${asked}: ${said}`, {
        retryable: answer.status >= 500,
      });
  }
}

/** A collection of ours that the server does not know has not been installed. */
function notFound(path: string, message: string): LastcallError {
  if (path !== policiesPath && path !== departuresPath) {
    return new LastcallError("NOT_FOUND", message);
  }
  return new LastcallError(
    "CRD_MISSING",
    `Cannot read ${path}: the resources of Lastcall are not installed, run lastcall setup crds --apply`,
  );
}
