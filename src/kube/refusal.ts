import { type Millis, seconds } from "../core/time/time.ts";
import { LastcallError } from "../errors.ts";
import { fieldsOf, numberOf, textOf } from "./json-field.ts";

export interface RefusedRequest {
  readonly verb: string;
  /** The path of the request, or of the collection. */
  readonly path: string;
  readonly status: number;
  /** The Status object or text of the answer. */
  readonly body: unknown;
  readonly retryAfterSeconds?: number | undefined;
}

/** Longer waits that a server asks for are cut: an hour's silence helps nobody. */
const longestWaitSeconds = 60;

/** Turns an answer that is no success into the error of the catalogue, in one sentence. */
export function refusalError(refused: RefusedRequest): LastcallError {
  const { verb, path, status } = refused;
  const lead = `Cannot ${verb} ${resourceOf(path)}`;
  const said = saidBy(refused);
  if (status === 401) {
    return new LastcallError(
      "API_UNAUTHORIZED",
      `${lead}: the API server does not know us (${said}), expected valid credentials`,
    );
  }
  if (status === 403) {
    return new LastcallError(
      "RIGHT_MISSING",
      `${lead}: it is forbidden (${said}), expected the right ${verb} on ${resourceOf(path)}`,
    );
  }
  if (status === 404 && isCustom(path)) {
    return new LastcallError(
      "CRD_MISSING",
      `${lead}: the API server does not know them, expected the custom resource definition ${resourceOf(path)}`,
    );
  }
  if (status === 404 && verb === "create" && said.startsWith("namespaces ")) {
    // What is created is not there before, so that only its namespace can be missing.
    const { namespace } = partsOf(path);
    return new LastcallError(
      "NOT_FOUND",
      `${lead}: the namespace does not exist, create it with: kubectl create namespace ${namespace}`,
    );
  }
  if (status === 404)
    return new LastcallError("NOT_FOUND", `${lead}: ${said}, expected an existing one`);
  if (status === 429) {
    return new LastcallError(
      "API_OVERLOADED",
      `${lead}: ${said}, expected a server that is not overloaded`,
    );
  }
  const retryable = status >= 500 || status === 408 || status === 410;
  return new LastcallError("API_REFUSED", `${lead}: ${status} ${said}, expected a success`, {
    retryable,
  });
}

/** How long the server asks to be left alone. */
export function waitAskedFor(refused: RefusedRequest): Millis | undefined {
  const details = fieldsOf(fieldsOf(refused.body).details);
  const asked = refused.retryAfterSeconds ?? numberOf(details.retryAfterSeconds);
  if (asked === undefined || asked <= 0) return undefined;
  return seconds(Math.min(asked, longestWaitSeconds));
}

/** The resourceVersion or the continue token is too old: what it referred to is compacted away. */
export function isExpired({ status, body }: RefusedRequest): boolean {
  const reason = fieldsOf(body).reason;
  return status === 410 || reason === "Expired" || reason === "Gone";
}

/** `nodes`, `departures.lastcall.dev`, `leases.coordination.k8s.io in namespace x`, from a path. */
function resourceOf(path: string): string {
  const { group, namespace, resource } = partsOf(path);
  const full = group === "" ? resource : `${resource}.${group}`;
  return namespace === undefined ? full : `${full} in namespace ${namespace}`;
}

function partsOf(path: string): { group: string; namespace: string | undefined; resource: string } {
  const [root, ...rest] = path.split("/").filter((part) => part !== "");
  const group = root === "apis" ? (rest.shift() ?? "") : "";
  const [, ...below] = rest;
  const isNamespaced = below[0] === "namespaces" && below.length > 2;
  const [resource, name] = isNamespaced ? below.slice(2) : below;
  return {
    group,
    namespace: isNamespaced ? below[1] : undefined,
    resource: name === undefined ? (resource ?? path) : `${resource}/${name}`,
  };
}

/** Groups of Kubernetes itself have no dot (`apps`) or end in `.k8s.io`. */
function isCustom(path: string): boolean {
  const { group } = partsOf(path);
  return group.includes(".") && !group.endsWith(".k8s.io");
}

function saidBy({ status, body }: RefusedRequest): string {
  const said = textOf(fieldsOf(body).message) ?? textOf(body)?.trim();
  return said || `status ${status} without a word`;
}
