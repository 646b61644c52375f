import { describe, expect, it } from "vitest";
import { faultOfAnswer } from "../../src/actions/http-sender.ts";

describe("an error response", () => {
  it.each([
    [400, "ACTION_REFUSED", false],
    [401, "ACTION_RIGHT_MISSING", false],
    [403, "ACTION_RIGHT_MISSING", false],
    [404, "ACTION_TARGET_UNKNOWN", false],
    [408, "ACTION_UNREACHABLE", true],
    [410, "ACTION_TARGET_UNKNOWN", false],
    [429, "ACTION_RATE_LIMITED", true],
    [500, "ACTION_UNREACHABLE", true],
    [503, "ACTION_UNREACHABLE", true],
    [302, "ACTION_REDIRECTED", false],
    [308, "ACTION_REDIRECTED", false],
  ] as const)("of status %i is %s", (status, code, retryable) => {
    const fault = faultOfAnswer("send to Slack", { status, body: "no such thing" });
    expect(fault).toMatchObject({ code, retryable });
  });

  it.each([
    [429, 7000],
    [503, 7000],
    [500, undefined],
    [403, undefined],
  ])("of status %i has a time to retry after: %s", (status, retryAfterMs) => {
    const fault = faultOfAnswer("send to Slack", { status, body: "", retryAfterMs: 7000 });
    expect(fault.retryAfterMs).toBe(retryAfterMs);
  });

  it("is not quoted in the message, which has its status", () => {
    expect(faultOfAnswer("send to Slack", { status: 500, body: "s3cret" }).message).toBe(
      "Cannot send to Slack: found status 500",
    );
  });

  it("that redirects is said not to be followed", () => {
    expect(faultOfAnswer("send to Slack", { status: 302, body: "" }).message).toBe(
      "Cannot send to Slack: found status 302, a redirect, which is not followed; use its target",
    );
  });
});
