import type { KubeAnswer } from "../../contracts/kube-api.ts";

/** `details.causes[]` of a Status. */
export interface StatusCause {
  readonly reason?: string;
  readonly message: string;
  readonly field?: string;
}

interface RefusalOptions {
  readonly code: number;
  readonly reason?: string;
  readonly message: string;
  readonly details?: {
    readonly name?: string;
    readonly group?: string;
    readonly kind?: string;
    readonly uid?: string;
    readonly causes?: readonly StatusCause[];
    readonly retryAfterSeconds?: number;
  };
}

/**
 * A response to be sent: thrown inside the model and returned by `ModelApi.send`. It is not an
 * Error, because a 404 or 429 is a response and not a fault, and a stack trace would cost more than
 * the request. Texts and reasons are those of k8s.io/apimachinery `pkg/api/errors`.
 */
export class ApiRefusal {
  readonly parts: RefusalOptions;

  constructor(parts: RefusalOptions) {
    this.parts = parts;
  }

  toAnswer(): KubeAnswer {
    const retryAfterSeconds = this.parts.details?.retryAfterSeconds;
    return { status: this.parts.code, body: statusOf(this.parts), retryAfterSeconds };
  }
}

/** A Status object for a failure. */
export function statusOf(parts: RefusalOptions): object {
  return Object.freeze({
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Failure",
    message: parts.message,
    ...(parts.reason === undefined ? {} : { reason: parts.reason }),
    ...(parts.details === undefined ? {} : { details: parts.details }),
    code: parts.code,
  });
}

/** The object that the request was about: `details` of most refusals. */
interface RefusedObject {
  readonly type: { readonly group: string; readonly plural: string; readonly kind: string };
  readonly name: string;
}

export function notFound(target: RefusedObject): ApiRefusal {
  const message = `${qualified(target)} "${target.name}" not found`;
  return new ApiRefusal({ code: 404, reason: "NotFound", message, details: detailsOf(target) });
}

export function noSuchResource(): ApiRefusal {
  const message = "the server could not find the requested resource";
  return new ApiRefusal({ code: 404, reason: "NotFound", message, details: {} });
}

export function methodNotAllowed(): ApiRefusal {
  const message = "the server does not allow this method on the requested resource";
  return new ApiRefusal({ code: 405, reason: "MethodNotAllowed", message, details: {} });
}

export function alreadyExists(target: RefusedObject): ApiRefusal {
  const message = `${qualified(target)} "${target.name}" already exists`;
  return new ApiRefusal({
    code: 409,
    reason: "AlreadyExists",
    message,
    details: detailsOf(target),
  });
}

export function conflict(target: RefusedObject, why: string): ApiRefusal {
  const message = `Operation cannot be fulfilled on ${qualified(target)} "${target.name}": ${why}`;
  return new ApiRefusal({ code: 409, reason: "Conflict", message, details: detailsOf(target) });
}

/** The text by which clients know that they wrote from a stale read. */
export const staleWrite =
  "the object has been modified; please apply your changes to the latest version and try again";

export function forbidden(
  target: RefusedObject,
  why: { message: string; causes?: readonly StatusCause[] },
): ApiRefusal {
  const message = `${qualified(target)} "${target.name}" is forbidden: ${why.message}`;
  const causes = why.causes === undefined ? {} : { causes: why.causes };
  const details = { ...detailsOf(target), ...causes };
  return new ApiRefusal({ code: 403, reason: "Forbidden", message, details });
}

/** The model has no users and no authorization, so nobody can act as somebody else. */
export function noUsers(user: string): ApiRefusal {
  const message = `users "${user}" is forbidden: the model cluster cannot impersonate resource "users"`;
  return new ApiRefusal({ code: 403, reason: "Forbidden", message, details: {} });
}

export function badRequest(message: string): ApiRefusal {
  return new ApiRefusal({ code: 400, reason: "BadRequest", message });
}

/** 422 with one cause per field, as `errors.NewInvalid` writes it. */
export function invalid(target: RefusedObject, causes: readonly StatusCause[]): ApiRefusal {
  const { group, kind } = target.type;
  const texts = causes.map((cause) => `${cause.field}: ${cause.message}`);
  const list = texts.length === 1 ? texts[0] : `[${texts.join(", ")}]`;
  const label = group === "" ? kind : `${kind}.${group}`;
  const details = { name: target.name, ...(group === "" ? {} : { group }), kind, causes };
  const message = `${label} "${target.name}" is invalid: ${list}`;
  return new ApiRefusal({ code: 422, reason: "Invalid", message, details });
}

/** The server's message for a JSON patch that does not apply, including a failed `test`. */
export function patchRefused(): ApiRefusal {
  const message = "the server rejected our request due to an error in our request";
  return new ApiRefusal({ code: 422, reason: "Invalid", message, details: {} });
}

export function unsupportedMediaType(accepted: readonly string[]): ApiRefusal {
  const message = `the body of the request was in an unknown format - accepted media types include: ${accepted.join(", ")}`;
  return new ApiRefusal({ code: 415, reason: "UnsupportedMediaType", message, details: {} });
}

export function expired(message: string): ApiRefusal {
  return new ApiRefusal({ code: 410, reason: "Expired", message });
}

export function tooManyRequests(
  message: string,
  options: { causes: readonly StatusCause[]; retryAfterSeconds?: number },
): ApiRefusal {
  return new ApiRefusal({ code: 429, reason: "TooManyRequests", message, details: options });
}

function detailsOf(target: RefusedObject): { name: string; group?: string; kind: string } {
  const { group, plural } = target.type;
  return { name: target.name, ...(group === "" ? {} : { group }), kind: plural };
}

function qualified(target: RefusedObject): string {
  const { group, plural } = target.type;
  return group === "" ? plural : `${plural}.${group}`;
}
