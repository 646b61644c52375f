import { DescribeInstancesCommand, EC2Client } from "@aws-sdk/client-ec2";
import { describe, expect, it, vi } from "vitest";
import { faultOfAws } from "../../../src/cloud/aws/aws-client.ts";

const asked = {
  action: "receive messages from the queue",
  permission: "sqs:ReceiveMessage on the queue",
  service: "SQS",
  wanted: "a queue that is there",
};

const credentials = { accessKeyId: "a", secretAccessKey: "b" };

function fault(name: string, httpStatusCode?: number, message = "Told by AWS.") {
  const metadata = httpStatusCode === undefined ? {} : { $metadata: { httpStatusCode } };
  return Object.assign(new Error(message), { name, ...metadata });
}

describe("a failed request to AWS", () => {
  it.each([
    ["QueueDoesNotExist", 400, "CLOUD_REFUSED"],
    ["AccessDeniedException", 400, "CLOUD_RIGHT_MISSING"],
    ["KmsAccessDenied", 400, "CLOUD_RIGHT_MISSING"],
    ["InvalidClientTokenId", 403, "CLOUD_CREDENTIALS"],
    ["ExpiredTokenException", 400, "CLOUD_CREDENTIALS"],
    ["SignatureDoesNotMatch", 403, "CLOUD_CREDENTIALS"],
    ["CredentialsProviderError", undefined, "CLOUD_CREDENTIALS"],
    ["RequestThrottled", 400, "CLOUD_RATE_LIMITED"],
    ["ThrottlingException", 400, "CLOUD_RATE_LIMITED"],
    ["UnauthorizedOperation", 403, "CLOUD_RIGHT_MISSING"],
    ["AuthFailure", 401, "CLOUD_CREDENTIALS"],
    ["RequestLimitExceeded", 503, "CLOUD_RATE_LIMITED"],
    ["InternalFailure", 500, "CLOUD_UNREACHABLE"],
    ["ServiceUnavailable", 503, "CLOUD_UNREACHABLE"],
    ["TimeoutError", undefined, "CLOUD_UNREACHABLE"],
    ["SyntaxError", undefined, "CLOUD_UNREACHABLE"],
  ])("with %s, status %s, is %s", (name, status, code) => {
    expect(faultOfAws(fault(name, status), asked).code).toBe(code);
  });

  it.each([
    ["7", 7000],
    ["Fri, 20 Nov 2026 12:00:07 GMT", undefined],
    [undefined, undefined],
  ])("with the header Retry-After: %s has a pause of %s ms", (retryAfter, pauseMs) => {
    const $response = { statusCode: 429, headers: { "retry-after": retryAfter } };
    const error = Object.assign(fault("TooManyRequestsException", 429), { $response });
    expect(faultOfAws(error, asked).retryAfterMs).toBe(pauseMs);
  });

  it.each([
    ["KmsAccessDenied", "sqs:ReceiveMessage", "kms:Decrypt"],
    ["KMSAccessDeniedException", "sns:Publish", "kms:GenerateDataKey"],
  ])("with %s asks for the permission on the key, and not for %s", (name, permission, wanted) => {
    const { message } = faultOfAws(fault(name, 400), { ...asked, permission });
    expect(message).toContain(wanted);
    expect(message).not.toContain(permission);
  });

  it.each([
    ["ScalingActivityInProgress", 400, "Activity is in progress", true, "retrying"],
    ["ScalingActivityInProgressFault", 400, "Activity is in progress", true, "retrying"],
    ["ResourceContention", 500, "A pending update", true, "retrying"],
    ["ValidationError", 400, "Instance Id not found - No managed instance", true, "a member"],
    [
      "ValidationError",
      400,
      "The instance i-0abc is not in InService or Standby.",
      true,
      "a member",
    ],
    ["ValidationError", 400, "violate group's min size constraint", false, "Recreate"],
    ["ValidationError", 400, "1 validation error detected", false, "a queue that is there"],
    ["IncorrectInstanceState", 400, "The instance is not in a valid state", true, "retrying"],
    ["OperationNotPermitted", 400, "disableApiTermination", false, "termination protection"],
  ])("for a release with %s, %s, %s is retryable: %s", (...row) => {
    const [name, status, said, retryable, wanted] = row;
    expect(faultOfAws(fault(name, status, said), asked)).toMatchObject({
      code: "CLOUD_REFUSED",
      retryable,
      message: expect.stringContaining(wanted),
    });
  });

  it("names AWS_REGION if no region is set", async () => {
    const send = () => new EC2Client({ credentials }).send(new DescribeInstancesCommand({}));
    vi.stubEnv("AWS_REGION", undefined);
    vi.stubEnv("AWS_CONFIG_FILE", "/dev/null");
    const error: unknown = await send().catch((thrown: unknown) => thrown);
    vi.unstubAllEnvs();
    expect(faultOfAws(error, asked)).toMatchObject({
      code: "CONFIG_INVALID",
      message:
        "Cannot receive messages from the queue: found no region, expected AWS_REGION in the environment",
    });
  });

  it("is described in one sentence, with what AWS said and what is expected", () => {
    expect(faultOfAws(fault("AccessDenied", 403, "User: x\n is not.\n"), asked).message).toBe(
      'Cannot receive messages from the queue: found AccessDenied (status 403), "User: x is not", expected the permission sqs:ReceiveMessage on the queue',
    );
  });

  it.each([[undefined], [null], ["gone"], [{ name: 5, $metadata: null }], [new Error("")]])(
    "with %j is described as well",
    (thrown) => {
      const { code, message } = faultOfAws(thrown, asked);
      expect(code).toBe("CLOUD_UNREACHABLE");
      expect(message).toMatch(/found (Error|an error without a name)/);
    },
  );
});
