import { describe, expect, it } from "vitest";
import type { KubeAnswer } from "../../../src/contracts/kube-api.ts";
import {
  type ApiCall,
  apiError,
  isExpired,
  isGone,
  isPassing,
  isUnserved,
  objectError,
  retryAfterMs,
} from "../../../src/kube/object/api-call.ts";

const nodes: ApiCall = { method: "GET", path: "/api/v1/nodes" };
const departures = "/apis/lastcall.dev/v1alpha1/departures";
const leases = "/apis/coordination.k8s.io/v1/namespaces/x/leases";

const denied = 'admission webhook "w" denied the request: it is not allowed';

function statusBody(fields: object = {}): unknown {
  return { kind: "Status", apiVersion: "v1", status: "Failure", message: "said", ...fields };
}

it("a webhook's 404 does not make an object gone, or a path unknown", () => {
  const answer = { status: 404, body: statusBody({ message: denied }) };
  const call: ApiCall = { method: "DELETE", path: "/api/v1/nodes/n1" };
  expect([isGone(answer), isUnserved(call, answer)]).toEqual([false, false]);
  expect(objectError(call, answer)).toMatchObject({ code: "API_REFUSED" });
});

describe("an error response", () => {
  // As an API server, its priority and fairness, admission or proxies send them: apimachinery's
  // `errors.go` has the status and reason of each.
  it.each<[status: number, body: unknown, code: string, retryable: boolean]>([
    [400, statusBody({ reason: "BadRequest" }), "API_REFUSED", false],
    [401, statusBody({ reason: "Unauthorized" }), "API_UNAUTHORIZED", false],
    [403, statusBody({ reason: "Forbidden" }), "RIGHT_MISSING", false],
    [403, statusBody({ message: "pods is forbidden: exceeded quota: q" }), "API_REFUSED", false],
    // A webhook may deny with any status.
    [401, statusBody({ message: denied }), "API_REFUSED", false],
    [403, statusBody({ message: denied }), "API_REFUSED", false],
    [404, statusBody({ message: denied, reason: "NotFound" }), "API_REFUSED", false],
    [409, statusBody({ message: denied }), "API_REFUSED", false],
    [410, statusBody({ message: denied, reason: "Gone" }), "API_REFUSED", false],
    [
      403,
      statusBody({ details: { causes: [{ reason: "NamespaceTerminating" }] } }),
      "API_REFUSED",
      false,
    ],
    [405, statusBody({ reason: "MethodNotAllowed" }), "API_REFUSED", false],
    [408, "request timed out", "API_OVERLOADED", true],
    [409, statusBody({ reason: "Conflict" }), "CONFLICT", true],
    [409, statusBody({ reason: "AlreadyExists" }), "CONFLICT", false],
    [410, statusBody({ reason: "Expired" }), "API_REFUSED", true],
    [410, statusBody({ reason: "Gone" }), "API_REFUSED", true],
    [413, statusBody({ reason: "RequestEntityTooLarge" }), "API_REFUSED", false],
    [415, statusBody({ reason: "UnsupportedMediaType" }), "API_REFUSED", false],
    [422, statusBody({ reason: "Invalid" }), "API_REFUSED", false],
    [429, "Too many requests, please try again later.", "API_OVERLOADED", true],
    [429, statusBody({ reason: "TooManyRequests" }), "API_OVERLOADED", true],
    [500, statusBody({ reason: "InternalError" }), "API_REFUSED", true],
    [500, statusBody({ reason: "ServerTimeout" }), "API_OVERLOADED", true],
    [501, "not implemented", "API_REFUSED", false],
    [502, "Bad Gateway", "API_REFUSED", true],
    [503, statusBody({ reason: "ServiceUnavailable" }), "API_OVERLOADED", true],
    [504, statusBody({ reason: "Timeout" }), "API_OVERLOADED", true],
    [302, "", "API_REFUSED", false],
  ])("with %i %j is %s, retryable: %s", (status, body, code, retryable) => {
    expect(apiError(nodes, { status, body })).toMatchObject({ code, retryable });
  });

  it.each<[what: string, call: ApiCall, body: unknown, code: string]>([
    ["a Lastcall collection", { method: "GET", path: departures }, statusBody(), "CRD_MISSING"],
    [
      "a created Lastcall object",
      { method: "POST", path: departures },
      statusBody(),
      "CRD_MISSING",
    ],
    [
      "a Lastcall object whose path is not served",
      { method: "GET", path: `${departures}/d` },
      "404 page not found\n",
      "CRD_MISSING",
    ],
    [
      "a Lastcall object whose kind is not served",
      { method: "PATCH", path: `${departures}/d` },
      statusBody({ message: "the server could not find the requested resource" }),
      "CRD_MISSING",
    ],
    [
      "a Lastcall object that is gone",
      { method: "GET", path: `${departures}/d` },
      statusBody({ reason: "NotFound" }),
      "NOT_FOUND",
    ],
    [
      "a built-in kind",
      { method: "GET", path: "/apis/policy/v1/poddisruptionbudgets" },
      statusBody(),
      "NOT_FOUND",
    ],
    ["leases", { method: "GET", path: leases }, statusBody(), "NOT_FOUND"],
  ])("with 404 of %s is %4$s", (_, call, body, code) => {
    expect(apiError(call, { status: 404, body })).toMatchObject({ code, retryable: false });
  });

  it.each<[call: ApiCall, status: number, message: string]>([
    [
      nodes,
      401,
      "Cannot list nodes: the API server rejected the credentials (said), check the kubeconfig or the service account",
    ],
    [nodes, 403, "Cannot list nodes: forbidden (said), grant list on nodes"],
    [
      { ...nodes, verb: "watch" },
      403,
      "Cannot watch nodes: forbidden (said), grant watch on nodes",
    ],
    [
      { method: "GET", path: leases },
      403,
      "Cannot list leases.coordination.k8s.io in namespace x: forbidden (said), grant list on leases.coordination.k8s.io in namespace x",
    ],
    [
      { method: "PATCH", path: "/api/v1/namespaces/x/pods/p/status" },
      403,
      "Cannot patch pods/status p in namespace x: forbidden (said), grant patch on pods/status in namespace x",
    ],
    [
      { method: "GET", path: departures },
      404,
      "Cannot list departures.lastcall.dev: it is not installed (run: lastcall setup crds --apply), expected the custom resource definition departures.lastcall.dev",
    ],
    [
      { method: "GET", path: `${leases}/l` },
      404,
      "Cannot get leases.coordination.k8s.io l in namespace x: said, check the name (kubectl get leases.coordination.k8s.io --namespace x lists the existing ones)",
    ],
    [
      { method: "GET", path: "/api/v1/nodes/n1" },
      404,
      "Cannot get nodes n1: said, check the name (kubectl get nodes lists the existing ones)",
    ],
    [
      { method: "GET", path: "/apis/policy/v1/poddisruptionbudgets" },
      404,
      "Cannot list poddisruptionbudgets.policy: the API server does not serve it, use a version of Kubernetes that does (kubectl api-resources --api-group=policy shows what it serves)",
    ],
    [
      { method: "GET", path: "/api/v1/nodes" },
      404,
      "Cannot list nodes: no Kubernetes API is served there, check the kubeconfig's server",
    ],
    [
      { method: "GET", path: "/version" },
      404,
      "Cannot get /version: said, expected a Kubernetes API server",
    ],
    [
      { method: "PUT", path: `${leases}/l` },
      409,
      "Cannot update leases.coordination.k8s.io l in namespace x: said, expected no other writer",
    ],
    [
      { method: "DELETE", path: "/api/v1/nodes/n1" },
      422,
      "Cannot delete nodes n1: 422 said, expected a success",
    ],
    [
      { method: "GET", path: "/version" },
      503,
      "Cannot get /version: 503 said, expected a server that is not overloaded",
    ],
  ])("becomes a message, for %j and %i", (call, status, message) => {
    expect(apiError(call, { status, body: statusBody() }).message).toBe(message);
  });

  it("to a creation in a missing namespace says how to create the namespace", () => {
    const path = "/apis/coordination.k8s.io/v1/namespaces/lastcall/leases";
    // The response of the admission plugin NamespaceLifecycle.
    const body = statusBody({ code: 404, message: 'namespaces "lastcall" not found' });
    expect(apiError({ method: "POST", path }, { status: 404, body }).message).toBe(
      "Cannot create leases.coordination.k8s.io in namespace lastcall: the namespace does not exist, create it with: kubectl create namespace lastcall",
    );
  });

  it("without a body has its status in the message", () => {
    expect(apiError(nodes, { status: 500, body: "" }).message).toBe(
      "Cannot list nodes: the API server answered 500, expected a success",
    );
  });
});

describe("a 404 of an object", () => {
  const call: ApiCall = { method: "GET", path: "/api/v1/nodes/n1" };
  const unserved = "the server could not find the requested resource";

  it.each([
    ["means that the object is gone", "a Status", statusBody({ reason: "NotFound" }), true],
    ["is retried", "a Status about the path", statusBody({ message: unserved }), false],
    ["is retried", "plain text", "404 page not found\n", false],
    ["is retried", "another object", { message: "no such route" }, false],
    ["is retried", "an empty body", "", false],
  ])("%s if it is %s", (_what, _body, body, gone) => {
    const answer = { status: 404, body };
    expect(isGone(answer)).toBe(gone);
    expect(objectError(call, answer)).toMatchObject({
      code: gone ? "NOT_FOUND" : "API_ANSWER_INVALID",
      retryable: !gone,
    });
  });
});

describe("the wait before a retry", () => {
  it.each<[what: string, answer: Omit<KubeAnswer, "status">, waitMs: number | undefined]>([
    ["the header", { retryAfterSeconds: 7, body: "" }, 7000],
    ["the Status", { body: { details: { retryAfterSeconds: 2 } } }, 2000],
    ["neither", { body: {} }, undefined],
    ["a zero", { body: { details: { retryAfterSeconds: 0 } } }, undefined],
    ["an hour, capped at a minute", { retryAfterSeconds: 3600, body: "" }, 60_000],
  ])("is that of %s", (_, answer, waitMs) => {
    expect(retryAfterMs({ status: 429, ...answer })).toBe(waitMs);
  });
});

it.each([
  [410, {}, true],
  [500, { reason: "Expired" }, true],
  [400, { reason: "Gone" }, true],
  [500, {}, false],
])("a response of %i %o means an expired version: %s", (status, body, expired) => {
  expect(isExpired({ status, body })).toBe(expired);
});

it.each([
  [200, false],
  [404, false],
  [409, false],
  [410, false],
  [429, true],
  [500, true],
  [503, true],
])("a request answered with %i may succeed later: %s", (status, passing) => {
  expect(isPassing({ status })).toBe(passing);
});
