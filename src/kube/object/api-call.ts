/**
 * Translates unsuccessful responses of the API server. A caller that expects one (a conflict, a
 * name that is taken, an object that is gone) checks its status first; all others are translated
 * here. Sources: apimachinery `pkg/api/errors/errors.go` and `pkg/apis/meta/v1/types.go`
 * (StatusReason).
 */

import type { KubeAnswer, KubeMethod } from "../../contracts/kube-api.ts";
import { fieldsOf, listOf, numberOf, trimmedTextOf } from "../../core/json/json-field.ts";
import { inEnglish } from "../../core/reason/english.ts";
import { type Millis, seconds } from "../../core/time/time.ts";
import { type ErrorCode, LastcallError } from "../../errors.ts";

/** Paths and names of the resources that Lastcall reads and writes. */
export const group = "lastcall.dev";

export const apiVersion = "lastcall.dev/v1alpha1";

export const policiesPath = "/apis/lastcall.dev/v1alpha1/departurepolicies";

export const departuresPath = "/apis/lastcall.dev/v1alpha1/departures";

export const nodesPath = "/api/v1/nodes";

export const namespacesPath = "/api/v1/namespaces";

export const budgetsPath = "/apis/policy/v1/poddisruptionbudgets";

export const podsPath = "/api/v1/pods";

export const daemonSetsPath = "/apis/apps/v1/daemonsets";

export const eventsPath = "/api/v1/events";

export const attachmentsPath = "/apis/storage.k8s.io/v1/volumeattachments";

export const nodeClaimsPath = "/apis/karpenter.sh/v1/nodeclaims";

export const reviewsPath = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

export function nodePath(name: string): string {
  return `${nodesPath}/${encodeURIComponent(name)}`;
}

export interface ResourceKind {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
}

export function objectPath(kind: ResourceKind, namespace: string, name: string): string {
  const { group, version, resource } = kind;
  const inNamespace = `/apis/${group}/${version}/namespaces/${namespace}`;
  return `${inNamespace}/${resource}/${encodeURIComponent(name)}`;
}

export function nodeClaimPath(name: string): string {
  return `${nodeClaimsPath}/${encodeURIComponent(name)}`;
}

export function departurePath(name: string): string {
  return `${departuresPath}/${encodeURIComponent(name)}`;
}

export function policyPath(name: string): string {
  return `${policiesPath}/${encodeURIComponent(name)}`;
}

export function volumePath(name: string): string {
  return `/api/v1/persistentvolumes/${encodeURIComponent(name)}`;
}

/** The request, for the message and for the meaning of a 404. */
export interface ApiCall {
  readonly method: KubeMethod;
  readonly path: string;
  /** The RBAC verb; only needed if method and path do not determine it. */
  readonly verb?: "watch" | undefined;
}

export interface AnswerClass {
  readonly code: ErrorCode;
  /** Whether the same request, sent again later, may get another response. */
  readonly retryable: boolean;
}

/** Longer delays that a server requests are shortened: an hour without requests helps nobody. */
const longestWaitSeconds = 60;

/**
 * Converts a response that its caller did not expect to an error of the catalogue, in one sentence.
 */
export function apiError(call: ApiCall, answer: KubeAnswer): LastcallError {
  const { code, retryable } = meaningOf(call, answer);
  return new LastcallError(code, sentenceOf(call, answer, code), { retryable });
}

/** What a status and the reason of its Status object mean. */
export function meaningOf(call: ApiCall, answer: KubeAnswer): AnswerClass {
  if (isDenied(answer)) return { code: "API_REFUSED", retryable: isPassing(answer) };
  switch (answer.status) {
    case 401:
      return { code: "API_UNAUTHORIZED", retryable: false };
    case 403:
      return { code: isForbidden(answer) ? "RIGHT_MISSING" : "API_REFUSED", retryable: false };
    case 404:
      return {
        code: isCustom(call) && isUnserved(call, answer) ? "CRD_MISSING" : "NOT_FOUND",
        retryable: false,
      };
    case 409:
      // A name that is taken stays taken; any other conflict is about a version that was read.
      return { code: "CONFLICT", retryable: fieldsOf(answer.body).reason !== "AlreadyExists" };
    default:
      return isOverloaded(answer)
        ? { code: "API_OVERLOADED", retryable: true }
        : { code: "API_REFUSED", retryable: isPassing(answer) || isExpired(answer) };
  }
}

/**
 * Whether time alone may change the response to the same request: the server, or something in front
 * of it, is overloaded, starting, stopping or broken. A conflict is not such an error, because its
 * retry is another request.
 */
export function isPassing({ status }: Pick<KubeAnswer, "status">): boolean {
  const isServers = status >= 500 && status !== 501;
  return isServers || status === 408 || status === 429;
}

/** Whether the resourceVersion or continue token is too old: its data has been compacted. */
export function isExpired({ status, body }: KubeAnswer): boolean {
  const { reason } = fieldsOf(body);
  return status === 410 || reason === "Expired" || reason === "Gone";
}

/** The delay before a retry that the server requests, by its header or its Status. */
export function retryAfterMs({ retryAfterSeconds, body }: KubeAnswer): Millis | undefined {
  const asked = retryAfterSeconds ?? numberOf(fieldsOf(fieldsOf(body).details).retryAfterSeconds);
  if (asked === undefined || asked <= 0) return undefined;
  return seconds(Math.min(asked, longestWaitSeconds));
}

/** The `message` of a Status, or plain text, as from priority and fairness and from proxies. */
export function answerMessage(answer: KubeAnswer): string {
  return messageIn(answer) ?? `the API server answered ${answer.status}`;
}

function messageIn({ body }: KubeAnswer): string | undefined {
  return trimmedTextOf(fieldsOf(body).message) ?? trimmedTextOf(body);
}

/**
 * 429 comes from priority and fairness or a limit on requests in flight, 503 from a server that is
 * starting or stopping or has lost an aggregated API, and 504 or ServerTimeout (500) from one whose
 * etcd is slow.
 */
function isOverloaded({ status, body }: KubeAnswer): boolean {
  return [408, 429, 503, 504].includes(status) || fieldsOf(body).reason === "ServerTimeout";
}

/**
 * A 403 from RBAC is a missing permission; one from a quota, a webhook or a terminating namespace
 * is not.
 */
function isForbidden(answer: KubeAnswer): boolean {
  const message = answerMessage(answer);
  const { causes } = fieldsOf(fieldsOf(answer.body).details);
  return (
    !listOf(causes).some((cause) => fieldsOf(cause).reason === "NamespaceTerminating") &&
    !message.includes("exceeded quota")
  );
}

/**
 * Whether an admission webhook denied the request. It chooses the status itself, so a 404 or a 409
 * of it says nothing about the object. Source: apiserver
 * pkg/admission/plugin/webhook/errors/statuserror.go, ToStatusErr.
 */
export function isDenied(answer: KubeAnswer): boolean {
  return /^admission webhook ".*" denied the request/.test(answerMessage(answer));
}

/**
 * Whether somebody else has written the object since it was read, or another object has its name. A
 * denial with this status is neither, and nor is what something in front of the API server answers.
 * Source: apimachinery pkg/api/errors/errors.go, NewConflict.
 */
export function isConflict(answer: KubeAnswer): boolean {
  return isAbout(answer, { status: 409, reason: "Conflict" });
}

/**
 * Whether a JSON patch does not apply, such as one whose `test` fails. A policy or a schema that
 * refuses an object responds with the same status. Source: apiserver
 * pkg/endpoints/handlers/patch.go, applyJSPatch, which gives NewGenericServerResponse no message.
 */
export function isPatchRefused(answer: KubeAnswer): boolean {
  const message = "the server rejected our request due to an error in our request";
  return isAbout(answer, { status: 422, reason: "Invalid" }) && answerMessage(answer) === message;
}

/** Whether an object to create has a name that is taken. Source: the same, NewAlreadyExists. */
export function isNameTaken(answer: KubeAnswer): boolean {
  return isAbout(answer, { status: 409, reason: "AlreadyExists" });
}

function isAbout(answer: KubeAnswer, { status, reason }: { status: number; reason: string }) {
  return answer.status === status && fieldsOf(answer.body).reason === reason && !isDenied(answer);
}

/**
 * Whether the object of a request does not exist. A 404 without a Status, or with one about the
 * path, says nothing about it: an API server that does not serve the path has responded, or
 * something in front of it. Nor does the denial of a webhook.
 */
export function isGone(answer: KubeAnswer): boolean {
  return (
    answer.status === 404 &&
    fieldsOf(answer.body).kind === "Status" &&
    !answerMessage(answer).includes("could not find the requested resource") &&
    !isDenied(answer)
  );
}

/**
 * The same as `apiError`, for a caller that acts on `isGone`: any other 404 is retried, because its
 * object may well exist.
 */
export function objectError(call: ApiCall, answer: KubeAnswer): LastcallError {
  if (answer.status !== 404 || isGone(answer) || isDenied(answer)) return apiError(call, answer);
  return new LastcallError(
    "API_ANSWER_INVALID",
    `Cannot ${describeCall(call)}: ${answerMessage(answer)}, expected a Kubernetes Status about the object, check whether a proxy responds in place of the API server`,
  );
}

/**
 * Whether a 404 is about the resource and not about one of its objects: the path is unknown (plain
 * text, or a Status that says so), or it is a collection, which exists even when empty.
 */
export function isUnserved(call: ApiCall, answer: KubeAnswer): boolean {
  if (answer.status !== 404 || isDenied(answer)) return false;
  const { namespace, name } = partsOf(call.path);
  return (
    !isGone(answer) || (name === undefined && (call.method !== "POST" || namespace === undefined))
  );
}

/** What follows "Cannot": `list nodes`, whether the server refused it or did not respond. */
export function describeCall(call: ApiCall): string {
  return `${verbOf(call)} ${subjectOf(call)}`;
}

function sentenceOf(call: ApiCall, answer: KubeAnswer, code: ErrorCode): string {
  const lead = `Cannot ${describeCall(call)}`;
  const about = { verb: verbOf(call), object: subjectOf(call) };
  const message = answerMessage(answer);
  const withStatus = messageIn(answer) === undefined ? message : `${answer.status} ${message}`;
  switch (code) {
    case "API_UNAUTHORIZED":
      return inEnglish({ says: "api.Unauthorized", ...about, detail: message });
    case "RIGHT_MISSING":
      return inEnglish({ says: "api.Forbidden", ...about, detail: message, right: rightOf(call) });
    case "CRD_MISSING":
      return inEnglish({ says: notInstalled(call), ...about, resource: resourceOf(call) });
    case "NOT_FOUND":
      return `${lead}: ${whatIsMissing(call, answer)}`;
    case "CONFLICT":
      return `${lead}: ${message}, expected no other writer`;
    case "API_OVERLOADED":
      return `${lead}: ${withStatus}, expected a server that is not overloaded`;
    default:
      return `${lead}: ${withStatus}, expected a success`;
  }
}

function notInstalled(call: ApiCall): "api.NotInstalled" | "api.NotServed" {
  return partsOf(call.path).group === "lastcall.dev" ? "api.NotInstalled" : "api.NotServed";
}

/**
 * The namespace, the resource or the object that is missing. An object to create does not exist
 * yet, so only its namespace can be missing.
 */
function whatIsMissing(call: ApiCall, answer: KubeAnswer): string {
  const { group, namespace, resource } = partsOf(call.path);
  const message = answerMessage(answer);
  if (call.method === "POST" && message.startsWith("namespaces ")) {
    return `the namespace does not exist, create it with: kubectl create namespace ${namespace}`;
  }
  if (resource === undefined) return `${message}, expected a Kubernetes API server`;
  if (isUnserved(call, answer)) {
    // Every version serves the core group: it is another server, or another path of it.
    if (group === "") return "no Kubernetes API is served there, check the kubeconfig's server";
    const shown = `kubectl api-resources --api-group=${group}`;
    return `the API server does not serve it, use a version of Kubernetes that does (${shown} shows what it serves)`;
  }
  const where = namespace === undefined ? "" : ` --namespace ${namespace}`;
  return `${message}, check the name (kubectl get ${resource}${group && `.${group}`}${where} lists the existing ones)`;
}

/**
 * `list on nodes`, `patch on nodes/status`, `create on pods/eviction in namespace x`: as in a Role.
 */
function rightOf(call: ApiCall): string {
  return `${verbOf(call)} on ${resourceOf(call)}${placeOf(call)}`;
}

/**
 * `nodes`, `nodes/n1`, `leases.coordination.k8s.io in namespace x`; any other path is unchanged.
 */
function subjectOf(call: ApiCall): string {
  const { name } = partsOf(call.path);
  return `${resourceOf(call)}${name === undefined ? "" : ` ${name}`}${placeOf(call)}`;
}

function placeOf(call: ApiCall): string {
  const { namespace } = partsOf(call.path);
  return namespace === undefined ? "" : ` in namespace ${namespace}`;
}

/** As RBAC names it: `nodes`, `pods/eviction`, `departures.lastcall.dev`. */
export function resourceOf({ path }: Pick<ApiCall, "path">): string {
  const { group, resource, subresource } = partsOf(path);
  if (resource === undefined) return path;
  const whole = group === "" ? resource : `${resource}.${group}`;
  return subresource === undefined ? whole : `${whole}/${subresource}`;
}

const verbs = { POST: "create", PUT: "update", PATCH: "patch", DELETE: "delete" } as const;

function verbOf({ method, path, verb }: ApiCall): string {
  if (verb !== undefined) return verb;
  if (method !== "GET") return verbs[method];
  const { resource, name } = partsOf(path);
  return resource !== undefined && name === undefined ? "list" : "get";
}

interface ParsedPath {
  readonly group: string;
  readonly namespace?: string | undefined;
  /** Undefined if the path is not that of a resource, such as `/version`. */
  readonly resource?: string | undefined;
  readonly name?: string | undefined;
  readonly subresource?: string | undefined;
}

/** `/api/v1/…` or `/apis/GROUP/VERSION/…`, with `namespaces/NAME/` for namespaced resources. */
function partsOf(path: string): ParsedPath {
  const [root, ...rest] = path.split("/").filter((part) => part !== "");
  if (root !== "api" && root !== "apis") return { group: "" };
  const group = root === "apis" ? (rest.shift() ?? "") : "";
  const [, ...below] = rest;
  const isNamespaced = below[0] === "namespaces" && below.length > 2;
  const [resource, name, subresource] = isNamespaced ? below.slice(2) : below;
  return { group, namespace: isNamespaced ? below[1] : undefined, resource, name, subresource };
}

/** Kubernetes' own groups have no dot (`apps`) or end in `.k8s.io`. */
function isCustom({ path }: ApiCall): boolean {
  const { group } = partsOf(path);
  return group.includes(".") && !group.endsWith(".k8s.io");
}
