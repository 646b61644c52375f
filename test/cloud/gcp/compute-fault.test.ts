import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { faultOfAnswer, faultOfOperation } from "../../../src/cloud/gcp/compute-client.ts";

const purpose = { action: "delete n1", permission: "compute.instances.delete" };
const file = new URL("../../data/gce/autoscaler-responses.json", import.meta.url);
const recorded = JSON.parse(readFileSync(file, "utf8"));

function answerOf(status: number, reason: string, message = "Why") {
  return { status, body: { error: { code: status, message, errors: [{ reason, message }] } } };
}

describe("an error response", () => {
  it.each([
    [403, "rateLimitExceeded", "CLOUD_RATE_LIMITED", true],
    [403, "userRateLimitExceeded", "CLOUD_RATE_LIMITED", true],
    [429, "", "CLOUD_RATE_LIMITED", true],
    [403, "forbidden", "CLOUD_RIGHT_MISSING", false],
    [403, "insufficientPermissions", "CLOUD_RIGHT_MISSING", false],
    [403, "accessNotConfigured", "CLOUD_REFUSED", false],
    [401, "authError", "CLOUD_CREDENTIALS", false],
    [400, "invalidResourceUsage", "CLOUD_REFUSED", false],
    [400, "resourceInUseByAnotherResource", "CLOUD_REFUSED", true],
    [400, "resourceNotReady", "CLOUD_REFUSED", true],
    [400, "invalid", "CLOUD_REFUSED", false],
    [409, "alreadyExists", "CLOUD_REFUSED", true],
    [412, "conditionNotMet", "CLOUD_REFUSED", false],
    [408, "", "CLOUD_UNREACHABLE", true],
    [500, "internalError", "CLOUD_UNREACHABLE", true],
    [503, "backendError", "CLOUD_UNREACHABLE", true],
    [302, "", "CLOUD_UNREACHABLE", true],
  ] as const)("%i %s is %s, retryable: %s", (status, reason, code, retryable) => {
    expect(faultOfAnswer(answerOf(status, reason), purpose)).toMatchObject({ code, retryable });
  });

  it("becomes one sentence with the action, the problem and what is expected", () => {
    const answer = answerOf(400, "invalidResourceUsage", "Protected against deletion.");
    expect(faultOfAnswer(answer, purpose).message).toBe(
      "Cannot delete n1: Compute Engine answered 400 invalidResourceUsage (Protected against deletion), expected a machine without deletion protection",
    );
  });

  it("names the permission in its message, or else the one that the call needs", () => {
    const said = "Required 'compute.instances.setMetadata' permission for 'projects/p'";
    expect(faultOfAnswer(answerOf(403, "forbidden", said), purpose).message).toContain(
      "expected the permission compute.instances.setMetadata",
    );
    expect(faultOfAnswer(answerOf(403, "forbidden"), purpose).message).toContain(
      "expected the permission compute.instances.delete",
    );
  });

  it.each([undefined, null, "text", [], {}, { error: "text" }, { error: { errors: "text" } }])(
    "is read by its status alone if its body is %j",
    (body) => {
      expect(faultOfAnswer({ status: 503, body }, purpose).message).toBe(
        "Cannot delete n1: Compute Engine answered 503, expected a successful response; retrying",
      );
    },
  );
});

describe("a finished operation", () => {
  it("without an error is no fault", () => {
    expect(faultOfOperation(recorded.deleteInstances, purpose)).toBeUndefined();
  });

  it("with the recorded error is a permanent fault", () => {
    expect(faultOfOperation(recorded.failedOperation, purpose)).toMatchObject({
      code: "CLOUD_REFUSED",
      retryable: false,
      message: expect.stringContaining("answered 412 CONDITION_NOT_MET (CreateInstances cannot"),
    });
  });

  it.each([
    ["RESOURCE_NOT_READY", 400, "CLOUD_REFUSED", true],
    ["RESOURCE_IN_USE_BY_ANOTHER_RESOURCE", 400, "CLOUD_REFUSED", true],
    ["RATE_LIMIT_EXCEEDED", 403, "CLOUD_RATE_LIMITED", true],
    ["PERMISSIONS_ERROR", 403, "CLOUD_RIGHT_MISSING", false],
    ["RESOURCE_NOT_FOUND", 404, "CLOUD_REFUSED", true],
    ["INTERNAL_ERROR", 503, "CLOUD_UNREACHABLE", true],
    ["CONDITION_NOT_MET", undefined, "CLOUD_REFUSED", false],
  ] as const)("with %s and %s is %s, retryable: %s", (reason, status, code, retryable) => {
    const operation = {
      status: "DONE",
      error: { errors: [{ code: reason, message: "Why" }] },
      httpErrorStatusCode: status,
    };
    expect(faultOfOperation(operation, purpose)).toMatchObject({ code, retryable });
  });

  it("is a fault if only its HTTP status says so", () => {
    const operation = { httpErrorStatusCode: 403, httpErrorMessage: "FORBIDDEN" };
    expect(faultOfOperation(operation, purpose)?.code).toBe("CLOUD_RIGHT_MISSING");
  });
});
