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
    const fault = faultOfAnswer("send to Slack", { status, body: "no\u001b[31m such\nthing" });
    expect(fault).toMatchObject({ code, retryable });
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
    expect(fault.message).not.toMatch(/[\u0000-\u001f]/);
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

  it("is quoted in the message, shortened and on one line", () => {
    const body = `<html>\n${"x".repeat(1000)}`;
    expect(faultOfAnswer("send to Slack", { status: 500, body }).message).toBe(
      `Cannot send to Slack: found 500 ("<html> ${"x".repeat(53)}…")`,
    );
  });

  it("names only the host of a redirect, as the rest may contain a secret", () => {
    const location = "https://login.example/oauth?token=s3cret";
    expect(faultOfAnswer("send to Slack", { status: 302, body: "", location }).message).toBe(
      "Cannot send to Slack: it redirects to login.example (302), use the address that it redirects to",
    );
  });

  it("does not recommend the address of a redirect to a bare address", () => {
    const location = "http://169.254.169.254/latest";
    expect(faultOfAnswer("send to Slack", { status: 302, body: "", location }).message).toBe(
      "Cannot send to Slack: it redirects to 169.254.169.254 (302), which is not followed",
    );
  });
});
