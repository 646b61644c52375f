import { describe, expect, it } from "vitest";
import { isExpired, refusalError, waitAskedFor } from "../../src/kube/refusal.ts";

const crd = "/apis/lastcall.dev/v1alpha1/departures";

describe("a refusal", () => {
  it.each([
    [
      401,
      "/api/v1/nodes",
      "API_UNAUTHORIZED",
      "Cannot list nodes: the API server does not know us (said), expected valid credentials",
    ],
    [
      403,
      "/api/v1/nodes",
      "RIGHT_MISSING",
      "Cannot list nodes: it is forbidden (said), expected the right list on nodes",
    ],
    [
      403,
      "/apis/coordination.k8s.io/v1/namespaces/x/leases",
      "RIGHT_MISSING",
      "Cannot list leases.coordination.k8s.io in namespace x: it is forbidden (said), expected the right list on leases.coordination.k8s.io in namespace x",
    ],
    [
      404,
      crd,
      "CRD_MISSING",
      "Cannot list departures.lastcall.dev: the API server does not know them, expected the custom resource definition departures.lastcall.dev",
    ],
    [
      404,
      "/apis/policy/v1/poddisruptionbudgets",
      "NOT_FOUND",
      "Cannot list poddisruptionbudgets.policy: said, expected an existing one",
    ],
    [
      404,
      "/apis/coordination.k8s.io/v1/namespaces/x/leases",
      "NOT_FOUND",
      "Cannot list leases.coordination.k8s.io in namespace x: said, expected an existing one",
    ],
    [
      429,
      crd,
      "API_OVERLOADED",
      "Cannot list departures.lastcall.dev: said, expected a server that is not overloaded",
    ],
    [503, "/api/v1/nodes", "API_REFUSED", "Cannot list nodes: 503 said, expected a success"],
    [
      422,
      "/api/v1/namespaces/x/pods/p",
      "API_REFUSED",
      "Cannot list pods/p in namespace x: 422 said, expected a success",
    ],
  ])("with %i of %s is %s in one sentence", (status, path, code, message) => {
    const body = { kind: "Status", message: "said" };
    expect(refusalError({ verb: "list", path, status, body })).toMatchObject({ code, message });
  });

  it("of a creation in a namespace that does not exist says how to make that", () => {
    const path = "/apis/coordination.k8s.io/v1/namespaces/lastcall/leases";
    // As the admission plugin NamespaceLifecycle answers.
    const body = { kind: "Status", code: 404, message: 'namespaces "lastcall" not found' };
    expect(refusalError({ verb: "create", path, status: 404, body }).message).toBe(
      "Cannot create leases.coordination.k8s.io in namespace lastcall: the namespace does not exist, create it with: kubectl create namespace lastcall",
    );
  });

  it.each([
    [503, true],
    [500, true],
    [429, true],
    [422, false],
    [403, false],
  ])("with %i may help when asked again: %s", (status, retryable) => {
    const error = refusalError({ verb: "list", path: "/api/v1/nodes", status, body: "" });
    expect(error.retryable).toBe(retryable);
  });

  it.each([
    ["the header", { retryAfterSeconds: 7, body: "" }, 7000],
    ["the Status", { body: { details: { retryAfterSeconds: 2 } } }, 2000],
    ["neither", { body: {} }, undefined],
    ["a zero", { body: { details: { retryAfterSeconds: 0 } } }, undefined],
    ["an hour, cut to a minute", { retryAfterSeconds: 3600, body: "" }, 60_000],
  ])("asks for the wait of %s", (_, answer, waitMs) => {
    expect(waitAskedFor({ verb: "list", path: crd, status: 429, ...answer })).toBe(waitMs);
  });

  it.each([
    [410, {}, true],
    [500, { reason: "Expired" }, true],
    [400, { reason: "Gone" }, true],
    [500, {}, false],
  ])("with %i %o means an expired version: %s", (status, body, expired) => {
    expect(isExpired({ verb: "watch", path: crd, status, body })).toBe(expired);
  });
});
